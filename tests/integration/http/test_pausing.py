"""Taking a machine out and in over HTTP."""

from __future__ import annotations

import httpx
import pytest

from services.router.fleet import Fleet
from support.router_port import DESKTOP, MemoryRouter


async def test_a_machine_is_paused_by_name_or_id_and_shown_as_such(
    http: httpx.AsyncClient, router: MemoryRouter
) -> None:
    for name, body in (("Desktop", {"for_s": 7_200, "reason": "a game"}), ("w-1", {})):
        answer = await http.post(f"/workers/{name}/pause", json=body)
        row = answer.json()["worker"]
        assert (answer.status_code, row["id"], row["state"]) == (200, "w-1", "paused")
        assert row["paused"].startswith("until ")
    assert (await http.get("/workers")).json()["workers"][0] == row
    row = (await http.post("/workers/desktop/resume")).json()["worker"]
    assert (row["state"], row["paused"]) == ("ready", "")
    assert not router.view.workers["w-1"].paused


async def test_a_name_that_nobody_has_is_not_found_with_the_nearest(http: httpx.AsyncClient) -> None:
    for what in ("pause", "resume"):
        answer = await http.post(f"/workers/destkop/{what}")
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["nearest"]) == (404, "unknown_worker", ["desktop"])
        assert "no worker is called 'destkop'; nearest: desktop" in error["message"]


async def test_a_machine_that_leaves_meanwhile_is_not_found_any_more(
    http: httpx.AsyncClient, router: MemoryRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def leaves(worker: str, for_s: float | None, reason: str) -> None:
        router.view = Fleet()

    monkeypatch.setattr(router, "pause", leaves)
    answer = await http.post("/workers/desktop/pause")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_worker")


async def test_a_name_that_two_have_is_refused_with_their_ids(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.view = Fleet(workers={"w-1": DESKTOP, "w-9": type(DESKTOP)(id="w-9", name="desktop", boot="b")})
    answer = await http.post("/workers/desktop/pause")
    assert answer.status_code == 400 and "w-1, w-9" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "field"),
    [({"for_s": 0}, "for_s"), ({"for_s": "2h"}, "for_s"), ({"fors": 1}, "fors"), ({"reason": 3}, "reason")],
)
async def test_a_pause_that_cannot_be_is_refused_by_its_field(
    http: httpx.AsyncClient, body: dict[str, object], field: str
) -> None:
    answer = await http.post("/workers/desktop/pause", json=body)
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/route", {"prompt": "hi", "constraints": {"worker": "destkop"}}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "headrace": {"worker": "destkop"}}),
    ],
)
async def test_a_task_for_a_machine_that_nobody_is_is_refused_with_the_nearest(
    http: httpx.AsyncClient, router: MemoryRouter, path: str, body: dict[str, object]
) -> None:
    answer = await http.post(path, json=body)
    assert answer.status_code == 400
    assert "no worker is called 'destkop'; nearest: desktop" in answer.json()["error"]["message"]
    assert not router.plays
