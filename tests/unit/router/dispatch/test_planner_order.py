"""One pass over the queue: who takes which machine, who may be jumped, and whom nobody may hide (ROUTING.md B3.5)."""

from __future__ import annotations

import pytest

from schemas import events
from services.router.dispatch.live import Wait
from services.router.dispatch.permits import UNLIMITED, Limit, Limits
from services.router.dispatch.planner import BYPASS_AGE_MOST_S, WINDOW
from services.router.dispatch.recording import RECORDED_MOST
from support.builders import build
from support.planning import ANSWER_S, LOAD_S, PROMPT_S, Planning, taking

FAST_S = PROMPT_S + ANSWER_S


def pair(slow_s: float, left_s: float) -> Planning:
    """The fast machine needs 12 s for a task and is busy for ``left_s``; the slow one is free and needs ``slow_s``."""
    desk = Planning(speeds={("m", "slow"): taking(slow_s - PROMPT_S)})
    desk.joins("fast")
    desk.joins("slow")
    desk.busy("fast", "runs", left_s=left_s)
    return desk


@pytest.mark.parametrize(("slow_s", "taken"), [(19.9, True), (20.1, False)])
def test_a_slower_free_machine_is_taken_exactly_when_it_is_done_sooner(slow_s: float, taken: bool) -> None:
    """The fast one is done with it after 8 + 12 s."""
    desk = pair(slow_s, 8.0)
    desk.arrives("t1", model="m")
    assert desk.went() == ([("t1", "slow")] if taken else [])
    if not taken:
        assert desk.code("t1") == "waiting_for_faster"
        assert desk.plan().starts["t1"] == pytest.approx(8.0)


def test_what_waits_for_the_fast_machine_lets_a_later_task_have_the_slow_one() -> None:
    """30 s there; the first is done after 20 s, the second would be after 32 s."""
    desk = pair(30.0, 8.0)
    for task in ("t1", "t2", "t3"):
        desk.arrives(task, model="m")
    assert desk.went() == [("t2", "slow")]
    planned = desk.plan()
    assert planned.starts["t1"] == pytest.approx(8.0)
    assert planned.starts["t3"] == pytest.approx(8.0 + FAST_S)


def test_a_game_on_the_fast_machine_sends_the_task_to_the_slow_one() -> None:
    desk = Planning(speeds={("m", "slow"): taking(20.0)})
    desk.joins("fast")
    desk.joins("slow")
    desk.arrives("t1", model="m")
    assert desk.went() == [("t1", "fast")]
    desk.says("fast", ("m",), use=0.6)
    assert desk.went() == [("t1", "slow")]
    desk.says("fast", ("m",), use=None)
    assert desk.went() == [("t1", "slow")], "what nobody knows is no better"


# -- the warm look-ahead -----------------------------------------------------------------------------------------------


def cold(*models: str) -> Planning:
    """One free machine with ``warm`` in memory and room for one; tasks for these models wait in this order."""
    desk = Planning()
    desk.joins("w1", "warm", "cold", resident=("warm",))
    for n, model in enumerate(models):
        desk.arrives(f"t{n}", model=model)
    return desk


def test_before_a_machine_swaps_models_a_task_goes_that_finds_its_own_there() -> None:
    desk = cold("cold", "cold", "warm")
    planned = desk.plan()
    assert [release.task for release in planned.releases] == ["t2"]
    assert planned.bypasses == {"t0": 1, "t1": 1}


def test_nobody_is_jumped_where_no_model_need_be_loaded() -> None:
    assert cold("warm", "warm").plan().bypasses == {}
    assert cold("cold", "cold").went() == [("t0", "w1")]


@pytest.mark.parametrize(("between", "jumps"), [(7, True), (8, False)])
def test_it_looks_so_far_and_no_further(between: int, jumps: bool) -> None:
    desk = cold("cold", *["cold"] * between, "warm")
    assert desk.went() == [(f"t{between + 1}" if jumps else "t0", "w1")]


def test_a_task_is_jumped_four_times_counting_everyone_who_is() -> None:
    desk = cold("cold", "cold", "warm")
    desk.live.waits["t1"] = Wait(bypasses=3)
    assert desk.went() == [("t2", "w1")]
    desk.live.waits["t1"] = Wait(bypasses=4)
    assert desk.went() == [("t0", "w1")]


