"""A seeded log of consistent task histories: two machines, two models, everything that may happen to a task.

Answers "what would the stream hold after n tasks?". For folds, replays and benches. ``history`` makes events, ``many`` makes
millions of encoded ones by stamping new ids into an encoded history, at about a microsecond each.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

from schemas import codec, events, subjects
from schemas.events import Event
from support.builders import message_id
from support.machines import CONTEXT, DOMAINS, EPOCH, MACHINES, MODELS, Machine, Model, completion, decision, report

E = TypeVar("E", bound=Event)

START_US = 1_767_225_600_000_000
"""2026-01-01, so that a test's log never depends on today."""
BLOCK = "b0b0b0b0"
"""Begins every id of a history; ``many`` stamps a block's number over it. No counter looks like it."""
ROUTER = "router-1"


class Entry(NamedTuple):
    """One stored event: its sequence, the server's time of storage, and what it says."""

    seq: int
    at_us: int
    event: Event


class Raw(NamedTuple):
    """One stored event as bytes."""

    seq: int
    at_us: int
    subject: str
    msg_id: str
    data: bytes


_Told = Iterator[tuple[int, Event]]


def history(seed: int, tasks: int, *, gap_s: float = 0.8) -> Iterator[Entry]:
    """``tasks`` lives, interleaved in time as on a real stream. The same arguments give the same log."""
    rng = random.Random(seed)
    ids = (f"{BLOCK}{number:018d}" for number in itertools.count(1))
    waiting: list[tuple[int, int, Event, _Told]] = []
    ties = itertools.count()
    stored = itertools.count(1)

    def add(life: _Told) -> None:
        for at_us, event in itertools.islice(life, 1):
            heapq.heappush(waiting, (at_us, next(ties), event, life))

    def due(until_us: float) -> Iterator[Entry]:
        while waiting and waiting[0][0] <= until_us:
            at_us, _, event, life = heapq.heappop(waiting)
            yield Entry(next(stored), at_us, event)
            add(life)

    add(_start(ids))
    arrival_us = START_US + 2_000_000
    for _ in range(tasks):
        yield from due(arrival_us)
        add(_Life(rng, ids, arrival_us).story())
        arrival_us += int(rng.expovariate(1.0 / gap_s) * 1e6) + 1
    yield from due(math.inf)


def encoded(entries: Iterator[Entry]) -> Iterator[Raw]:
    """The entries as the stream would hold them."""
    for seq, at_us, event in entries:
        subject = subjects.event_subject(events.type_of(event), event.by)
        yield Raw(seq, at_us, subject, message_id(event), codec.encode(event))


def many(count: int, *, seed: int = 1, tasks: int = 2_000) -> Iterator[Raw]:
    """``count`` encoded events: the history of ``tasks`` tasks again and again, later each time and with new ids."""
    log = list(encoded(history(seed, tasks)))
    length_us = log[-1].at_us - START_US + 1_000_000
    marker = BLOCK.encode()
    for block, first in enumerate(range(0, count, len(log))):
        stamp, later_us = f"{block:08d}", block * length_us
        stamp_bytes = stamp.encode()
        for seq, at_us, subject, msg_id, data in itertools.islice(log, count - first):
            yield Raw(
                first + seq, at_us + later_us, subject, msg_id.replace(BLOCK, stamp), data.replace(marker, stamp_bytes)
            )


def _start(ids: Iterator[str]) -> _Told:
    at = START_US
    yield at, events.DispatcherElected(id=next(ids), at=at / 1e6, by=ROUTER, epoch=EPOCH, router=ROUTER)
    for machine in MACHINES:
        at += 1_000
        yield at, report(next(ids), at, machine)
    yield at + 1, events.KeysAdopted(id=next(ids), at=at / 1e6, by="cli", keys=("model", "domain", "worker"))


