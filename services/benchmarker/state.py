"""What the benchmarker knows of the fleet: a pure fold over EVENTS and heartbeats.

Answers "who is there since when, with which models, who works where, and which cells do real tasks use?". It reads no clock, asks
nobody and decides nothing. ``at_us`` is the server's time of storage, in microseconds. A real task is one that is no bench task;
what a person asked for with ``headrace bench`` is a bench task too, but never unasked.
"""

from __future__ import annotations

import math

import msgspec

from schemas.events import (
    AnyEvent,
    AttemptFailed,
    ModelInfo,
    TaskCancelled,
    TaskCompleted,
    TaskDead,
    TaskFailed,
    TaskReleased,
    TaskRouted,
    TaskStarted,
    TaskSubmitted,
    WorkerLeft,
    WorkerLoad,
    WorkerPaused,
    WorkerReported,
    WorkerResumed,
)
from schemas.prediction import factor
from services.benchmarker.own_prompts import OwnPrompts
from services.benchmarker.use import Use

US = 1_000_000
SILENT_S = 60.0
"""Whoever is heard again after so long was asleep or away: twelve heartbeats. A shorter gap is the network's."""
BEAT_MOST_S = 15.0
"""A gap between two heartbeats counts as awake up to three intervals."""
DRIFT_RUN, DRIFT_RATIO, DRIFT_TOKENS_LEAST = 3, 1.8, 8
"""As ``schemas.cells`` restarts a cell: three in a row, all beyond the same side, answers of a few tokens prove nothing."""
FREE_REASONS = frozenset({"joined", "woke", "new_model", "digest"})
"""Probes for these are apart from the budget: each comes once for each thing that happened to a machine."""
UNASKED = frozenset({"probe", "shadow", "judge"})
"""Purposes that nobody asked for; a suite runs on demand."""


class Held(msgspec.Struct, kw_only=True):
    """A model on a machine: since when it holds this very file; ``renewed`` where another digest stood under the name before."""

    digest: str | None
    since_us: int
    renewed: bool = False


class Machine(msgspec.Struct, kw_only=True):
    """One worker. ``boot_us`` is when its present process first reported, ``woke_us`` the end of its last long silence,
    ``used_us`` when a real task last began or ended there, ``ended_us`` when any task of ours last left it. ``awake_s`` and
    ``spent_s`` are its seconds awake and those of unasked work, over the same time. ``measured`` is when each model last told
    its speed there, ``tried`` how often in a row it did not although it was asked, and until when; ``off`` are the last
    observations against their predictions, as logarithms."""

    report: WorkerReported
    seq: int
    boot_us: int
    heard_us: int
    woke_us: int = 0
    used_us: int = 0
    ended_us: int = 0
    left: bool = False
    paused: bool = False
    paused_until_us: int | None = None
    held: dict[str, Held] = {}
    load: WorkerLoad | None = None
    load_us: int = 0
    awake_s: float = 0.0
    spent_s: float = 0.0
    measured: dict[str, int] = {}
    tried: dict[str, tuple[int, int]] = {}
    off: list[float] = []
    drift_us: int = 0

    def infos(self) -> dict[str, ModelInfo]:
        return {model.name: model for model in self.report.models}

    @property
    def place(self) -> str:
        """Workers of one place share a machine: its host; for a backend elsewhere, of which the host says nothing, itself."""
        remote = self.load is not None and self.load.unreadable.get("others_use") == "no_agent"
        return self.report.backend_id or self.report.worker if remote else self.report.host or self.report.worker


class Open(msgspec.Struct, kw_only=True):
    """A task that has not ended. ``where`` are the workers that may serve it, None until it is routed; ``on`` is the one that it
    was released to or runs on, ``since_us`` since when; ``started``: a worker took it up once."""

    submitted: TaskSubmitted
    at_us: int
    where: frozenset[str] | None = None
    speeds: dict[tuple[str, str], float] = {}
    on: str | None = None
    since_us: int = 0
    started: bool = False

    @property
    def real(self) -> bool:
        return self.submitted.kind != "bench"

    @property
    def unasked(self) -> bool:
        bench = self.submitted.bench
        return bench is not None and bench.purpose in UNASKED and self.submitted.urgency == "background"


