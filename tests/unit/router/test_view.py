"""How tasks, machines and the queue look to people."""

from __future__ import annotations

import msgspec
import pytest

from schemas import events
from schemas.statistics import Statistics
from services.router.dispatch.planner import plan
from services.router.view import fleet_of, queue_of, status_of
from support.builders import build
from support.dispatching import Dispatch


@pytest.fixture
def desk() -> Dispatch:
    desk = Dispatch()
    desk.join("w1")
    return desk


def state_of(desk: Dispatch, task: str) -> str:
    return status_of(desk.task(task), now_us=0).state


def test_a_task_goes_through_its_states(desk: Dispatch) -> None:
    desk.submit("t1")
    assert state_of(desk, "t1") == "waiting"
    desk.settle()
    status = status_of(desk.task("t1"), now_us=0)
    assert (status.state, status.expected_worker, status.worker, status.attempt) == ("released", "w1", None, 1)
    desk.start("t1", "w1")
    status = status_of(desk.task("t1"), now_us=0)
    assert (status.state, status.worker, status.model) == ("running", "w1", "m")
    desk.complete("t1")
    status = status_of(desk.task("t1"), now_us=0)
    assert (status.state, status.outcome, status.finish_reason) == ("completed", "ok", "stop")


def test_each_kind_of_end_says_why(desk: Dispatch) -> None:
    ends = {
        "failed": build(events.TaskFailed, task="failed"),
        "cancelled": build(events.TaskCancelled, task="cancelled", reason="gone"),
        "dead": build(events.TaskDead, task="dead", failures=("stall", "oom"), detail="gave up"),
    }
    for name, end in ends.items():
        desk.submit(name)
        desk.tell(end)
        status = status_of(desk.task(name), now_us=0)
        assert status.state == name and status.detail
    assert status_of(desk.task("dead"), now_us=0).failure == "oom"


def test_the_queue_has_positions_and_reasons_and_then_what_runs(desk: Dispatch) -> None:
    for task in ("t1", "t2", "t3"):
        desk.submit(task)
    desk.settle()
    shown = queue_of(desk.state, desk.live, plan(desk.state, desk.live, desk.now, desk.limits), 0)
    assert [(s.task, s.position, s.state) for s in shown] == [
        ("t2", 1, "waiting"), ("t3", 2, "waiting"), ("t1", None, "released"),
    ]  # fmt: skip
    assert str(shown[0].reason).startswith("busy: ")
    assert shown[0].eta_s is not None and shown[1].eta_s is not None and shown[0].eta_s < shown[1].eta_s


def test_what_never_started_waited_until_its_end_and_no_longer(desk: Dispatch) -> None:
    desk.report("w1")
    desk.submit("t1")
    task = desk.task("t1")
    desk.tell(build(events.TaskCancelled, task="t1", at=task.submitted.at + 4.0, reason="enough"))
    for later_s in (4, 75):
        assert status_of(task, now_us=task.at_us + later_s * 1_000_000).waited_s == pytest.approx(4.0)


def test_who_waits_is_shown_on_the_machine_that_is_planned_now(desk: Dispatch) -> None:
    desk.join("w2")
    for task in ("t1", "t2", "t3"):
        desk.submit(task)
    desk.settle()
    desk.task("t3").choice = events.Choice(model="m", worker="w-gone")
    found = plan(desk.state, desk.live, desk.now, desk.limits)
    row = queue_of(desk.state, desk.live, found, 0)[0]
    model, worker = found.machines["t3"]
    assert (row.task, row.model, row.expected_worker) == ("t3", model, worker)


