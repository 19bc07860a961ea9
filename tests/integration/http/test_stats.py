"""The paths about what was measured, as HTTP: rows in pages, maps, the picture, what a cell is made of, and unknown names."""

from __future__ import annotations

from urllib.parse import quote

import httpx
import pytest

from schemas.bias import Judge, Records, share
from support.router_port import MemoryRouter
from support.wide_stats import measured, wide


@pytest.fixture
def router() -> MemoryRouter:
    router = MemoryRouter()
    router.numbers.put(measured("qwen3", "code", "w-1", 80.0))
    router.numbers.put(measured("Qwen/Qwen3-8B:q4", "code", "w-1", 60.0))
    return router


@pytest.mark.parametrize(
    ("query", "code", "field", "nearest"),
    [
        ("model=qwen33", "unknown_model", "model", "qwen3"),
        ("domain=cod", "unknown_domain", "domain", "code"),
        ("worker=desk", "unknown_worker", "worker", "desktop"),
    ],
)
@pytest.mark.parametrize("path", ["/stats", "/stats/map", "/stats.svg"])
async def test_an_unknown_name_is_answered_with_the_nearest(
    http: httpx.AsyncClient, path: str, query: str, code: str, field: str, nearest: str
) -> None:
    answer = await http.get(f"{path}?{query}")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["field"], error["nearest"][0]) == (404, code, field, nearest)


async def test_rows_come_in_pages_that_say_where_the_next_begins(http: httpx.AsyncClient) -> None:
    first = (await http.get("/stats", params={"limit": "1"})).json()
    assert (first["total"], first["next_offset"], len(first["rows"])) == (2, 1, 1)
    last = (await http.get("/stats", params={"limit": "1", "offset": "1"})).json()
    assert (last["next_offset"], last["rows"][0]["model"]) == (None, "qwen3")
    expected = last["rows"][0]["expected"]["decode"]
    assert (expected["level"], expected["n"]) == ("cell", 9) and expected["spread"] > 0


@pytest.mark.parametrize("query", ["limit=0", "limit=1000000", "offset=-1", "sort=nope", "nonsense=1"])
async def test_a_wrong_query_is_refused_by_its_field(http: httpx.AsyncClient, query: str) -> None:
    answer = await http.get(f"/stats?{query}")
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, query.partition("=")[0])


@pytest.mark.parametrize("model", ["qwen3", "Qwen/Qwen3-8B:q4"])
async def test_a_cell_explains_itself_whatever_its_name_holds(http: httpx.AsyncClient, model: str) -> None:
    told = (await http.get(f"/stats/explain?model={quote(model, safe='')}&domain=code&worker=desktop")).json()
    decode = told["fields"]["decode"]
    assert [level["level"] for level in decode["levels"]][-1] == "cell"
    assert decode["levels"][-1]["result"] == decode["measure"]["value"] == told["row"]["expected"]["decode"]["value"]


@pytest.mark.parametrize("query", ["model=qwen3", "model=qwen3&domain=&worker=desktop"])
async def test_a_cell_that_is_not_whole_is_refused(http: httpx.AsyncClient, query: str) -> None:
    answer = await http.get(f"/stats/explain?{query}")
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "domain")


async def test_the_maps_are_values_and_null_never_zero(http: httpx.AsyncClient) -> None:
    speed, quality = (await http.get("/stats/map")).json()["maps"]
    assert (speed["of"], quality["of"]) == ("decode", "quality")
    assert {block["value"] for row in speed["rows"] for block in row["blocks"]} >= {None}
    (only,) = (await http.get("/stats/map?of=quality")).json()["maps"]
    assert only["of"] == "quality"
    assert (await http.get("/stats/map?of=nope")).status_code == 400


async def test_the_picture_is_an_svg_with_its_numbers_as_text(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    answer = await http.get("/stats.svg")
    assert answer.headers["content-type"].startswith("image/svg+xml")
    assert ">qwen3<" in answer.text and ">desktop<" in answer.text
    assert f"up to event {router.numbers.position}" in answer.text


async def test_a_wide_fleet_is_shown_in_part_and_says_so(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.numbers, router.view = wide(40, 10, 8)
    page = (await http.get("/stats")).json()
    assert (page["total"], len(page["rows"]), page["next_offset"]) == (3200, 500, 500)
    assert "20 more rows and 24 more machines not shown" in (await http.get("/stats.svg")).text


async def test_the_judges_records_are_told_with_their_intervals(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.records = Records(position=7, judges=(Judge(model="phi4:14b", standing="sound", turned=share(5, 40)),))
    told = (await http.get("/stats/judges")).json()
    assert told["position"] == 7
    assert told["judges"][0]["turned"] | {"low": 0, "high": 0} == {"k": 5, "n": 40, "share": 0.125, "low": 0, "high": 0}
    assert told["judges"][0]["human"]["share"] is None