class Fleet(msgspec.Struct, kw_only=True):
    """The fold. ``real`` and ``shadows`` count completed real tasks and shadow runs; ``tasks`` are those not ended,
    ``since_us`` is when the part of the log begins that is read about them, 0 for all of it."""

    position: int = 0
    since_us: int = 0
    machines: dict[str, Machine] = {}
    tasks: dict[str, Open] = {}
    use: Use = msgspec.field(default_factory=Use)
    own: OwnPrompts = msgspec.field(default_factory=OwnPrompts)
    real: int = 0
    shadows: int = 0

    def apply(self, event: AnyEvent, seq: int, at_us: int) -> None:
        """Fold one event in. What was folded before changes nothing."""
        match event:
            case WorkerReported():
                self._reported(event, seq, at_us)
            case WorkerLeft() | WorkerPaused() | WorkerResumed():
                self._told(event, seq, at_us)
            case _ if seq > self.position:
                self.position = seq
                self._task(event, at_us)
            case _:
                pass

    def hear(self, load: WorkerLoad, at_us: int) -> None:
        """One heartbeat."""
        machine = self.machines.get(load.worker)
        if machine is None or load.boot != machine.report.boot:
            return
        if machine.load is None:
            machine.awake_s += self._lived_s(machine, load, at_us)
        else:
            gap_s = (at_us - machine.heard_us) / US
            beat_s = (load.seq - machine.load.seq) * load.interval_s  # it was awake, whether or not we heard it
            if gap_s > SILENT_S and gap_s - beat_s > SILENT_S:
                machine.woke_us = at_us
            machine.awake_s += max(0.0, min(gap_s, max(BEAT_MOST_S, beat_s)))
        machine.load, machine.load_us, machine.heard_us = load, at_us, max(at_us, machine.heard_us)
        if machine.paused_until_us is not None and at_us >= machine.paused_until_us:
            machine.paused, machine.paused_until_us = False, None

    def _lived_s(self, machine: Machine, load: WorkerLoad, at_us: int) -> float:
        """Its seconds awake before its first heartbeat that was heard: what was spent is read of the log, so what was earned
        counts too. As far back as the log is read, and not into a former process of it, whose heartbeats nobody counted."""
        known_s = (at_us - max(machine.boot_us, self.since_us)) / US
        return max(0.0, min(known_s, max(BEAT_MOST_S, load.seq * load.interval_s)))

    # -- machines ------------------------------------------------------------------------------------------------------

    def _reported(self, event: WorkerReported, seq: int, at_us: int) -> None:
        known = self.machines.get(event.worker)
        if known is None:
            known = Machine(report=event, seq=seq - 1, boot_us=at_us, heard_us=at_us)
            self.machines[event.worker] = known
        if seq <= known.seq:
            return
        if event.boot != known.report.boot:
            known.boot_us, known.load = at_us, None
            known.heard_us = at_us
        known.report, known.seq, known.left = event, seq, False
        for model in event.models:
            held = known.held.get(model.name)
            if held is None:
                known.held[model.name] = Held(digest=model.digest, since_us=at_us)
            elif model.digest is not None and held.digest != model.digest:
                known.held[model.name] = Held(digest=model.digest, since_us=at_us, renewed=held.digest is not None)

    def _told(self, event: WorkerLeft | WorkerPaused | WorkerResumed, seq: int, at_us: int) -> None:
        machine = self.machines.get(event.worker)
        if machine is None or seq <= machine.seq:
            return
        machine.seq = seq
        match event:
            case WorkerLeft():
                machine.left = machine.left or event.boot == machine.report.boot
            case WorkerPaused():
                until = None if event.for_s is None else at_us + int(event.for_s * US)
                machine.paused, machine.paused_until_us = True, until
            case WorkerResumed():
                machine.paused, machine.paused_until_us = False, None

    # -- tasks ---------------------------------------------------------------------------------------------------------

    def _task(self, event: AnyEvent, at_us: int) -> None:
        if isinstance(event, TaskSubmitted):
            self.tasks.setdefault(event.task, Open(submitted=event, at_us=at_us))
            return
        task = self.tasks.get(getattr(event, "task", ""))
        if task is None:
            return
        match event:
            case TaskRouted():
                silent = {worker.worker for worker in event.inputs if not worker.alive}  # they may be heard again
                task.where = frozenset(c.worker for c in event.candidates) | silent
                task.speeds = {
                    (c.model, c.worker): rate * factor(c.others_use, _value(c.others_weight), _value(c.use_known))
                    for c in event.candidates
                    if (rate := c.decode.value)
                }
            case TaskReleased():
                self._goes_to(task, event.expected_worker, at_us)
            case TaskStarted():
                task.started = True
                self._goes_to(task, event.worker, at_us)
            case AttemptFailed():
                self._leaves(task, at_us)
            case TaskCompleted():
                self._completed(task, event, at_us)
                self._ended(task, at_us)
            case TaskFailed() | TaskCancelled() | TaskDead():
                if task.unasked and task.started and not isinstance(event, TaskCancelled):
                    self._in_vain(task, at_us)
                self._ended(task, at_us)
            case _:
                pass

    def _goes_to(self, task: Open, worker: str | None, at_us: int) -> None:
        if worker != task.on:
            self._leaves(task, at_us)
            task.since_us = at_us
        task.on = worker
        if (machine := self.machines.get(worker or "")) is not None and task.real:
            machine.used_us = at_us

    def _leaves(self, task: Open, at_us: int) -> None:
        """It is nowhere any more; what it took of the machine counts against the budget where nobody asked for it."""
        machine = self.machines.get(task.on or "")
        if machine is not None:
            machine.ended_us = at_us
        if machine is not None and task.real:
            machine.used_us = at_us
        elif machine is not None and task.unasked and not _is_free(task) and at_us >= machine.boot_us:
            machine.spent_s += max(0.0, (at_us - task.since_us) / US)
        task.on = None

    def _ended(self, task: Open, at_us: int) -> None:
        self._leaves(task, at_us)
        self.tasks.pop(task.submitted.task, None)

    def _completed(self, task: Open, event: TaskCompleted, at_us: int) -> None:
        bench, machine = task.submitted.bench, self.machines.get(event.worker)
        if task.real and bench is None:  # a judge in somebody's comparison is real work, and nobody's question
            self.real += 1
            self.use.ran(event.model, event.domain, event.tokens.prompt, at_us)
            self.own.ran(task.submitted, event)
        elif bench is not None and bench.purpose == "shadow":
            self.shadows += 1
        if machine is None:
            return
        output, decode_s = event.tokens.output or 0, event.times.decode_s or 0.0
        if event.outcome == "substituted" or output < 1 or decode_s <= 0.0:
            if task.unasked:
                self._in_vain(task, at_us)
            return
        machine.measured[event.model] = at_us
        machine.tried.pop(event.model, None)
        predicted = task.speeds.get((event.model, event.worker))
        if predicted and output >= DRIFT_TOKENS_LEAST and event.concurrency == 1:
            self._compare(machine, math.log(output / decode_s / predicted), at_us)

    def _in_vain(self, task: Open, at_us: int) -> None:
        model, worker = task.submitted.wants.model, task.submitted.wants.worker
        if model is not None and (machine := self.machines.get(worker or "")) is not None:
            machine.tried[model] = (machine.tried.get(model, (0, 0))[0] + 1, at_us)

    def _compare(self, machine: Machine, off: float, at_us: int) -> None:
        """Three observations off by more than 1.8 times in one direction: all that is known of the machine is in doubt."""
        machine.off = [*machine.off[-(DRIFT_RUN - 1) :], off]
        most = math.log(DRIFT_RATIO)
        if len(machine.off) == DRIFT_RUN and (min(machine.off) > most or max(machine.off) < -most):
            machine.drift_us, machine.off = at_us, []


def _is_free(task: Open) -> bool:
    bench = task.submitted.bench
    return bench is not None and bench.purpose == "probe" and bench.reason in FREE_REASONS


def _value(measure: object) -> float:
    value = getattr(measure, "value", None)
    return 1.0 if value is None else float(value)
