"""``headrace stats`` over the real HTTP surfaces: tables, maps, one cell's sum, a picture, and names that nobody has."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from services.cli.__main__ import run
from services.cli.exits import Exit
from services.router.http.app import create_app
from services.router.http.serving import serving
from support.router_port import MemoryRouter
from support.wide_stats import measured, wide

NAME = "Qwen/Qwen3-8B:q4"
Type = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
def router() -> MemoryRouter:
    router = MemoryRouter()
    for cell in (
        measured("qwen3", "code", "w-1", 80.0),
        measured(NAME, "code", "w-1", 60.0),
        measured("smollm2:135m", "maths", "w-2", 9.0),
    ):
        router.numbers.put(cell)
    return router


@pytest.fixture
async def stats(
    router: MemoryRouter, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Type]:
    monkeypatch.setenv("COLUMNS", "100")
    async with serving(create_app(router), "127.0.0.1", 0) as url:

        async def typed(*words: str) -> tuple[int, str, str]:
            code = await asyncio.to_thread(run, ["stats", *words, "--router", url])
            return code, *capsys.readouterr()

        yield typed


async def test_the_table_comes_first_and_the_maps_below(stats: Type) -> None:
    code, out, _ = await stats()
    assert code == Exit.OK
    assert out.index("answers") < out.index("Speed: tokens/s") < out.index("Quality: points of 100")
    assert all(name in out for name in ("qwen3", NAME, "desktop", "laptop", "maths"))


@pytest.mark.parametrize(
    ("option", "there", "gone"), [("--speed", "Speed:", "Quality:"), ("--quality", "Quality:", "Speed:")]
)
async def test_one_of_the_two_can_be_had_alone(stats: Type, option: str, there: str, gone: str) -> None:
    _, out, _ = await stats(option)
    assert there in out and gone not in out


async def test_filters_and_order_are_the_routers(stats: Type) -> None:
    _, out, _ = await stats("-w", "laptop", "--json")
    assert [row["model"] for row in json.loads(out)["rows"]] == ["smollm2:135m"]
    _, out, _ = await stats("--sort", "decode", "--json")
    assert [row["model"] for row in json.loads(out)["rows"]] == ["qwen3", NAME, "smollm2:135m"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-m", "nope"), "nearest: "),
        (("-m", "qwen33"), "nearest: qwen3"),
        (("-d", "cod"), "nearest: code"),
        (("-w", "desk"), "nearest: desktop"),
        (("--explain", "qwen3/cod/desktop"), "nearest: code"),
        (("--explain", "qwen3/code/nobody"), "nearest: "),
        (("--svg", "never-written.svg", "-m", "nope"), "nearest: "),
    ],
)
async def test_a_name_that_nobody_has_is_answered_with_the_nearest(
    stats: Type, words: tuple[str, ...], said: str
) -> None:
    code, out, err = await stats(*words)
    assert (code, out) == (Exit.NOT_FOUND, "") and said in err
    assert "measured yet" not in err and not Path("never-written.svg").exists()


@pytest.mark.parametrize("words", [(f"{NAME}/code/desktop",), ("-", "-m", NAME, "-d", "code", "-w", "desktop")])
async def test_a_cell_explains_itself_by_its_path_or_by_three_options(stats: Type, words: tuple[str, ...]) -> None:
    code, out, err = await stats("--explain", *words)
    assert code == Exit.OK, err
    assert f"{NAME} · code · desktop:" in out and "By hand:" in out
    _, raw, _ = await stats("--explain", *words, "--json")
    decode = json.loads(raw)["fields"]["decode"]
    assert decode["levels"][-1]["result"] == decode["measure"]["value"]


async def test_half_a_cell_is_wrong_usage(stats: Type) -> None:
    code, _, err = await stats("--explain", "qwen3/desktop")
    assert code == Exit.USAGE and "for example" in err


async def test_the_picture_is_written_where_asked(stats: Type, tmp_path: Path) -> None:
    file = tmp_path / "reports" / "stats.svg"
    code, out, err = await stats("--svg", str(file))
    assert (code, out) == (Exit.OK, "") and str(file) in err.replace("\n", "")
    assert file.read_text().startswith("<svg") and NAME in file.read_text()


async def test_a_wide_fleet_comes_in_pages_and_whole_as_json(stats: Type, router: MemoryRouter) -> None:
    router.numbers, router.view = wide(40, 10, 4)
    _, out, _ = await stats()
    assert "… 1540 more rows: choose with -m, -d or -w, or `--page N`" in out
    assert "more machines: choose with -m, -d or -w" in out
    _, last, _ = await stats("--page", "27")
    assert "gpu-039" in last and "more rows" not in last and "Speed:" not in last
    _, raw, _ = await stats("--json")
    body = json.loads(raw)
    assert len(body["rows"]) == body["total"] == 1600
    assert len({(row["model"], row["domain"], row["worker"]) for row in body["rows"]}) == 1600


async def test_an_empty_fleet_says_how_to_get_statistics(stats: Type, router: MemoryRouter) -> None:
    router.numbers = type(router.numbers)()
    code, out, _ = await stats()
    assert code == Exit.OK and "headrace ask" in out


async def test_a_page_beyond_the_last_says_so(stats: Type) -> None:
    code, out, _ = await stats("--page", "9")
    assert code == Exit.OK and "no page 9" in out


async def test_what_was_never_measured_is_told_apart_from_a_fleet_that_is_new(stats: Type) -> None:
    code, out, _ = await stats("-m", "qwen3", "-w", "laptop")
    assert code == Exit.OK and "Nothing was measured of that yet; with `--all`" in out
    code, out, _ = await stats("-m", "smollm2:135m", "-w", "desktop", "--all")
    assert "~" in out and "never" in out
