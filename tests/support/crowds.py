"""A dispatcher's desk in front of a crowd: many machines, many waiting tasks, everything measured and nearly everybody busy.

Answers "what does a pass look at when a fleet of this size is full?". The desk is the product's own, fed with facts and credits
as the log and the workers would give them. ``free_one`` is what comes next: a task ends, its worker says that a slot is free.
The crowd keeps its size: what was released starts at once, and a new task arrives for it.
"""

from __future__ import annotations

import random
from itertools import count

from schemas import events
from schemas.events import Choice, Credit, ModelInfo, RunningAttempt, TaskReleased
from schemas.samples import UNIT
from schemas.subjects import group_durable, lane_durable, start_id
from services.router.desk import Desk
from services.router.dispatch.actions import Action, EnsureConsumer, Publish, PutItem, Tell
from services.router.dispatch.permits import Limit, Limits
from support.builders import DESK_CANDIDATE, build
from support.fleets import cell, measured

MODELS = {"tiny": 1.0, "small": 2.0, "eight": 4.7, "code": 5.0, "large": 9.0, "big": 14.0}
"""Name -> gigabytes."""
HELD = 3
"""Models on each machine."""
DOMAINS = ("chat", "code", "maths", "summarise")
CLIENTS = 8
CAPABILITY = "cpu_inference"
EPOCH = 1
START_US = 1_764_400_000 * UNIT


