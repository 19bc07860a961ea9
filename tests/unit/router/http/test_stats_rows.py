"""What a row says: the cell's own samples in units people read, what the planner makes of them, and why a null is null."""

from __future__ import annotations

import msgspec
import pytest

from schemas.cells import Cell, fold
from schemas.explanation import quality_spread, spread_of
from schemas.pools import Statistics
from schemas.samples import Sample
from schemas.statistics import effective
from services.router.fleet import Fleet
from services.router.http.stats_filter import StatsFilter
from services.router.http.stats_rows import NO_MACHINE, FieldRow, StatsRow, stats_page
from support.router_port import DESKTOP, LAPTOP

FLEET = Fleet(workers={"w-1": DESKTOP})
BOTH = Fleet(workers={"w-1": DESKTOP, "w-2": LAPTOP})
SPEED = Sample(
    seq=1,
    at_us=5_000_000,
    kind="speed",
    model="qwen3",
    domain="code",
    worker="w-1",
    ok=True,
    decode_tok=100,
    decode_us=2_000_000,
    total_us=2_500_000,
    output_tok=100,
)
QUALITY = Sample(
    seq=2,
    at_us=7_000_000,
    kind="quality",
    model="qwen3",
    domain="code",
    worker="w-1",
    quality_u=700_000,
    quality_w_u=1_000_000,
)


def rows_of(*cells: Cell, now_us: int = 10_000_000, fleet: Fleet = FLEET, **wanted: object) -> tuple[StatsRow, ...]:
    return stats_page(Statistics(cells), fleet, msgspec.convert(wanted, StatsFilter), now_us).rows


def test_integers_become_the_units_that_people_read() -> None:
    (row,) = rows_of(fold([SPEED, QUALITY]))
    assert (row.worker_name, row.ok_n, row.fail_n, row.age_s) == ("desktop", 1, 0, 3.0)
    assert row.fields["decode"] == FieldRow(value=50.0, unit="tok/s", n=1, p50=50.0, p95=50.0)
    assert row.fields["total"] == FieldRow(value=2.5, unit="s", n=1, p50=2.5, p95=2.5)
    assert row.fields["output"].value == 100.0
    assert row.fields["quality"] == FieldRow(value=0.7, unit="0-1", n=1, p50=0.7, p95=0.7)


def test_what_was_never_measured_is_null_and_not_zero() -> None:
    (row,) = rows_of(Cell(model="qwen3", domain="code"))
    assert (row.worker, row.worker_name, row.age_s) == (None, None, None)
    for name, field in row.fields.items():
        assert (field.value, field.n, field.p50, field.p95) == (None, 0, None, None), name
        assert field.reason, name


def test_every_quantity_of_a_cell_is_shown() -> None:
    (row,) = rows_of(Cell(model="qwen3", domain="code"))
    quantities = {name for name in Cell.__struct_fields__ if hasattr(getattr(Cell(model="", domain=""), name), "p50")}
    assert set(row.fields) == quantities | {"slowdown", "others_weight"}


def test_what_several_streams_and_other_users_cost_is_shown_where_it_was_seen() -> None:
    shared = msgspec.structs.replace(SPEED, seq=2, concurrency=2, decode_us=3_000_000)
    beside = msgspec.structs.replace(SPEED, seq=3, others_u=500_000, decode_us=2_500_000)
    (row,) = rows_of(fold([SPEED, shared, beside]))
    assert row.fields["slowdown"] == FieldRow(value=0.5, unit="per stream", n=1, p50=None, p95=None)
    assert row.fields["others_weight"].value == pytest.approx(0.4)


def test_what_the_planner_counts_with_stands_beside_what_was_measured() -> None:
    cell = fold([SPEED, QUALITY])
    (row,) = rows_of(cell)
    known = effective(Statistics([cell]), "qwen3", "code", "w-1", model_bytes=None, now_us=10_000_000)
    decode = row.expected["decode"]
    assert (decode.value, decode.level, decode.n, decode.age_s) == (known.decode.value, "cell", 1, 5.0)
    assert decode.value and decode.spread == decode.value * spread_of(known) > 1
    quality = row.expected["quality"]
    assert quality.value == known.quality.value
    assert quality.spread == quality_spread(Statistics([cell]), "qwen3", "code") == pytest.approx(0.5 / 7**0.5)
    assert set(row.expected) == {"decode", "prefill", "load", "output_tokens", "quality"}


def test_a_judgement_without_a_machine_has_no_speed_and_says_why() -> None:
    (row,) = rows_of(fold([msgspec.structs.replace(QUALITY, worker=None)]))
    for name in ("decode", "prefill", "load"):
        assert (row.expected[name].value, row.expected[name].reason) == (None, NO_MACHINE)
    assert row.fields["decode"].reason == NO_MACHINE
    assert row.expected["quality"].value is not None and row.fields["quality"].reason is None


def keys(rows: tuple[StatsRow, ...]) -> list[tuple[str, str, str | None]]:
    return [(row.model, row.domain, row.worker) for row in rows]


def test_rows_are_sorted_by_name_and_come_in_pages() -> None:
    cells = [
        Cell(model=model, domain=domain, worker=worker)
        for model, domain, worker in [("b", "x", "w-1"), ("a", "y", "w-1"), ("a", "x", "w-9"), ("a", "x", None)]
    ]
    everything = keys(rows_of(*cells))
    assert everything == [("a", "x", None), ("a", "x", "w-9"), ("a", "y", "w-1"), ("b", "x", "w-1")]
    page = stats_page(Statistics(cells), FLEET, StatsFilter(limit=3), 0)
    assert (keys(page.rows), page.total, page.next_offset) == (everything[:3], 4, 3)
    page = stats_page(Statistics(cells), FLEET, StatsFilter(limit=3, offset=3), 0)
    assert (keys(page.rows), page.total, page.next_offset) == (everything[3:], 4, None)


@pytest.mark.parametrize("sort", ["decode", "quality", "n", "age"])
def test_the_best_come_first_and_what_was_never_measured_last(sort: str) -> None:
    slow = fold([msgspec.structs.replace(SPEED, worker="w-1", decode_us=9_000_000, at_us=1)])
    fast = fold(
        [
            msgspec.structs.replace(sample, worker="w-2", seq=seq)
            for seq, sample in enumerate((SPEED, SPEED, QUALITY), start=3)
        ]
    )
    never = Cell(model="a", domain="code", worker="w-3")
    assert next(row.worker for row in rows_of(never, slow, fast, sort=sort)) == "w-2"
    if sort in ("decode", "n"):
        assert [row.worker for row in rows_of(never, slow, fast, sort=sort)] == ["w-2", "w-1", "w-3"]


def test_pairs_that_are_held_but_were_never_measured_are_shown_as_guesses_when_asked_for() -> None:
    measured = fold([SPEED])
    assert keys(rows_of(measured, fleet=BOTH)) == [("qwen3", "code", "w-1")]
    rows = rows_of(measured, fleet=BOTH, guesses=True)
    assert keys(rows) == [
        ("qwen3", "code", "w-1"),
        ("smollm2:135m", "code", "w-1"),
        ("smollm2:135m", "code", "w-2"),
    ]
    guess = rows[-1]
    assert (guess.ok_n, guess.age_s, guess.fields["decode"].value) == (0, None, None)
    assert (guess.expected["decode"].level, guess.expected["decode"].n) == ("prior", 0)
