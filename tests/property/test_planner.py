"""One pass of the planner over random fleets, queues and limits: what must hold of every plan."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from schemas import events
from services.router.dispatch import bids
from services.router.dispatch.live import Wait
from services.router.dispatch.permits import Limit, Limits
from services.router.dispatch.planner import BYPASSES_MOST, Plan, available
from support.builders import build
from support.planning import Planning, taking

CODES = {
    "waiting_for_faster", "busy", "model_full", "client_full", "backend_full", "no_worker", "no_capability", "silent",
    "backoff", "routing", "no_model",
}  # fmt: skip
MODELS = ("a", "b", "c")


@dataclass(frozen=True)
class Box:
    """A machine. ``runs`` are the seconds that each of its attempts has left; ``out`` takes it out somehow."""

    models: tuple[str, ...]
    slots: int
    runs: tuple[float, ...]
    answer_s: float
    priority: int
    use: float | None
    resident: tuple[str, ...] | None
    out: str
    shares: bool


@dataclass(frozen=True)
class Ask:
    """A waiting task."""

    model: str | None
    worker: int | None
    client: str
    urgency: str
    service_s: float
    after_s: float
    bypasses: int
    overtaken_s: float


SEVERAL = st.lists(st.sampled_from(MODELS), unique=True, min_size=1).map(lambda found: tuple(sorted(found)))
USES = st.one_of(st.none(), st.sampled_from((0.0, 0.3, 1.0)))
RESIDENT = st.one_of(st.none(), st.just(()), SEVERAL)
BOXES = st.builds(
    Box, SEVERAL, st.integers(1, 3), st.lists(st.sampled_from((1.0, 7.0, 60.0)), max_size=3).map(tuple),
    st.sampled_from((1.0, 5.0, 10.0, 40.0)), st.integers(0, 3), USES, RESIDENT,
    st.sampled_from(("", "", "", "", "paused", "draining", "suspect", "silent", "left")), st.booleans(),
)  # fmt: skip
ASKS = st.builds(
    Ask, st.one_of(st.none(), st.sampled_from(MODELS)), st.one_of(st.none(), st.none(), st.integers(0, 4)),
    st.sampled_from("xy"), st.sampled_from(("interactive", "batch", "background")), st.sampled_from((0.0, 2.0, 10.0, 50.0)),
    st.sampled_from((0.0, 0.5, 30.0)), st.integers(0, BYPASSES_MOST), st.sampled_from((0.0, 50.0, 60.0)),
)  # fmt: skip
CAPS = st.one_of(st.none(), st.none(), st.integers(1, 4))
LIMITS = st.builds(
    lambda model, client, backend, total: Limits(Limit(model, total=total), Limit(client), Limit(backend, total=total)),
    CAPS, CAPS, CAPS, CAPS,
)  # fmt: skip
FLEETS = st.lists(BOXES, min_size=1, max_size=5)
QUEUES = st.lists(ASKS, max_size=20)


def world(fleet: list[Box], queue: list[Ask], limits: Limits) -> Planning:
    speeds = {(m, f"w{n}"): taking(box.answer_s * (1 + MODELS.index(m))) for n, box in enumerate(fleet) for m in MODELS}
    desk = Planning(limits, speeds)
    for n, box in enumerate(fleet):
        desk.report(f"w{n}", *box.models, slots=box.slots, backend_id="shared" if box.shares else None)
    for n, ask in enumerate(queue):
        desk.wait(ask.after_s)
        wants = events.Wants(model=ask.model, worker=None if ask.worker is None else f"w{ask.worker}")
        desk.arrives(f"t{n}", service_s=ask.service_s, client=ask.client, urgency=ask.urgency, wants=wants)
        desk.live.waits[f"t{n}"] = Wait(bypasses=ask.bypasses, overtaken_s=ask.overtaken_s)
        desk.live.seen[f"t{n}"] = desk.now
    for n, box in enumerate(fleet):
        runs = box.runs[: box.slots]
        for i, left_s in enumerate(runs):
            desk.busy(f"w{n}", f"r{n}-{i}", box.models[0], left_s=left_s)
        speaks(desk, n, box)
    return desk


def speaks(desk: Planning, n: int, box: Box) -> None:
    """Its last words, and what happened to it since."""
    worker = f"w{n}"
    hands = [(task, 1) for task, known in desk.state.tasks.items() if (a := known.live) and a.worker == worker]
    free = box.slots - len(hands)
    if box.out == "silent":
        desk.now -= 10.0
    desk.credit(worker, *hands, free=free, slots=box.slots, priority=box.priority, draining=box.out == "draining")
    desk.says(worker, box.resident, box.use)
    if box.out == "silent":
        desk.now += 10.0
    if box.out == "paused":
        desk.tell(build(events.WorkerPaused, worker=worker))
    if box.out == "suspect":
        desk.live.workers[worker].suspect = True
    if box.out == "left":
        desk.tell(build(events.WorkerLeft, worker=worker, boot="b1"))


def turned(desk: Planning) -> Planning:
    """The same, filled in the opposite order."""
    state, live = desk.state, desk.live
    for there, names in (
        (state, ("tasks", "workers", "held")),
        (live, ("workers", "waits", "leases", "seen")),
    ):
        for name in names:
            setattr(there, name, dict(reversed(getattr(there, name).items())))
    return desk


def fold(desk: Planning, planned: Plan) -> None:
    """The releases are in the log."""
    for r in planned.releases:
        desk.tell(
            build(
                events.TaskReleased, task=r.task, attempt=r.attempt, epoch=desk.epoch, model=r.model, lane=r.lane,
                capability=r.capability, expected_worker=r.expected, holders=r.holders, permits=r.permits,
                predicted=events.Prediction(total_s=r.offer.total_s, wait_s=r.offer.wait_s),
            )
        )  # fmt: skip


def pairs(planned: Plan) -> list[tuple[str, str, str]]:
    return [(release.task, release.model, release.expected) for release in planned.releases]


@settings(max_examples=60, deadline=None)
@given(FLEETS, QUEUES, LIMITS)
def test_a_plan_follows_from_what_is_known_and_not_from_the_order_in_memory(
    fleet: list[Box], queue: list[Ask], limits: Limits
) -> None:
    desk = world(fleet, queue, limits)
    first = desk.plan()
    assert desk.plan() == first
    assert turned(desk).plan() == first
    assert desk.plan(explain=False).releases == first.releases


@settings(max_examples=60, deadline=None)
@given(FLEETS, QUEUES, LIMITS)
def test_a_plan_is_the_same_whether_pairs_are_priced_all_at_once_or_one_by_one(
    fleet: list[Box], queue: list[Ask], limits: Limits
) -> None:
    desk = world(fleet, queue, limits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bids, "FEW", 0)
        one_by_one = desk.plan()
        patch.setattr(bids, "FEW", 1_000)
        assert desk.plan() == one_by_one


@settings(max_examples=100, deadline=None)
@given(FLEETS, QUEUES, LIMITS)
def test_no_credit_and_no_limit_is_exceeded_and_everybody_else_knows_why_he_waits(
    fleet: list[Box], queue: list[Ask], limits: Limits
) -> None:
    desk = world(fleet, queue, limits)
    planned, free = desk.plan(), available(desk.state, desk.live, desk.now)
    assert all(count <= free.get(w, 0) for w, count in Counter(r.expected for r in planned.releases).items())
    held = Counter(desk.state.held)
    for release in planned.releases:
        held.update(release.permits)
        assert release.expected in release.holders and release.offer.free
    for kind in ("model", "client", "backend"):
        limit: Limit = getattr(limits, kind)
        taken = {p for r in planned.releases for p in r.permits if p.startswith(f"{kind}:")}
        assert all(limit.default is None or held[permit] <= limit.default for permit in taken)
        total = sum(n for permit, n in held.items() if permit.startswith(f"{kind}:"))
        assert limit.total is None or not taken or total <= limit.total
    waiting = {f"t{n}" for n in range(len(queue))}
    assert {r.task for r in planned.releases} | set(planned.holds) == waiting
    assert not {r.task for r in planned.releases} & set(planned.holds)
    assert set(planned.starts) == set(planned.holds)
    for reason in planned.holds.values():
        assert re.fullmatch(r"([a-z_]+): \S.*", reason) and reason.partition(":")[0] in CODES
    for task, more in planned.bypasses.items():
        assert desk.live.waits[task].bypasses + more <= BYPASSES_MOST


@settings(max_examples=60, deadline=None)
@given(FLEETS, QUEUES, LIMITS, BOXES, st.sampled_from(("paused", "draining", "suspect", "silent", "left")))
def test_a_machine_that_can_be_released_to_by_nobody_changes_nothing_for_the_others(
    fleet: list[Box], queue: list[Ask], limits: Limits, box: Box, out: str
) -> None:
    """But for limits of backends: a group reserves a permit for each holder whose pull may stand, a lane for its own."""
    limits = replace(limits, backend=Limit())
    queue = [Ask(**{**vars(ask), "worker": None if ask.worker == len(fleet) else ask.worker}) for ask in queue]
    desk = world(fleet, queue, limits)
    before = pairs(desk.plan())
    extra: dict[str, Any] = {**vars(box), "runs": (), "out": out, "shares": False}
    desk.report(f"w{len(fleet)}", *box.models, slots=box.slots, backend_id=None)
    speaks(desk, len(fleet), Box(**extra))
    assert pairs(desk.plan()) == before


@settings(max_examples=100, deadline=None)
@given(FLEETS, ASKS, st.integers(0, 4), st.sampled_from(("use", "resident", "both", "heartbeat")))
def test_a_machine_that_falls_silent_about_itself_gets_no_task_that_it_would_not_get_speaking(
    fleet: list[Box], ask: Ask, at: int, silence: str
) -> None:
    at %= len(fleet)
    speaking = world(fleet, [ask], Limits())
    quiet = world(fleet, [ask], Limits())
    box = fleet[at]
    use = None if silence in ("use", "both") else box.use
    resident = None if silence in ("resident", "both") else box.resident
    speaking.says(f"w{at}", box.resident, box.use)
    quiet.says(f"w{at}", resident, use)
    if silence == "heartbeat":
        quiet.live.workers[f"w{at}"].load = None
    got, would = receiver(quiet.plan()), receiver(speaking.plan())
    if got == f"w{at}":
        assert would == got
    elif would not in (f"w{at}", None):
        assert got == would


def receiver(planned: Plan) -> str | None:
    return next((release.expected for release in planned.releases), None)


@settings(max_examples=60, deadline=None)
@given(FLEETS, QUEUES, LIMITS)
def test_what_was_released_is_not_released_again_and_passes_come_to_an_end(
    fleet: list[Box], queue: list[Ask], limits: Limits
) -> None:
    desk = world(fleet, queue, limits)
    gone: set[str] = set()
    for _ in range(len(queue) + 1):
        planned = desk.plan()
        tasks = [release.task for release in planned.releases]
        assert len(set(tasks)) == len(tasks) and not gone & set(tasks)
        gone |= set(tasks)
        if not tasks:
            break
        fold(desk, planned)
        desk.live.tidy(desk.state)
        assert all(task not in desk.plan().holds for task in tasks)
    else:
        raise AssertionError("it never settles")


@settings(max_examples=40, deadline=None)
@given(FLEETS, QUEUES, st.sets(st.integers(0, 19)))
def test_a_task_with_a_fact_on_its_way_is_left_alone(fleet: list[Box], queue: list[Ask], left: set[int]) -> None:
    skip = frozenset(f"t{n}" for n in left)
    planned = world(fleet, queue, Limits()).plan(skip=skip)
    assert not skip & ({r.task for r in planned.releases} | set(planned.holds) | set(planned.bypasses))
