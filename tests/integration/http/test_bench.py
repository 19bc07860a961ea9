"""Having the suites run over HTTP."""

from __future__ import annotations

import hashlib

import httpx

from schemas.demands import Demand
from schemas.errors import CannotRun, HeadraceError
from services.router.http.access import Access
from services.router.http.app import create_app
from services.router.http.serving import serving
from services.runtime.settings import Key
from support.eventually import PATIENCE_S
from support.router_port import MemoryRouter


async def test_a_demand_is_passed_on_with_the_machines_id_and_its_run_can_be_seen_and_ended(
    http: httpx.AsyncClient, router: MemoryRouter
) -> None:
    begun = await http.post("/bench", json={"model": "qwen3", "worker": "Desktop", "domain": "code", "limit": 3})
    assert (begun.status_code, begun.json()["state"], begun.json()["total"]) == (202, "running", 3)
    assert router.demands == [Demand(model="qwen3", worker="w-1", domain="code", limit=3)]
    run = begun.json()["run"]
    assert (await http.get(f"/bench/{run}")).json() == begun.json()
    assert (await http.delete(f"/bench/{run}")).json()["state"] == "cancelled"


async def test_everything_may_be_left_out(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    assert (await http.post("/bench")).status_code == 202
    assert router.demands == [Demand()]


async def test_what_is_wrong_with_a_demand_is_named(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    for body, status, code in (
        ({"limit": 0}, 400, "invalid_request"),
        ({"suite": "code"}, 400, "invalid_request"),
        ({"model": "qwen"}, 404, "unknown_model"),
        ({"worker": "destkop"}, 400, "invalid_request"),
    ):
        answer = await http.post("/bench", json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), body
        assert answer.json()["error"]["field"] == next(iter(body))
    assert router.demands == []


async def test_a_run_that_nobody_knows_is_not_found(http: httpx.AsyncClient) -> None:
    for answer in (await http.get("/bench/r9"), await http.delete("/bench/r9")):
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_run")


async def test_without_a_benchmarker_it_is_unavailable_in_plain_words(
    http: httpx.AsyncClient, router: MemoryRouter
) -> None:
    router.refusal = HeadraceError("no benchmarker answers; start one with `headrace benchmarker`")
    answer = await http.post("/bench")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    assert "headrace benchmarker" in answer.json()["error"]["message"] and "retry-after" in answer.headers


async def test_a_demand_that_cannot_be_met_is_the_clients_to_change(
    http: httpx.AsyncClient, router: MemoryRouter
) -> None:
    router.refusal = CannotRun("no suite is about 'law'; there are code, maths", "domain")
    answer = await http.post("/bench", json={"domain": "law"})
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "domain")


async def test_what_is_owed_is_shown_with_the_machines_name_and_what_keeps_it_back(http: httpx.AsyncClient) -> None:
    body = (await http.get("/bench")).json()
    assert (body["on"], body["total"], list(body["left_s"].values())) == (True, 1, [12.0])
    (debt,) = body["owed"]
    assert (debt["worker_name"], debt["reason"], debt["why"]) == ("desktop", "stale", "a task runs there")


async def test_with_keys_only_an_admins_may_have_the_suites_run_or_end_a_run(router: MemoryRouter) -> None:
    keys = {
        name: Key(sha256=hashlib.sha256(name.encode()).hexdigest(), admin=name == "boss") for name in ("boss", "me")
    }
    async with (
        serving(create_app(router, access=Access(keys=keys)), "127.0.0.1", 0, drain_s=1) as url,
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=PATIENCE_S) as http,
    ):
        boss, me = ({"authorization": f"Bearer {name}"} for name in keys)
        run = (await http.post("/bench", headers=boss)).json()["run"]
        said = [
            (await http.post("/bench", headers=me)).status_code,
            (await http.get(f"/bench/{run}", headers=me)).status_code,
            (await http.delete(f"/bench/{run}", headers=me)).status_code,
            (await http.delete(f"/bench/{run}", headers=boss)).status_code,
        ]
    assert said == [403, 200, 403, 200]
    assert router.demands == [Demand()]
