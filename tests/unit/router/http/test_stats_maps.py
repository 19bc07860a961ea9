"""Where a block stands, what is in it, and that nobody's silence looks like a number."""

from __future__ import annotations

import msgspec
import pytest

from schemas.cells import Sums
from schemas.pools import Statistics
from services.router.fleet import Fleet
from services.router.http.stats_filter import resolved
from services.router.http.stats_maps import NOT_HELD, NOTHING, HeatMap, MapFilter, heat_map
from support.router_port import DESKTOP, LAPTOP
from support.wide_stats import measured, wide

FLEET = Fleet(workers={"w-1": DESKTOP, "w-2": LAPTOP})
STATS = Statistics(
    [
        measured("qwen3", "code", "w-1", 80.0),
        measured("qwen3", "maths", "w-1", 82.0),
        msgspec.structs.replace(measured("smollm2:135m", "code", "w-1", 200.0), quality=Sums()),
    ]
)


def shown(of: str, **wanted: object) -> HeatMap:
    return heat_map(of, STATS, FLEET, resolved(msgspec.convert(wanted, MapFilter), STATS, FLEET))  # type: ignore[arg-type]


def block(found: HeatMap, model: str, domain: str | None, column: str) -> tuple[float | None, str, str | None]:
    row = next(row for row in found.rows if (row.model, row.domain) == (model, domain))
    at = row.blocks[found.columns.index(column)]
    return at.value, at.level, at.reason


def test_speed_has_a_row_for_each_model_and_domain_and_a_column_for_each_machine() -> None:
    found = shown("decode")
    assert found.columns == ("desktop", "laptop")
    assert [(row.model, row.domain) for row in found.rows] == [
        ("qwen3", "code"),
        ("qwen3", "maths"),
        ("smollm2:135m", "code"),
    ]
    value, level, _ = block(found, "qwen3", "code", "desktop")
    assert level == "cell" and value == pytest.approx(80, rel=0.1)


def test_what_is_not_held_and_what_nobody_measured_are_null_each_with_its_reason() -> None:
    found = shown("decode")
    assert block(found, "qwen3", "code", "laptop") == (None, "prior", NOT_HELD)
    empty = heat_map("decode", Statistics(), FLEET, MapFilter())
    assert {at.reason for row in empty.rows for at in row.blocks} == {NOTHING, NOT_HELD}
    assert all(at.value is None for row in empty.rows for at in row.blocks)


def test_what_was_worked_out_from_its_parents_says_so() -> None:
    value, level, _ = block(shown("decode"), "smollm2:135m", "code", "laptop")
    assert value is not None and level == "model"


def test_quality_has_a_row_for_each_model_and_a_column_for_each_domain() -> None:
    found = shown("quality")
    assert found.columns == ("code", "maths")
    value, level, _ = block(found, "qwen3", None, "maths")
    assert level == "cell" and value == pytest.approx(0.62, abs=0.05)
    assert block(found, "smollm2:135m", None, "code") == (None, "prior", NOTHING)


def test_filters_choose_rows_and_columns() -> None:
    assert shown("decode", worker="laptop").columns == ("laptop",)
    assert {row.model for row in shown("decode", model="qwen3").rows} == {"qwen3"}
    assert {row.domain for row in shown("decode", domain="maths").rows} == {"maths"}
    assert shown("quality", domain="code").columns == ("code",)


def test_a_part_says_how_large_the_whole_is() -> None:
    stats, fleet = wide(30, 5, 3)
    found = heat_map("decode", stats, fleet, MapFilter(row=6, rows=4, column=20, columns=20))
    assert (found.rows_total, found.columns_total, len(found.rows), len(found.columns)) == (15, 30, 4, 10)
    assert found.columns[0] == "gpu-020" and (found.rows[0].model, found.rows[0].domain) == ("org/model-02:8b", "code")


def test_a_blocks_value_depends_on_nothing_that_is_shown_beside_it() -> None:
    alone, beside = shown("decode", worker="desktop", model="qwen3"), shown("decode")
    assert block(alone, "qwen3", "code", "desktop") == block(beside, "qwen3", "code", "desktop")