def test_what_runs_says_how_long_and_until_when_by_its_own_prediction(desk: Dispatch) -> None:
    desk.submit("t1")
    desk.settle()
    desk.start("t1", "w1")
    task = desk.task("t1")
    attempt = task.attempts[1]
    attempt.service_s = 10.0
    assert attempt.started_us is not None
    status = status_of(task, now_us=attempt.started_us + 4_000_000)
    assert (status.ran_s, status.ends_s) == (4.0, 6.0)
    late = status_of(task, now_us=attempt.started_us + 40_000_000)
    assert late.ends_s == pytest.approx(6.0), "never in the past"
    assert (status.late_s, late.late_s) == (None, 30.0)
    attempt.expected = "w2"
    elsewhere = status_of(task, now_us=attempt.started_us + 40_000_000)
    assert (elsewhere.ends_s, elsewhere.late_s) == (None, None), "nothing was predicted of this machine"


def test_a_silent_machine_is_shown_as_silent_and_one_that_left_not_at_all(desk: Dispatch) -> None:
    desk.report("w2")
    desk.report("w3")
    desk.tell(build(events.WorkerLeft, worker="w3", boot="b1"))
    desk.wait(20.0)
    desk.credit("w2")
    views = fleet_of(desk.state, desk.live, Statistics(), desk.now, 0).workers
    assert {name: (view.alive, view.fresh) for name, view in views.items()} == {
        "w1": (False, False),
        "w2": (True, True),
    }
    assert views["w1"].credit_age_s == 20.0
    assert views["w1"].others_reason == "no heartbeat heard yet"


def test_an_old_load_is_an_unknown_load(desk: Dispatch) -> None:
    load = build(events.WorkerLoad, worker="w1", boot="b1", credit=None, others_use=0.5, resident=("m",))
    memory = events.Loaded(model="m", bytes=9, vram_bytes=9, expires_at=1.0)
    desk.live.hear_load(msgspec.structs.replace(load, loaded=(memory,)), desk.now)

    def seen() -> tuple[float | None, frozenset[str] | None, dict[str, events.Loaded]]:
        view = fleet_of(desk.state, desk.live, Statistics(), desk.now, 0).workers["w1"]
        return view.others_use, view.resident, view.loaded

    assert seen() == (0.5, frozenset({"m"}), {"m": memory})
    desk.wait(16.0)
    assert seen() == (None, None, {})


@pytest.mark.parametrize(
    ("unreadable", "reason"),
    [
        ({"backend_up": "connection refused", "credit.free": "takes no work: backend down"}, "connection refused"),
        ({"credit.free": "takes no work: backend down"}, "takes no work: backend down"),
        ({}, "its heartbeat does not say why"),
    ],
)
def test_a_machine_whose_backend_is_down_has_no_known_wait(
    desk: Dispatch, unreadable: dict[str, str], reason: str
) -> None:
    desk.credit("w1", free=0)
    load = build(events.WorkerLoad, worker="w1", boot="b1", credit=None, backend_up=False, unreadable=unreadable)
    desk.live.hear_load(load, desk.now)

    def seen() -> tuple[bool | None, str | None, float | None]:
        view = fleet_of(desk.state, desk.live, Statistics(), desk.now, 0).workers["w1"]
        return view.backend_up, view.backend_reason, view.wait_s

    assert seen() == (False, reason, None)
    desk.live.hear_load(build(events.WorkerLoad, worker="w1", boot="b1", seq=2, credit=None, backend_up=True), desk.now)
    assert seen() == (True, None, 0.0)
    desk.wait(16.0)
    assert seen()[:2] == (None, None)


def test_a_busy_machine_says_when_its_next_slot_is_free(desk: Dispatch) -> None:
    desk.submit("t1")
    desk.settle()
    desk.start("t1", "w1")
    desk.credit("w1", ("t1", 1), free=0)
    wait_s = fleet_of(desk.state, desk.live, Statistics(), desk.now, 0).workers["w1"].wait_s
    assert wait_s is not None and wait_s >= 0.1
    desk.wait(10_000.0)
    later = fleet_of(desk.state, desk.live, Statistics(), desk.now, 0).workers["w1"].wait_s
    assert later == pytest.approx(1_500.0)  # long overdue: 0.15 of what has passed