class _Life:
    """One task, told in order; each event is caused by the one before."""

    def __init__(self, rng: random.Random, ids: Iterator[str], at_us: int) -> None:
        self.rng, self.ids, self.at_us = rng, ids, at_us
        self.task = next(ids)
        self.cause: str | None = None
        self.client = rng.choice(("me", "web", "batch"))
        self.domain, self.language = rng.choice(DOMAINS)

    def say(self, kind: type[E], after_us: int, by: str, /, **fields: Any) -> tuple[int, E]:
        self.at_us += after_us
        event = kind(id=next(self.ids), at=self.at_us / 1e6, by=by, cause=self.cause, **fields)
        self.cause = event.id
        return self.at_us, event

    def story(self) -> _Told:
        told, submitted = self.submit()
        yield told, submitted
        told, routed = self.say(events.TaskRouted, 800, ROUTER, **decision(self.rng, submitted))
        yield told, routed
        best = routed.candidates[0]
        model = next(model for model in MODELS if model.name == best.model)
        failures = list[events.FailureClass]()
        for attempt in itertools.count(1):
            yield self.release(routed, attempt)
            if self.rng.random() < 0.02:
                yield self.say(
                    events.TaskCancelled, 400, ROUTER, task=self.task, epoch=EPOCH, reason="the last reader left"
                )
                return
            machine = next(machine for machine in MACHINES if machine.worker == best.worker)
            machine = self.rng.choice(MACHINES) if self.rng.random() < 0.03 else machine
            failure = self.failure(troubled=bool(failures))
            if failure != "not_started":
                yield self.start(attempt, machine, model)
            if failure is None:
                told, completed = self.say(
                    events.TaskCompleted, 0, machine.worker, **completion(self.rng, submitted, machine, model, attempt)
                )
                self.at_us += int((completed.times.total_s or 0.0) * 1e6)
                yield self.at_us, completed
                break
            yield self.fail(attempt, machine, model, failure)
            failures += [failure] if failure != "not_started" else []
            if len(failures) == 3:
                dead = {"attempts": 3, "failures": tuple(failures)}
                yield self.say(events.TaskDead, 500, ROUTER, task=self.task, epoch=EPOCH, **dead)
                return
        if self.rng.random() < 0.2:
            yield self.judge(machine, model)

    def submit(self) -> tuple[int, events.TaskSubmitted]:
        rng, chars = self.rng, int(self.rng.lognormvariate(6.5, 0.8)) + 20
        return self.say(
            events.TaskSubmitted,
            0,
            ROUTER,
            task=self.task,
            client=self.client,
            kind="bench" if rng.random() < 0.02 else "chat",
            urgency="batch" if self.client == "batch" else "interactive",
            domain=events.Domain(label=self.domain, method="rules", confidence=0.8),
            language=self.language,
            sizes=events.Sizes(messages=1, chars=chars, prompt_tokens=chars // 4, body_bytes=chars + 90),
            wants=events.Wants(model=rng.choice(MODELS).name) if rng.random() < 0.6 else events.Wants(route="auto"),
            options=events.Options(max_tokens=rng.choice((None, 64, 400))),
            payload=events.PayloadRef(subject=subjects.body_subject(self.client, self.task), bytes=chars + 90),
        )

    def release(self, routed: events.TaskRouted, attempt: int) -> tuple[int, Event]:
        best = routed.candidates[0]
        return self.say(
            events.TaskReleased,
            int(self.rng.expovariate(2.0) * 1e6) + 900,
            ROUTER,
            task=self.task,
            attempt=attempt,
            epoch=EPOCH,
            model=best.model,
            capability="cpu_inference",
            lane="any",
            expected_worker=best.worker,
            holders=tuple(machine.worker for machine in MACHINES),
            predicted=best.predicted,
            uncertainty=best.uncertainty,
            permits=(f"model:{best.model}", f"client:{self.client}", f"backend:{best.worker}"),
            waited_s=0.001,
            position=routed.position,
            inputs=routed.inputs,
            cost_s=best.cost_s,
        )

    def start(self, attempt: int, machine: Machine, model: Model) -> tuple[int, Event]:
        return self.say(
            events.TaskStarted,
            3_000,
            machine.worker,
            task=self.task,
            attempt=attempt,
            worker=machine.worker,
            boot=machine.boot,
            model=model.name,
            digest=machine.digest(model),
            context=CONTEXT,
        )

    def failure(self, *, troubled: bool) -> events.FailureClass | None:
        """A task that failed once often fails again: its prompt is what hurts."""
        if self.rng.random() > (0.4 if troubled else 0.06):
            return None
        return self.rng.choice(("not_started", "stall", "oom", "lost"))

    def fail(self, attempt: int, machine: Machine, model: Model, failure: events.FailureClass) -> tuple[int, Event]:
        by_router, started = failure in ("not_started", "lost"), failure != "not_started"
        return self.say(
            events.AttemptFailed,
            30_000_000 if started else 2_000_000,
            ROUTER if by_router else machine.worker,
            task=self.task,
            attempt=attempt,
            worker=machine.worker,
            boot=None if by_router else machine.boot,
            epoch=EPOCH if by_router else None,
            failure=failure,
            retryable=True,
            tokens=self.rng.randrange(40) if started else 0,
            model=model.name,
            digest=machine.digest(model) if started else None,
            domain=self.domain,
            phase="decode" if started else None,
            elapsed_s=30.0 if started else None,
        )

    def judge(self, machine: Machine, model: Model) -> tuple[int, Event]:
        return self.say(
            events.QualityJudged,
            1_000_000,
            "benchmarker",
            model=model.name,
            digest=machine.digest(model),
            domain=self.domain,
            worker=machine.worker,
            source=self.rng.choice(("judge", "check", "thumb")),
            value=min(1.0, max(0.0, round(self.rng.gauss(model.quality, 0.15), 3))),
            tasks=(self.task,),
            quantisation=model.quantisation,
        )
