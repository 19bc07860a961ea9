"""Whatever happens to a queue: what is shown never gets worse without a reason."""

from __future__ import annotations

from hypothesis import given, strategies as st

from services.router.fleet import Fleet
from services.router.port import TaskStatus
from services.router.rises import Rises
from support.fleets import fleet, worker

TASKS = [f"t{n}" for n in range(6)]
ETA = st.none() | st.floats(0, 500)
STATE = st.sampled_from(["waiting", "waiting", "released", "running", "gone"])


@st.composite
def scenes(draw: st.DrawFn) -> tuple[tuple[TaskStatus, ...], Fleet]:
    states = {task: draw(STATE) for task in TASKS}
    order = draw(st.permutations([task for task in TASKS if states[task] == "waiting"]))
    waiting = [
        TaskStatus(
            task=task, state="waiting", position=n, eta_s=draw(ETA), client=draw(st.sampled_from("ab")), model="m"
        )
        for n, task in enumerate(order, 1)
    ]
    others = [
        TaskStatus(
            task=task,
            state="running" if state == "running" else "released",
            worker="w1",
            attempt=draw(st.integers(1, 2)),
        )
        for task, state in states.items()
        if state in ("released", "running")
    ]
    machines = [
        worker(name, "m", alive=draw(st.booleans()), paused=draw(st.booleans()))
        for name in draw(st.sets(st.sampled_from(["w1", "w2"])))
    ]
    return tuple(waiting + others), fleet(*machines)


@given(st.lists(scenes(), min_size=2, max_size=6))
def test_a_rise_without_a_reason_never_happens(played: list[tuple[tuple[TaskStatus, ...], Fleet]]) -> None:
    rises = Rises()
    before: dict[str, TaskStatus] = {}
    for tasks, machines in played:
        shown = rises.look(tasks, machines)
        for now in shown:
            was = before.get(now.task)
            if now.state != "waiting" or was is None:
                continue
            told = {rise.of: rise for rise in now.rises}
            if was.state != "waiting":
                assert told["position"].code == "died"
                continue
            assert was.position is not None and now.position is not None
            if now.position > was.position:
                rise = told["position"]
                assert (rise.before, rise.after) == (was.position, now.position) and rise.words
            if was.eta_s is not None and (now.eta_s is None or now.eta_s > was.eta_s):
                rise = told["eta_s"]
                assert (rise.before, rise.after) == (was.eta_s, now.eta_s) and rise.words
        before = {status.task: status for status in shown}
