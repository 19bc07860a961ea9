from __future__ import annotations

import pytest

from schemas.pools import Statistics
from schemas.statistics import effective
from services.router.fleet import Fleet
from services.router.http.stats_explained import SPEEDS, ExplainCell, Explained, explained, filter_of
from services.router.http.stats_filter import resolved
from services.router.http.stats_rows import NO_MACHINE
from support.router_port import DESKTOP, LAPTOP
from support.wide_stats import GB, NOW_US, measured

FLEET = Fleet(workers={"w-1": DESKTOP, "w-2": LAPTOP})
STATS = Statistics([measured("qwen3", "code", "w-1", 80.0), measured("qwen3", "maths", None, 10.0)])


def of(**names: str) -> Explained:
    wanted = resolved(filter_of(ExplainCell(**names)), STATS, FLEET)
    return explained(STATS, FLEET, wanted, NOW_US + 5_000_000)


def test_it_ends_at_what_the_planner_counts_with() -> None:
    told = of(model="qwen3", domain="code", worker="desktop")
    known = effective(STATS, "qwen3", "code", "w-1", model_bytes=None, now_us=NOW_US + 5_000_000)
    assert told.fields["decode"].measure == known.decode
    assert told.fields["decode"].levels[-1].result == known.decode.value
    assert told.row.expected["decode"].value == known.decode.value
    assert (told.row.worker_name, told.row.ok_n, told.model_bytes) == ("desktop", 9, GB)
    assert told.unknown == {} and told.confidence.machine_weight == pytest.approx(9, rel=1e-4)


def test_a_cell_of_which_nothing_was_measured_shows_only_its_parents() -> None:
    told = of(model="qwen3", domain="code", worker="laptop")
    assert (told.row.ok_n, told.row.fields["decode"].value, told.as_ran) == (0, None, {})
    levels = {level.level: level.value for level in told.fields["decode"].levels}
    assert levels["cell"] is None and levels["model"] is not None


def test_without_a_machine_speed_is_null_with_the_reason() -> None:
    told = of(model="qwen3", domain="maths")
    assert {name for name, field in told.fields.items() if field is None} == set(SPEEDS)
    assert told.unknown["decode"] == NO_MACHINE and told.confidence is None
    assert told.fields["quality"].measure.value == told.row.expected["quality"].value
