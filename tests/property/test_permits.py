"""Permits under any order of what can happen to tasks and workers: counted, bounded, given back."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings, strategies as st

from schemas import events
from services.router.dispatch import engine
from services.router.dispatch.permits import Limit, Limits
from services.router.dispatch.state import RouterState
from support.builders import build
from support.dispatching import Dispatch

WORKERS = {"w1": ("m", "n"), "w2": ("m",), "w3": ("n",)}
CAPS = st.one_of(st.none(), st.integers(1, 3))
LIMITS = st.builds(
    lambda model, client, backend, total: Limits(Limit(model), Limit(client), Limit(backend, total=total)),
    CAPS, CAPS, CAPS, st.one_of(st.none(), st.integers(2, 4)),
)  # fmt: skip
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["submit", "submit", "credit", "credit", "start", "end", "fail", "wait", "cancel", "leave", "join"]
        ),
        st.integers(0, 30),
    ),
    max_size=60,
)


def step(desk: Dispatch, what: str, n: int) -> None:
    """One thing happens, as far as it can happen now."""
    worker = sorted(WORKERS)[n % len(WORKERS)]
    live = [(name, task.live) for name, task in desk.state.tasks.items() if task.live is not None]
    name, attempt = live[n % len(live)] if live else ("", None)
    match what:
        case "submit":
            desk.submit(f"t{len(desk.state.tasks)}-{len(desk.state.recent)}-{n}", client="ab"[n % 2])
        case "credit":
            running = [(name, a.n) for name, a in live if a.worker == worker]
            desk.credit(worker, *running, free=n % 3)
        case "start" if attempt is not None and not attempt.started:
            desk.start(name, attempt.holders[n % len(attempt.holders)])
        case "end" if attempt is not None and attempt.started:
            desk.complete(name)
        case "fail" if attempt is not None and attempt.started:
            desk.fail(name, ("stall", "lost", "rejected")[n % 3], retryable=n % 3 != 2)
        case "wait":
            desk.wait(float(n))
        case "cancel" if live:
            desk.live.cancels[name] = "gone"
        case "leave":
            desk.tell(build(events.WorkerLeft, worker=worker, boot="b1"))
        case "join":
            desk.report(worker, *WORKERS[worker], slots=2)
        case _:
            pass


def recount(state: RouterState) -> dict[str, int]:
    held = Counter(p for task in state.tasks.values() if task.live is not None for p in task.live.permits)
    return dict(held)


def above(desk: Dispatch) -> list[str]:
    """Permits over their limit, in all or by name."""
    found = []
    for kind in ("model", "client", "backend"):
        limit: Limit = getattr(desk.limits, kind)
        counts = {p: n for p, n in desk.state.held.items() if p.startswith(f"{kind}:")}
        found += [p for p, n in counts.items() if limit.default is not None and n > limit.default]
        found += [kind] if limit.total is not None and sum(counts.values()) > limit.total else []
    return found


@settings(max_examples=150, deadline=None)
@given(limits=LIMITS, steps=STEPS)
def test_permits_are_what_live_attempts_hold_and_never_above_their_limit(
    limits: Limits, steps: list[tuple[str, int]]
) -> None:
    desk = Dispatch(limits)
    for worker, models in WORKERS.items():
        desk.join(worker, *models, free=2)
    for what, n in steps:
        step(desk, what, n)
        desk.settle()
        assert desk.state.held == recount(desk.state)
        assert above(desk) == []
    restored = engine.restore(engine.snapshot(desk.state))
    assert restored.held == desk.state.held == recount(restored)


@settings(max_examples=100, deadline=None)
@given(limits=LIMITS, steps=STEPS)
def test_when_everything_has_ended_no_permit_is_left_and_no_task_waits(
    limits: Limits, steps: list[tuple[str, int]]
) -> None:
    desk = Dispatch(limits)
    for worker, models in WORKERS.items():
        desk.join(worker, *models, free=2)
    for what, n in steps:
        step(desk, what, n)
        desk.settle()
    for worker, models in WORKERS.items():
        desk.report(worker, *models, slots=2)
    for _ in range(200):
        if not desk.state.tasks:
            break
        desk.wait(6.0)
        for worker in WORKERS:
            running = [
                (name, task.live.n)
                for name, task in desk.state.tasks.items()
                if task.live is not None and task.live.worker == worker
            ]
            desk.credit(worker, *running, free=2 - min(len(running), 2))
        desk.settle()
        for name, task in list(desk.state.tasks.items()):
            if task.live is not None and not task.live.started:
                desk.start(name, task.live.expected or "")
            if task.live is not None:
                desk.complete(name)
        desk.settle()
    assert (desk.state.tasks, desk.state.held) == ({}, {})
