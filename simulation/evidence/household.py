"""A fleet with its benchmarker beside it, in virtual time: ordinary work comes, and what is worth measuring is measured between.

Answers "what was measured, when, and whom did it disturb?". The router is the product's (``simulation.fleet.product``), and so is
every choice of what to measure and whether to begin (``bencher``). Bench work goes the way of all work: submitted as a
background task for a machine's lane, released by the planner, run by the machine, counted as one sample.
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas.events import (
    AnyEvent,
    Bench,
    Credit,
    Domain,
    Options,
    PayloadRef,
    Purpose,
    Sizes,
    TaskCompleted,
    TaskStarted,
    TaskSubmitted,
    Terminal,
    Wants,
    WorkerLoad,
)
from schemas.subjects import submit_id
from simulation.evidence.bencher import CLIENT, Bencher
from simulation.fleet.instances import rng_of
from simulation.fleet.outcome import Done
from simulation.fleet.physics import SPREAD, Instance, Job
from simulation.fleet.product import HEARTBEAT_S, INTRODUCED_S, ROUTER, Product
from simulation.fleet.station import CHARS_PER_TOKEN

PULSE_S = 1.0
LOOK_S = 1.0
"""How often the benchmarker looks, where the product's does at every event and at least so often."""


@dataclass
class Errand:
    """One piece of bench work, with its moments: asked, started, ended. ``free``: outside the budget."""

    task: str
    purpose: Purpose
    worker: str
    model: str
    domain: str
    reason: str
    free: bool
    asked: float
    started: float | None = None
    ended: float | None = None
    completed: bool = False

    @property
    def busy_s(self) -> float:
        return 0.0 if self.started is None or self.ended is None else self.ended - self.started


class Household(Product):
    """``bench`` False is the same fleet without a benchmarker. Tasks begin ``lead_s`` after the machines."""

    def __init__(self, instance: Instance, *, bench: bool = True, heartbeat_s: float = HEARTBEAT_S) -> None:
        super().__init__(instance, pulse_s=PULSE_S)
        self.heartbeat_s = heartbeat_s
        self.errands: dict[str, Errand] = {}
        self.starts: dict[str, tuple[float, str]] = {}
        self.luck = rng_of("errands", instance.seed)
        self.bencher = Bencher(self) if bench else None

    def until(self, end_s: float) -> None:
        """Run to that moment, however much is done by then."""
        self._begin()
        self._ticking()
        self.kernel.run(INTRODUCED_S + end_s, lambda: False)

    def through(self) -> None:
        """Run until every task has been done."""
        self._ticking()
        self.run()

    def _ticking(self) -> None:
        if self.bencher is not None:
            self.bencher.look()
            self.kernel.after(LOOK_S, None, self._ticking)

    # what the bencher uses

    def ask(
        self, purpose: Purpose, model: str, worker: str, domain: str, *, prompt: int, output: int, reason: str, free: bool
    ) -> Errand:
        """Submit one; what becomes of it shows in the errand."""
        task = f"b{len(self.errands):05}"
        noise = {name: self.luck.lognormvariate(0.0, SPREAD) for name in self.stations}
        self.jobs[task] = Job(task, self.kernel.now, domain, model, prompt, output, noise=noise)
        errand = self.errands[task] = Errand(task, purpose, worker, model, domain, reason, free, self.kernel.now)
        event = TaskSubmitted(
            **self.envelope(CLIENT), task=task, client=CLIENT, kind="bench", urgency="background",
            domain=Domain(label=domain, method="bench"), wants=Wants(model=model, worker=worker),
            sizes=Sizes(messages=1, chars=CHARS_PER_TOKEN * prompt, prompt_tokens=prompt, body_bytes=1),
            options=Options(max_tokens=output), payload=PayloadRef(subject=f"task.in.{CLIENT}.{task}", bytes=1),
            bench=Bench(purpose=purpose, reason=reason),
        )  # fmt: skip
        self.publish(event, submit_id(task))
        return errand

    def give_up(self, task: str, reason: str) -> None:
        """As a word over ``rpc.router.cancel`` would."""
        self.later(self._cancel, task, reason)

    def _cancel(self, task: str, reason: str) -> None:
        known = self.desk.state.task(task)
        if known is not None and known.terminal is None:
            self.desk.live.cancels.setdefault(task, reason)
            self._step()

    # the product's own moments

    def finished(self, done: Done) -> None:
        if done.job not in self.errands:
            super().finished(done)

    def _store(self, event: AnyEvent, msg_id: str, then: object = None) -> None:
        before = len(self.log)
        super()._store(event, msg_id, then)  # type: ignore[arg-type]
        if len(self.log) > before:
            self._note(event)
            if self.bencher is not None:
                self.later(self.bencher.apply, event, len(self.log), self.now_us)

    def _hear(self, word: Credit | WorkerLoad) -> None:
        super()._hear(word)
        if self.bencher is not None:
            self.bencher.hear(word)

    def _note(self, event: AnyEvent) -> None:
        now = self.kernel.now
        if isinstance(event, TaskStarted):
            self.starts[event.task] = (now, event.worker)
        errand = self.errands.get(getattr(event, "task", ""))
        if errand is None:
            return
        if isinstance(event, TaskStarted):
            errand.started = now
        elif isinstance(event, Terminal) and errand.ended is None:
            errand.ended, errand.completed = now, isinstance(event, TaskCompleted)
