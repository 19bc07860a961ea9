"""Consumers are confirmed before they are used, told to who may pull, doubted when nobody can, and gone when unheld."""

from __future__ import annotations

from schemas import events
from schemas.subjects import group_durable, lane_durable
from services.router.dispatch.actions import DropConsumer, EnsureConsumer, Tell
from services.router.dispatch.consumers import HELLOS_BEFORE_DOUBT, UNHELD_S
from support.builders import build
from support.dispatching import Dispatch, of

GROUP, LANE = group_durable("cpu_inference", "m"), lane_durable("w1")


def hellos(desk: Dispatch) -> list[tuple[str, tuple[str, ...], bool]]:
    """(worker, what it may arm, whether a report is wanted) of each hello of a pass."""
    tells = [tell for tell in of(Tell, desk.settle()) if tell.control.command == "hello"]
    return [(tell.worker, tell.control.armable, tell.control.want_report) for tell in tells]


def test_a_report_brings_a_group_for_each_model_and_a_lane() -> None:
    desk = Dispatch()
    desk.report("w1", "m", "n", slots=2)
    made = of(EnsureConsumer, desk.decide())
    assert {(ensure.durable, ensure.slots) for ensure in made} == {
        (GROUP, 2), (group_durable("cpu_inference", "n"), 2), (LANE, 2),
    }  # fmt: skip
    assert desk.decide() == []  # on their way


def test_a_group_grows_with_its_holders() -> None:
    desk = Dispatch()
    desk.join("w1", free=2)
    desk.report("w2", slots=3)
    grown = {ensure.durable: ensure.config["max_ack_pending"] for ensure in of(EnsureConsumer, desk.settle())}
    assert grown == {GROUP: 10, lane_durable("w2"): 6}


def test_a_model_that_needs_what_its_worker_does_not_support_has_no_group() -> None:
    desk = Dispatch()
    gpu_only = events.ModelInfo(name="big", backend_name="big", capability="gpu_inference")
    embeds = events.ModelInfo(name="e", backend_name="e", capability="embedding")
    desk.report("w1", models=(gpu_only, embeds))
    made = {ensure.durable for ensure in of(EnsureConsumer, desk.settle())}
    assert made == {group_durable("embedding", "e"), LANE}


def test_hello_names_what_is_confirmed_until_the_credit_shows_it_armed() -> None:
    desk = Dispatch()
    desk.report("w1")
    desk.settle()
    desk.credit("w1", armed={})
    assert hellos(desk) == [("w1", (GROUP, LANE), False)]
    assert hellos(desk) == []
    desk.wait(1.0)
    desk.credit("w1", armed={LANE: 0})
    assert hellos(desk) == [("w1", (GROUP, LANE), False)]
    desk.wait(1.0)
    desk.credit("w1")
    assert hellos(desk) == []


def test_nobody_says_hello_to_who_is_silent_drains_or_left() -> None:
    desk = Dispatch()
    desk.report("w1")
    desk.settle()
    desk.credit("w1", armed={}, draining=True)
    assert hellos(desk) == []
    desk.tell(build(events.WorkerLeft, worker="w1", boot="b1"))
    desk.credit("w1", armed={})
    assert hellos(desk) == []
    desk.report("w1", boot="b2")
    desk.credit("w1", armed={}, boot="b2")
    desk.wait(16.0)
    assert hellos(desk) == []


def test_a_worker_that_the_log_does_not_know_is_asked_for_its_report() -> None:
    desk = Dispatch()
    desk.credit("w1", armed={})
    assert hellos(desk) == [("w1", (), False)]  # the report is probably on its way
    desk.wait(1.0)
    assert hellos(desk) == [("w1", (), True)]


def test_a_consumer_that_nobody_can_arm_is_made_again() -> None:
    desk = Dispatch()
    desk.report("w1")
    desk.settle()
    made: set[str] = set()
    for _ in range(HELLOS_BEFORE_DOUBT + 1):
        desk.credit("w1", armed={LANE: 0})
        made |= {ensure.durable for ensure in of(EnsureConsumer, desk.settle())}
        desk.wait(1.0)
    assert made == {GROUP}


def test_a_consumer_goes_after_an_hour_without_holders_and_comes_back_with_one() -> None:
    desk = Dispatch()
    desk.join("w1", "m", "n")
    gone = group_durable("cpu_inference", "n")
    desk.report("w1", "m")
    assert desk.settle() == []
    desk.wait(UNHELD_S)
    assert desk.settle() == []
    desk.wait(1.0)
    assert [drop.durable for drop in of(DropConsumer, desk.settle())] == [gone]
    desk.report("w1", "m", "n")
    assert [ensure.durable for ensure in of(EnsureConsumer, desk.settle())] == [gone]
