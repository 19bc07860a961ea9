"""Which pair of model and machine costs least, by hand: C + N·W(m) - s·quality."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from schemas import events
from services.router.dispatch.offers import Offer
from services.router.dispatch.permits import UNLIMITED, Counts, Limit, Limits
from support.planning import SPEED, Planning, taking


def best(desk: Planning, task: str, behind: int = 0, without: frozenset[str] = frozenset()) -> Offer:
    found = desk.bids().best(desk.task(task), behind, Counts(desk.limits, {}), without)
    assert found is not None
    return found


def chosen(desk: Planning, task: str, behind: int = 0) -> tuple[str, str]:
    offer = best(desk, task, behind)
    return offer.model, offer.worker


@pytest.fixture
def desk() -> Planning:
    """The small model answers in 10 s with 50 points, the big one in 40 s with 80: 30 s for 30 points."""
    speeds = {("small", "w1"): taking(10.0), ("big", "w2"): taking(40.0, quality=0.8)}
    desk = Planning(UNLIMITED, speeds)
    desk.joins("w1", "small")
    desk.joins("w2", "big")
    return desk


@pytest.mark.parametrize(
    ("slider", "model", "cost_s"),
    [(0.0, "small", 12.0), (0.9, "small", -33.0), (1.1, "big", -46.0), (2.0, "big", -118.0)],
)
def test_the_slider_is_what_one_more_point_of_quality_may_take(
    desk: Planning, slider: float, model: str, cost_s: float
) -> None:
    desk.arrives("t1", options=events.Options(slider=slider))
    offer = best(desk, "t1")
    assert (offer.model, offer.cost_s) == (model, pytest.approx(cost_s))


def test_without_a_slider_of_its_own_a_task_has_the_fleets(desk: Planning) -> None:
    desk.arrives("t1", options=events.Options())
    for slider, model in ((0.0, "small"), (2.0, "big")):
        desk.outlook.slider = slider
        assert chosen(desk, "t1")[0] == model


@pytest.mark.parametrize(("other_s", "taken"), [(10.5, "idle"), (12.0, "busy")])
def test_of_machines_that_are_nearly_equal_the_one_with_fewer_at_work_is_taken(other_s: float, taken: str) -> None:
    """2 s of prompt, 10 s of answer and 0.2 s of sharing on the one at work; a tenth of 12 s more is as good (case 19)."""
    desk = Planning(speeds={("m", "idle"): taking(other_s)})
    desk.joins("busy", free=2)
    desk.joins("idle", free=2)
    desk.busy("busy", "runs", free=1, left_s=0.2)
    desk.arrives("t1", model="m")
    assert best(desk, "t1").worker == taken


def test_tasks_behind_an_open_one_push_it_to_the_model_that_takes_less_of_the_fleet(desk: Planning) -> None:
    """W is 1 / Σ 1/S: 12 s for the small model, 42 s for the big one."""
    desk.arrives("t1", options=events.Options(slider=1.1))
    assert chosen(desk, "t1", behind=0)[0] == "big"
    offer = best(desk, "t1", behind=2)
    assert (offer.model, offer.others_s) == ("small", pytest.approx(24.0))


def test_w_is_shared_by_all_who_hold_the_model(desk: Planning) -> None:
    desk.joins("w3", "small")
    desk.arrives("t1", options=events.Options(slider=0.0))
    assert best(desk, "t1", behind=1).others_s == pytest.approx(6.0)


def test_a_task_with_a_fixed_model_pays_nothing_for_those_behind(desk: Planning) -> None:
    desk.arrives("t1", model="small")
    assert best(desk, "t1", behind=50).others_s == 0.0


def test_a_machine_whose_load_is_unknown_comes_last_and_is_taken_where_there_is_no_other(desk: Planning) -> None:
    desk.arrives("t1", model="small")
    desk.joins("w3", "small", use=0.9)
    bids, task, counts = desk.bids(), desk.task("t1"), Counts(UNLIMITED, {})
    bids.machines["w1"].fresh = False
    found = bids.best(task, 0, counts)
    assert found is not None and found.worker == "w3"
    found = bids.best(task, 0, counts, frozenset({"w3"}))
    assert found is not None and (found.worker, found.fresh) == ("w1", False)


def test_where_it_failed_it_goes_last_and_still_goes(desk: Planning) -> None:
    desk.joins("w3", "small", use=0.9)
    desk.arrives("t1", model="small")
    assert best(desk, "t1").worker == "w1"
    desk.busy("w1", "t1", "small")
    desk.fail("t1", "stall")
    desk.credit("w1")
    assert best(desk, "t1").worker == "w3"
    assert best(desk, "t1", without=frozenset({"w3"})).worker == "w1"


def test_equal_machines_are_drawn_among_and_each_task_always_draws_the_same() -> None:
    desk = Planning()
    for worker in ("w1", "w2", "w3"):
        desk.joins(worker)
    for n in range(60):
        desk.arrives(f"t{n}", model="m")
    drawn = [best(desk, f"t{n}").worker for n in range(60)]
    assert min(Counter(drawn).values()) > 8 and len(set(drawn)) == 3
    desk.state.workers = dict(reversed(desk.state.workers.items()))
    assert drawn == [best(desk, f"t{n}").worker for n in range(60)]


def test_of_equal_costs_the_better_pull_wins_then_the_machine_with_more_free_slots() -> None:
    desk = Planning()
    desk.joins("w1", priority=1)
    desk.joins("w2", priority=1, free=2)
    desk.arrives("t1", model="m")
    assert best(desk, "t1").worker == "w2"
    desk.credit("w1", priority=0)
    assert best(desk, "t1").worker == "w1"


def test_a_model_without_a_permit_is_no_choice_and_no_reason_while_another_has_one(desk: Planning) -> None:
    desk.arrives("t1", options=events.Options(slider=0.0))
    counts = Counts(Limits(model=Limit(1)), {"model:small": 1})
    found = desk.bids().best(desk.task("t1"), 0, counts)
    assert found is not None and found.model == "big"
    assert desk.bids().full(desk.task("t1"), counts) is None
    counts.take(("model:big",))
    assert desk.bids().best(desk.task("t1"), 0, counts) is None
    assert (desk.bids().full(desk.task("t1"), counts) or "").startswith("model_full: ")


def test_a_full_model_is_the_reason_where_nobody_is_there_for_the_other_one(desk: Planning) -> None:
    desk.live.workers["w2"].suspect = True
    desk.arrives("t1")
    counts = Counts(Limits(model=Limit(1)), {"model:small": 1})
    assert (desk.bids().full(desk.task("t1"), counts) or "").startswith("model_full: small")


def test_the_best_of_all_is_the_one_chosen(desk: Planning) -> None:
    desk.joins("w3", "small", "big", use=0.3)
    desk.arrives("t1")
    for behind in (0, 3):
        offers = desk.bids().all(desk.task("t1"), behind, Counts(UNLIMITED, {}))
        assert [(o.model, o.worker) for o in offers] == [("big", "w2"), ("big", "w3"), ("small", "w1"), ("small", "w3")]
        assert min(offers, key=lambda o: o.cost_s) == best(desk, "t1", behind)


def test_a_route_may_prefer_another_pair_and_may_leave_it_to_the_cost(desk: Planning) -> None:
    desk.arrives("t1", wants=events.Wants(route="mine"), options=events.Options(slider=0.0))
    desk.arrives("t2", options=events.Options(slider=0.0))
    desk.outlook.prefer = lambda task, offers: next(n for n, o in enumerate(offers) if o.model == "big")
    assert chosen(desk, "t1") == ("big", "w2")
    assert chosen(desk, "t2") == ("small", "w1")
    desk.outlook.prefer = lambda task, offers: None
    assert chosen(desk, "t1") == ("small", "w1")


def test_a_machine_without_a_pull_for_the_model_or_its_lane_is_not_free() -> None:
    desk = Planning()
    desk.joins("w1")
    desk.arrives("t1", model="m")
    assert best(desk, "t1").free
    desk.credit("w1", armed={})
    assert not best(desk, "t1").free
    assert desk.went() == []


def test_what_others_use_visibly_makes_a_machine_dearer() -> None:
    desk = Planning()
    desk.joins("w1", use=0.0)
    desk.arrives("t1", model="m")
    before = best(desk, "t1").cost_s
    desk.says("w1", ("m",), use=0.5)
    assert best(desk, "t1").cost_s == before + 12.0  # reading and answering, twice as slow
    assert SPEED.quality == 0.5


@pytest.mark.parametrize(("kind", "decode_s", "sharing_s"), [("chat", 10.0, 8.0), ("embedding", 0.0, 0.0)])
def test_embeddings_are_read_and_never_written_whatever_is_known_of_their_model(
    kind: events.Kind, decode_s: float, sharing_s: float
) -> None:
    """Nor does what runs beside them make them wait: a machine looked slower for each of its streams."""
    desk = Planning(UNLIMITED, {("m", "w1"): taking(10.0)._replace(slowdown=1.0)})
    desk.joins("w1", "m", free=2)
    desk.busy("w1", "t0", free=1, left_s=8.0)
    desk.arrives("t1", model="m")
    desk.task("t1").submitted = msgspec.structs.replace(desk.task("t1").submitted, kind=kind)
    parts = best(desk, "t1").parts
    assert (parts.decode_s, parts.sharing_s) == (pytest.approx(decode_s), pytest.approx(sharing_s))
