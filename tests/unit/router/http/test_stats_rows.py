from __future__ import annotations

import msgspec
import pytest

from schemas.cells import Cell, fold
from schemas.samples import Sample
from services.router.fleet import Fleet
from services.router.http.stats_rows import FieldRow, StatsFilter, stats_rows
from support.router_port import DESKTOP

FLEET = Fleet(workers={"w-1": DESKTOP})
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


def test_integers_become_the_units_that_people_read() -> None:
    (row,) = stats_rows([fold([SPEED, QUALITY])], FLEET, StatsFilter(), 10_000_000)
    assert (row.worker_name, row.ok_n, row.fail_n, row.age_s) == ("desktop", 1, 0, 3.0)
    assert row.fields["decode"] == FieldRow(value=50.0, unit="tok/s", n=1, p50=50.0, p95=50.0)
    assert row.fields["total"] == FieldRow(value=2.5, unit="s", n=1, p50=2.5, p95=2.5)
    assert row.fields["output"].value == 100.0
    assert row.fields["quality"] == FieldRow(value=0.7, unit="0-1", n=1, p50=0.7, p95=0.7)


def test_what_was_never_measured_is_null_and_not_zero() -> None:
    (row,) = stats_rows([Cell(model="qwen3", domain="code")], FLEET, StatsFilter(), 10_000_000)
    assert (row.worker, row.worker_name, row.age_s) == (None, None, None)
    for name, field in row.fields.items():
        assert (field.value, field.n, field.p50, field.p95) == (None, 0, None, None), name


def test_every_quantity_of_a_cell_is_shown() -> None:
    (row,) = stats_rows([Cell(model="qwen3", domain="code")], FLEET, StatsFilter(), 0)
    quantities = {name for name in Cell.__struct_fields__ if hasattr(getattr(Cell(model="", domain=""), name), "p50")}
    assert set(row.fields) == quantities | {"slowdown", "others_weight"}


def test_what_several_streams_and_other_users_cost_is_shown_where_it_was_seen() -> None:
    shared = msgspec.structs.replace(SPEED, seq=2, concurrency=2, decode_us=3_000_000)
    beside = msgspec.structs.replace(SPEED, seq=3, others_u=500_000, decode_us=2_500_000)
    (row,) = stats_rows([fold([SPEED, shared, beside])], FLEET, StatsFilter(), 10_000_000)
    assert row.fields["slowdown"] == FieldRow(value=0.5, unit="per stream", n=1, p50=None, p95=None)
    assert row.fields["others_weight"].value == pytest.approx(0.4)


def test_rows_are_sorted_and_filtered() -> None:
    cells = [
        Cell(model=model, domain=domain, worker=worker)
        for model, domain, worker in [("b", "x", "w-1"), ("a", "y", "w-1"), ("a", "x", "w-9"), ("a", "x", None)]
    ]

    def shown(**wanted: str) -> list[tuple[str, str, str | None]]:
        rows = stats_rows(cells, FLEET, msgspec.convert(wanted, StatsFilter), 0)
        return [(row.model, row.domain, row.worker) for row in rows]

    assert shown() == [("a", "x", None), ("a", "x", "w-9"), ("a", "y", "w-1"), ("b", "x", "w-1")]
    assert shown(worker="desktop") == shown(worker="w-1") == [("a", "y", "w-1"), ("b", "x", "w-1")]
    assert shown(model="a", domain="x") == [("a", "x", None), ("a", "x", "w-9")]
    assert shown(model="c") == []