def test_within_one_pass_too() -> None:
    """A machine of six slots, each of which could swap: the head is jumped four times and goes then."""
    desk = Planning(
        speeds={("warm", "w1"): taking(ANSWER_S, slowdown=0.0), ("cold", "w1"): taking(ANSWER_S, slowdown=0.0)}
    )
    desk.joins("w1", "warm", "cold", free=6, resident=("warm",))
    desk.arrives("head", model="cold")
    for n in range(8):
        desk.arrives(f"t{n}", model="warm")
    planned = desk.plan()
    assert [release.task for release in planned.releases][:5] == ["t0", "t1", "t2", "t3", "head"]
    assert planned.bypasses == {"head": 4}


def test_an_old_task_is_not_jumped() -> None:
    desk = cold("cold", "warm")
    desk.live.seen["t0"] = desk.now
    desk.wait(BYPASS_AGE_MOST_S)
    desk.credit("w1")
    desk.says("w1", ("warm",))
    assert desk.went() == [("t0", "w1")]


def test_a_machine_that_is_not_free_is_not_jumped_for() -> None:
    desk = cold("cold", "warm")
    desk.busy("w1", "runs", "warm")
    assert (desk.went(), desk.plan().bypasses) == ([], {})


def test_who_wants_another_machine_does_not_jump_for_this_one() -> None:
    """The warm task is done sooner on the machine that is only for it."""
    desk = Planning(speeds={("warm", "w2"): taking(1.0)})
    desk.joins("w1", "warm", "cold", resident=("warm",))
    desk.joins("w2", "warm", priority=0)
    desk.arrives("t0", model="cold")
    desk.arrives("t1", model="warm")
    assert desk.went() == [("t0", "w1"), ("t1", "w2")]
    assert desk.plan().bypasses == {}


def test_loading_costs_its_seconds_and_a_cold_machine_is_taken_when_that_pays() -> None:
    for left_s, expected in ((LOAD_S - 0.1, []), (LOAD_S + 0.1, [("t1", "cold")])):
        desk = Planning()
        desk.joins("hot")
        desk.joins("cold", resident=())
        desk.busy("hot", "runs", left_s=left_s)
        desk.arrives("t1", model="m")
        assert desk.went() == expected


# -- shorter tasks first, within a budget ------------------------------------------------------------------------------


def test_a_long_task_is_passed_by_a_minute_of_shorter_work_and_no_more_within_one_pass() -> None:
    desk = Planning(speeds={("m", "w1"): taking(ANSWER_S, slowdown=0.0)})
    desk.joins("w1", free=12)
    desk.arrives("long", model="m", service_s=100.0)
    for n in range(11):
        desk.wait(0.1)
        desk.arrives(f"t{n}", model="m", service_s=15.0)
    planned = desk.plan()
    assert [release.task for release in planned.releases][:6] == ["t0", "t1", "t2", "t3", "long", "t4"]
    assert planned.overtaken_s == {"long": 60.0}


def test_what_passed_it_before_counts() -> None:
    desk = Planning()
    desk.joins("w1")
    desk.arrives("long", model="m", service_s=100.0)
    desk.arrives("short", model="m", service_s=15.0)
    desk.live.waits["long"] = Wait(overtaken_s=59.0)
    assert desk.went() == [("short", "w1")]
    desk.live.waits["long"] = Wait(overtaken_s=60.0)
    assert desk.went() == [("long", "w1")]


def test_another_class_is_not_counted() -> None:
    desk = Planning()
    desk.joins("w1", free=2)
    desk.arrives("background", model="m", service_s=100.0, urgency="background")
    desk.arrives("short", model="m", service_s=15.0)
    planned = desk.plan()
    assert ([r.task for r in planned.releases], planned.overtaken_s) == (["short", "background"], {})


# -- the window --------------------------------------------------------------------------------------------------------


def crowd(limits: Limits = UNLIMITED) -> Planning:
    """More than a window of tasks for a busy machine, then one for another, which is free."""
    desk = Planning(limits)
    desk.joins("laptop", "large")
    desk.joins("desk", "small")
    desk.busy("laptop", "runs", "large")
    for n in range(WINDOW + 6):
        desk.arrives(f"t{n}", model="large")
    desk.arrives("other", model="small")
    return desk


@pytest.mark.parametrize("explain", [True, False])
def test_a_crowd_before_a_busy_machine_hides_nobody_from_a_free_one(explain: bool) -> None:
    assert crowd().went(explain=explain) == [("other", "desk")]


def test_nor_does_a_crowd_before_a_full_backend() -> None:
    desk = crowd(Limits(backend=Limit(names={"laptop": 1})))
    desk.credit("laptop", ("runs", 1), free=1, slots=2)
    assert desk.went() == [("other", "desk")]
    assert desk.code("t0") == "backend_full"


