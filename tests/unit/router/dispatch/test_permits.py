"""Limits by name, by default and in total; all or nothing."""

from __future__ import annotations

import pytest

from schemas.events import ModelInfo
from services.router.dispatch.permits import Counts, Limit, Limits, backend_names, named
from services.router.dispatch.planner import plan
from support.dispatching import Dispatch

LIMITS = Limits(model=Limit(1, {"big": 2}), client=Limit(total=2))


def test_a_names_own_limit_goes_before_the_default() -> None:
    counts = Counts(LIMITS, {"model:big": 1, "model:small": 1})
    assert counts.lacking(("model:big",)) is None
    assert counts.lacking(("model:big", "model:small")) == "model:small"


def test_a_total_counts_all_names_and_what_is_asked_for_together() -> None:
    assert Counts(LIMITS, {"client:a": 1}).lacking(("client:b",)) is None
    assert Counts(LIMITS, {"client:a": 1}).lacking(("client:b", "client:c")) == "client:c"
    assert Counts(LIMITS, {"client:a": 1, "client:b": 1}).lacking(("client:c",)) == "client:c"


def test_what_is_taken_in_a_plan_counts_and_the_log_is_not_touched() -> None:
    held: dict[str, int] = {}
    counts = Counts(LIMITS, held)
    counts.take(("model:small",))
    assert counts.lacking(("model:small",)) == "model:small"
    assert held == {}


def test_no_limit_is_no_limit() -> None:
    assert Counts(Limits(), {"backend:x": 10_000}).lacking(("backend:x",)) is None


def served_in_order(desk: Dispatch, worker: str, slots: int) -> list[str]:
    """Everything waiting is released, run and ended, one end at a time; the tasks in the order of their releases."""
    order: list[str] = []
    for _ in range(50):
        running = [name for name, task in desk.state.tasks.items() if task.live is not None]
        desk.credit(worker, *((name, 1) for name in running), free=slots - len(running))
        desk.settle()
        for name, task in desk.state.tasks.items():
            if task.live is not None and not task.live.started:
                order.append(name)
                desk.start(name, worker)
        ended = next((name for name in order if name in desk.state.tasks), None)
        if ended is None:
            return order
        desk.complete(ended)
    raise AssertionError(f"still waiting: {sorted(desk.state.tasks)}")


def test_tasks_that_need_the_same_permits_leave_in_the_order_in_which_they_came() -> None:
    desk = Dispatch(Limits(client=Limit(1)))
    desk.join("w1", "m", free=4)
    for number in range(6):
        desk.submit(f"t{number}", model="m", client="me")
    assert served_in_order(desk, "w1", 4) == [f"t{number}" for number in range(6)]


def test_two_workers_over_one_backend_share_its_permit() -> None:
    desk = Dispatch(Limits(backend=Limit(1)))
    for worker in ("w1", "w2"):
        desk.join(worker, "m", free=2, backend_id="http://box:11434")
    for number in range(4):
        desk.submit(f"t{number}", model="m")
    desk.settle()
    assert desk.state.held["backend:http://box:11434"] == 1
    assert sum(task.live is not None for task in desk.state.tasks.values()) == 1


@pytest.mark.parametrize("called", ["desk", "Desk", "w1"])
def test_a_backends_own_limit_is_given_by_the_machines_name_or_id_and_told_by_its_name(called: str) -> None:
    desk = Dispatch(Limits(backend=Limit(default=4, names={called: 1})))
    desk.join("w1", "m", free=4, backend_id="4f2a91c07e1b", name="desk")
    for number in range(3):
        desk.submit(f"t{number}", model="m")
    desk.settle()
    assert desk.state.held["backend:4f2a91c07e1b"] == 1
    desk.credit("w1", ("t0", 1), free=3)
    holds = plan(desk.state, desk.live, desk.now, desk.limits).holds
    assert holds["t1"] == "backend_full: desk has 1 running, which is its limit"


def test_of_two_names_for_one_backend_or_model_the_least_number_counts() -> None:
    desk = Dispatch()
    models = (ModelInfo(name="qwen3:8b", backend_name="qwen3:8b-q4", aliases=("qwen3",)),)
    for worker in ("w1", "w2"):
        desk.report(worker, models=models, backend_id="4f2a91c07e1b", name=f"name of {worker}")
    limits = Limits(
        backend=Limit(names={"w1": 3, "name of w2": 2, "nobody": 1}), model=Limit(names={"qwen3": 2, "qwen3:8b-q4": 1})
    )
    assert named(limits, desk.state).backend.names == {"4f2a91c07e1b": 2, "nobody": 1}
    assert named(limits, desk.state).model.names == {"qwen3:8b": 1}
    assert backend_names(desk.state) == {"4f2a91c07e1b": "name of w1 and name of w2"}


def test_two_backends_beside_machines_of_one_name_are_told_apart() -> None:
    desk = Dispatch()
    for worker in ("w1", "w2"):
        desk.report(worker, backend_id=f"server of {worker}", name="desk")
    assert backend_names(desk.state) == {f"server of {w}": f"desk (server of {w})" for w in ("w1", "w2")}


def test_a_backend_of_somebody_elses_takes_the_permits_of_model_and_client_only() -> None:
    desk = Dispatch(Limits(model=Limit(2), backend=Limit(1)))
    desk.join("cloud", "m", free=4, local=False)
    for number in range(4):
        desk.submit(f"t{number}", model="m")
    desk.settle()
    assert desk.state.held == {"model:m": 2, "client:me": 2}


def test_a_limit_lowered_below_what_runs_ends_nothing_and_lets_nothing_begin_until_it_is_below() -> None:
    desk = Dispatch(Limits(model=Limit(3)))
    desk.join("w1", "m", free=6)
    for number in range(6):
        desk.submit(f"t{number}", model="m")
    desk.settle()
    running = [name for name, task in desk.state.tasks.items() if task.live is not None]
    assert len(running) == 3
    for name in running:
        desk.start(name, "w1")
    desk.limits = Limits(model=Limit(1))
    for left in (2, 1):
        desk.complete(running.pop())
        desk.credit("w1", *((name, 1) for name in running), free=6 - len(running))
        desk.settle()
        assert desk.state.held["model:m"] == left
    desk.complete(running.pop())
    desk.credit("w1", free=6)
    desk.settle()
    assert desk.state.held["model:m"] == 1


def test_why_a_permit_cannot_be_had_tells_its_own_limit_from_that_of_all() -> None:
    counts = Counts(LIMITS, {"model:small": 1, "client:a": 1, "client:b": 1})
    assert counts.full("model:small") == "model_full: small has 1 running, which is its limit"
    assert counts.full("client:c") == "client_full: all together have 2 running, which is the limit of all"
    assert counts.full("model:big") is None