class Crowd:
    """``workers`` machines of one slot, of speeds up to 7.3 times apart, all busy; ``waiting`` tasks, half of them open."""

    def __init__(self, workers: int, waiting: int, seed: int = 1) -> None:
        self.rng = random.Random(seed)
        self._ids, self._seqs, self._tasks, self._credits = count(), count(1), count(), count(1)
        limits = Limits(model=Limit(names={"big": max(1, workers // 8)}), client=Limit(default=max(2, workers // 4)))
        self.desk = Desk("router-1", slider=1.0, limits=limits, new_id=lambda: f"id-{next(self._ids)}")
        self.running: dict[str, tuple[str, int]] = {}
        self.unix = START_US / UNIT
        self._speed = {f"w{n}": self.rng.uniform(10.0, 73.0) for n in range(workers)}
        self._fold(build(events.DispatcherElected, epoch=EPOCH, router="router-1"))
        self.desk.elected(EPOCH)
        for worker in self._speed:
            self._report(worker)
        self._measure()
        self.settle()  # the consumers
        for worker in self._speed:
            self.credit(worker)
        for _ in range(workers):
            self.arrive()
        self.settle()
        while sum(task.live is None for task in self.desk.state.tasks.values()) < waiting:
            self.arrive()
        self.settle()

    # -- what comes in -------------------------------------------------------------------------------------------------

    def free_one(self) -> str:
        """One running task ends, and its worker's credit says so."""
        worker = self.rng.choice(sorted(self.running))
        task, attempt = self.running.pop(worker)
        self._fold(build(events.TaskCompleted, task=task, attempt=attempt, worker=worker, by=worker, cause=None))
        self.credit(worker)
        return worker

    def arrive(self) -> None:
        number = next(self._tasks)
        task, domain = f"t{number:06}", self.rng.choice(DOMAINS)
        fixed = self.rng.choice(sorted(MODELS)) if number % 2 else None
        urgency = self.rng.choices(("interactive", "batch", "background"), (8, 1, 1))[0]
        self._fold(
            build(
                events.TaskSubmitted, task=task, client=f"c{number % CLIENTS}", wants=events.Wants(model=fixed),
                domain=events.Domain(label=domain, method="rules"), urgency=urgency, session=None,
            )
        )  # fmt: skip
        models = [fixed] if fixed else sorted(MODELS)
        pairs = tuple(build_candidate(model) for model in models)
        choice = Choice(model=models[0], worker=None, reason="least cost")
        routed = build(
            events.TaskRouted, task=task, epoch=EPOCH, candidates=pairs, choice=choice, inputs=(), removed=(),
            service_s=self.rng.uniform(2.0, 40.0),
        )  # fmt: skip
        self._fold(routed)

    def credit(self, worker: str) -> None:
        """Its absolute word: everything armed, one slot, free or busy."""
        busy = self.running.get(worker)
        hands = (RunningAttempt(task=busy[0], attempt=busy[1], phase="decode", elapsed_s=1.0),) if busy else ()
        groups = (group_durable(CAPABILITY, model) for model in self._held(worker))
        rank = round(9 * (1 - self._speed[worker] / 73.0))
        credit = Credit(
            worker=worker, boot="b1", seq=next(self._credits), slots=1, free=0 if busy else 1, running=hands,
            armed=dict.fromkeys(groups, rank) | {lane_durable(worker): 0},
        )  # fmt: skip
        self.desk.live.hear_credit(credit, self.desk.now)
        self.desk.refresh()

    # -- what goes out -------------------------------------------------------------------------------------------------

    def decide(self) -> list[Action]:
        """One pass, as the router's shell makes it."""
        return self.desk.decide(self.unix)

    def carry_out(self, actions: list[Action]) -> int:
        """Do it all, as a server and workers that are never late; how many tasks were released."""
        released = 0
        for action in actions:
            match action:
                case Publish(TaskReleased() as event, _):
                    self._fold(event)
                    self._start(event)
                    released += 1
                case Publish(event, _):
                    self._fold(event)  # type: ignore[arg-type]
                case EnsureConsumer(durable, slots):
                    self.desk.live.confirmed[durable] = slots
                case PutItem():
                    self.desk.live.items[action.attempt] = (1, self.desk.now)
            self.desk.live.not_stored(action.key)
        return released

    def settle(self) -> None:
        """Until nothing is wanted any more."""
        while actions := [action for action in self.decide() if not isinstance(action, Tell)]:
            self.carry_out(actions)

    def _start(self, released: TaskReleased) -> None:
        worker = str(released.expected_worker)
        self.running[worker] = (released.task, released.attempt)
        self._fold(
            build(
                events.TaskStarted, task=released.task, attempt=released.attempt, worker=worker, boot="b1", by=worker,
                model=released.model,
            )
        )  # fmt: skip
        assert start_id(released.task, released.attempt) not in self.desk.live.pending
        self.credit(worker)

    # -- what the fleet is ---------------------------------------------------------------------------------------------

    def _fold(self, event: events.AnyEvent) -> None:
        seq = next(self._seqs)
        self.desk.fold([(event, seq, START_US + seq * 1_000)])
        self.desk.passed(seq)

    def _held(self, worker: str) -> list[str]:
        number, names = int(worker[1:]), sorted(MODELS)
        return [names[(number + offset) % len(names)] for offset in range(HELD)]

    def _report(self, worker: str) -> None:
        models = tuple(
            ModelInfo(name=m, backend_name=m, bytes=int(MODELS[m] * 1e9), context=40_960, resident=True)
            for m in self._held(worker)
        )
        self._fold(
            build(
                events.WorkerReported, worker=worker, by=worker, boot="b1", name=worker, models=models, slots=1,
                backend_id=None, supports=(CAPABILITY,),
            )
        )  # fmt: skip

    def _measure(self) -> None:
        """Three executions of each (model, domain, worker), and judgements."""
        self.desk.stats = measured(
            cell(
                model, domain, worker, n=3, decode=speed * 4.7 / MODELS[model], prefill=30 * speed, output=200,
                quality=0.5 + MODELS[model] / 50, model_bytes=int(MODELS[model] * 1e9),
            )
            for worker, speed in self._speed.items()
            for model in self._held(worker)
            for domain in DOMAINS
        )  # fmt: skip


def build_candidate(model: str) -> events.Candidate:
    fields = {name: getattr(DESK_CANDIDATE, name) for name in DESK_CANDIDATE.__struct_fields__}
    return events.Candidate(**fields | {"model": model})
