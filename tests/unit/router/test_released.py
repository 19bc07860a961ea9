"""A release tells what every other pair would have cost, in the words of a decision."""

from __future__ import annotations

import msgspec

from schemas import codec, events
from schemas.events import Choice, TaskReleased, TaskRouted
from schemas.statistics import Statistics
from services.router.dispatch.outlook import Outlook
from services.router.dispatch.planner import plan
from services.router.released import with_candidates
from support.builders import build
from support.fleets import NOW_US, cell
from support.planning import Planning


def released(stats: Statistics, *, first: Choice) -> TaskReleased:
    """Of an open task over w1 with m and w2 with n, of which only m is in memory."""
    desk = Planning()
    desk.joins("w1", "m", resident=("m",))
    desk.joins("w2", "n", resident=(), use=0.5)
    desk.submit("t1", domain=events.Domain(label="code", method="rules"))
    desk.tell(build(TaskRouted, task="t1", choice=first, service_s=1.0))
    planned = plan(desk.state, desk.live, desk.now, desk.limits, outlook=Outlook(stats))
    (release,) = planned.releases
    told = build(TaskReleased, task="t1", attempt=1, candidates=(), uncertainty=None)
    return with_candidates(told, release, desk.task("t1"), desk.state, stats, NOW_US)


STATS = Statistics([cell("m", "code", "w1", decode=50.0, quality=0.8), cell("n", "code", "w2", decode=20.0)])


def test_where_the_first_idea_stands_no_other_pair_is_told() -> None:
    told = released(STATS, first=Choice(model="m", worker="w1"))
    assert told.candidates == ()
    assert told.uncertainty is not None
    assert told.uncertainty < 1.0


def test_where_it_changed_all_pairs_are_told_the_cheapest_first_with_all_their_parts() -> None:
    told = released(STATS, first=Choice(model="n", worker="w2"))
    assert [(c.model, c.worker) for c in told.candidates] == [("m", "w1"), ("n", "w2")]
    mine, other = told.candidates
    assert mine.cost_s < other.cost_s
    assert (mine.resident, other.resident, other.others_use) == (True, False, 0.5)
    assert mine.predicted.load_s == 0.0 < (other.predicted.load_s or 0.0)
    assert (mine.decode.level, other.decode.level) == ("cell", "cell")
    for candidate in told.candidates:
        parts = candidate.predicted
        seconds = [parts.wait_s, parts.load_s, parts.prefill_s, parts.decode_s, parts.sharing_s]
        assert parts.total_s == sum(s for s in seconds if s is not None)


def test_the_quality_that_a_cost_holds_is_told_with_it() -> None:
    """cost = seconds + N·W - 100 · slider · quality, of the recorded numbers alone."""
    for candidate in released(STATS, first=Choice(model="n", worker="w2")).candidates:
        total_s, others_s, quality = candidate.predicted.total_s, candidate.others_s, candidate.quality.value
        assert None not in (total_s, others_s, quality)
        assert candidate.cost_s == (total_s or 0.0) + ((others_s or 0.0) - 100.0 * (quality or 0.0))


def test_it_can_be_stored() -> None:
    told = released(STATS, first=Choice(model="n", worker="w2"))
    assert codec.decode(codec.encode(told)) == told
    assert msgspec.structs.replace(told, candidates=()) != told
