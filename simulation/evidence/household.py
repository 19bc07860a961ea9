"""A fleet with its benchmarker beside it, in virtual time: ordinary work comes, and what is worth measuring is measured between.

Answers "what was measured, when, and whom did it disturb?". The router is the product's (``simulation.fleet.product``), and so is
every choice of what to measure and whether to begin (``bencher``). Bench work goes the way of all work: submitted as a
background task for a machine's lane, released by the planner, run by the machine, counted as one sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from schemas.events import (
    AnyEvent,
    Bench,
    Credit,
    Domain,
    PayloadRef,
    TaskCompleted,
    TaskStarted,
    TaskSubmitted,
    Terminal,
    Wants,
    WorkerLoad,
)
from schemas.sizes import sizes_of
from schemas.subjects import submit_id
from services.benchmarker.asking import CLIENT, Work
from simulation.evidence.bencher import Bencher
from simulation.evidence.voices import ANSWER_TOKENS
from simulation.fleet.instances import rng_of
from simulation.fleet.outcome import Done
from simulation.fleet.physics import SPREAD, Instance, Job
from simulation.fleet.product import HEARTBEAT_S, INTRODUCED_S, Product
from simulation.fleet.station import CHARS_PER_TOKEN

VERDICT_TOKENS = 12
PULSE_S = 1.0
LOOK_S = 1.0
"""How often the benchmarker looks, where the product's does at every event and at least so often."""


@dataclass
class Errand:
    """One piece of bench work, with its moments: asked, started, ended. ``free``: outside the budget."""

    task: str
    work: Work
    free: bool
    asked: float
    started: float | None = None
    ended: float | None = None
    completed: bool = False

    @property
    def worker(self) -> str:
        return self.work.worker

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

    def ask(self, work: Work, *, free: bool) -> Errand:
        """Submit it; what becomes of it shows in the errand."""
        task, sizes = f"b{len(self.errands):05}", sizes_of(work.body, 1)
        output = VERDICT_TOKENS if work.purpose == "judge" else work.options.max_tokens or ANSWER_TOKENS
        noise = {name: self.luck.lognormvariate(0.0, SPREAD) for name in self.stations}
        prompt = sizes.chars // CHARS_PER_TOKEN
        self.jobs[task] = Job(task, self.kernel.now, work.domain, work.model, prompt, output, noise=noise)
        errand = self.errands[task] = Errand(task, work, free, self.kernel.now)
        event = TaskSubmitted(
            **self.envelope(CLIENT), task=task, client=CLIENT, kind="bench", urgency="background",
            domain=Domain(label=work.domain, method="bench"), wants=Wants(model=work.model, worker=work.worker),
            sizes=msgspec.structs.replace(sizes, prompt_tokens=prompt), options=work.options, deadline_s=work.deadline_s,
            payload=PayloadRef(subject=f"task.in.{CLIENT}.{task}", bytes=1),
            bench=Bench(purpose=work.purpose, reason=work.reason),
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
            completed = event if isinstance(event, TaskCompleted) else None
            errand.ended, errand.completed = now, completed is not None
            if self.bencher is not None:
                self.later(self.bencher.ended, errand, completed)
