"""services.router.dispatch.glance: whom a look concerns is what a walk over all tasks would find, at any point of any log."""

from __future__ import annotations

from hypothesis import given, strategies as st

from schemas import events
from schemas.events import AnyEvent
from services.router.dispatch.glance import glance_at
from services.router.dispatch.state import RouterState
from support.builders import build

TASKS, WORKERS = ("t0", "t1", "t2"), ("w0", "w1")


@st.composite
def fact(draw: st.DrawFn) -> AnyEvent:
    """Any fact about any task, whether it makes sense or not: the fold must take what the stream holds."""
    task, attempt = draw(st.sampled_from(TASKS)), draw(st.integers(1, 3))
    worker = draw(st.sampled_from(WORKERS))
    kind = draw(st.sampled_from(KINDS))
    wanted = {"task": task, "attempt": attempt, "worker": worker, "expected_worker": worker, "epoch": 0}
    return build(kind, **{name: value for name, value in wanted.items() if name in kind.__struct_fields__})


KINDS = (
    events.TaskSubmitted, events.TaskRouted, events.TaskReleased, events.TaskReleased, events.TaskStarted,
    events.TaskStarted, events.AttemptFailed, events.TaskCompleted, events.TaskCancelled,
)  # fmt: skip


@given(st.lists(fact(), max_size=40))
def test_a_glance_finds_what_a_full_walk_finds(log: list[AnyEvent]) -> None:
    state = RouterState()
    for seq, event in enumerate(log, 1):
        state.apply(event, seq, seq)
        glance = glance_at(state)
        tasks = [*state.tasks.values(), *state.recent.values()]
        live = [(task, task.live) for task in tasks if task.live is not None]
        assert [t for t in state.tasks.values() if t.terminal is None and t.live is None] == glance.waiting
        assert [t for t in state.tasks.values() if t.terminal is None and t.routed_seq is None] == glance.unrouted
        assert [one for one in live if one[1].started] == glance.started
        assert [one for one in live if not one[1].started] == glance.unstarted
        keys = {(task.submitted.task, n) for task in tasks for n, a in task.attempts.items() if not a.ended}
        assert keys == glance.live
        assert {key for key in keys if state.tasks[key[0]].terminal is None} == glance.wanted
        placed = glance.placed()
        assert sum(map(len, placed.values())) == len([a for _, a in live if a.worker or a.expected])
        for worker, there in placed.items():
            assert {attempt.worker or attempt.expected for _, attempt in there} == {worker}
            assert [attempt.released_seq for _, attempt in there] == sorted(a.released_seq for _, a in there)