def test_who_is_kept_from_a_full_backend_queues_at_the_next_machine_and_the_rest_take_a_slower_one() -> None:
    """The wide machine has slots and no permit. The next one is done after 15 s, then after 27 s; the slow one after 25 s."""
    desk = Planning(Limits(backend=Limit(names={"wide": 1})), {("m", "slow"): taking(23.0)})
    desk.joins("wide", free=8)
    desk.joins("next")
    desk.joins("slow")
    desk.busy("wide", "r1", free=7, left_s=0.5)
    desk.busy("next", "r2", left_s=3.0)
    for task in ("t1", "t2"):
        desk.arrives(task, model="m")
    planned = desk.plan()
    assert [(release.task, release.expected) for release in planned.releases] == [("t2", "slow")]
    assert planned.holds["t1"].startswith("backend_full: ")
    assert planned.starts["t1"] == pytest.approx(3.0)


@pytest.mark.parametrize("kind", ["model", "client"])
def test_nor_do_tasks_that_a_limit_holds_back(kind: str) -> None:
    limit = Limit(names={"large": 1}) if kind == "model" else Limit(names={"greedy": 1})
    desk = Planning(Limits(**{kind: limit}))
    desk.joins("w1", "large", "small", free=3)
    desk.arrives("first", model="large", client="greedy")
    for n in range(WINDOW + 6):
        desk.arrives(f"t{n}", model="large", client="greedy")
    desk.arrives("other", model="small")
    assert desk.went() == [("first", "w1"), ("other", "w1")]


@pytest.mark.parametrize(("slow_s", "went"), [(290.0, [("t23", "slow")]), (302.0, [])])
def test_the_window_is_24_held_tasks_for_the_same_machines(slow_s: float, went: list[tuple[str, str]]) -> None:
    """The n-th in line is done after 8 + 12 n s on the fast machine: the 24th after 296 s, the 25th after 308 s."""
    desk = pair(slow_s, 8.0)
    for n in range(30):
        desk.arrives(f"t{n}", model="m")
    assert desk.went() == went


def test_everybody_behind_the_window_has_a_reason_and_a_start() -> None:
    desk = crowd()
    planned = desk.plan()
    waiting = {f"t{n}" for n in range(WINDOW + 6)}
    assert set(planned.holds) == set(planned.starts) == waiting
    starts = [planned.starts[f"t{n}"] for n in range(WINDOW + 6)]
    assert None not in starts and starts == sorted(s for s in starts if s is not None)
    assert {reason.partition(":")[0] for reason in planned.holds.values()} == {"busy"}


def test_a_wider_window_says_more_and_releases_the_same() -> None:
    desk = crowd()
    assert desk.went(window=200) == desk.went() == desk.went(window=1)


# -- what a release says -----------------------------------------------------------------------------------------------


def test_a_release_records_the_machine_that_it_is_for_however_many_there_are() -> None:
    idea, last = f"w{RECORDED_MOST + 4:03}", f"w{RECORDED_MOST + 8:03}"
    desk = Planning(speeds={("m", last): taking(1.0)})
    for n in range(RECORDED_MOST + 9):
        desk.joins(f"w{n:03}")
    desk.submit("t1", model="m")
    desk.tell(build(events.TaskRouted, task="t1", choice=events.Choice(model="m", worker=idea), service_s=1.0))
    release = desk.release("t1")
    assert release.expected == last
    assert len(release.inputs) == len(release.offers) == RECORDED_MOST
    assert last in {given.worker for given in release.inputs}
    assert {idea, last} <= {offer.worker for offer in release.offers}
    assert [given.worker for given in release.inputs] == sorted(given.worker for given in release.inputs)


def test_a_release_records_each_machine_that_could_have_served_once() -> None:
    desk = Planning()
    for worker in ("w3", "w1", "w2"):
        desk.joins(worker)
    desk.joins("other", "n")
    desk.arrives("t1", model="m")
    assert [given.worker for given in desk.release("t1").inputs] == ["w1", "w2", "w3"]


def test_a_deadline_that_has_passed_ends_in_busy() -> None:
    desk = Planning()
    desk.joins("w1")
    desk.busy("w1", "runs")
    desk.arrives("t1", model="m", deadline_s=5.0)
    desk.settle()
    desk.wait(5.1)
    desk.settle()
    failed = next(event for event in desk.stored.values() if isinstance(event, events.TaskFailed))
    assert (failed.task, failed.failure) == ("t1", "busy")


def test_a_draining_fleet_keeps_the_queue_whole() -> None:
    desk = Planning()
    desk.joins("w1")
    desk.credit("w1", draining=True)
    desk.arrives("t1", model="m")
    assert (desk.went(), desk.code("t1")) == ([], "silent")
