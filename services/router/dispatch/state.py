"""The router's memory as a fold over EVENTS: tasks, attempts, permits, workers.

Answers "what has happened, as far as the log goes?". It never reads a clock and never asks anybody. The same events give the
same state, whoever wrote them and however often the router restarted; ``Live`` holds what was only heard.

Which of two conflicting facts counts is decided by the stream's order:

- the first terminal fact of a task, for ever;
- of a start and a ``not_started``, whichever got the claim's id (only one can be stored);
- a release of an older epoch is refused and burns its attempt number: its message id is taken, so it can never be used again;
- a router's ``lost`` of an older epoch is refused (its message id carries the epoch, so nothing is blocked by it).
"""

from __future__ import annotations

import msgspec

from schemas.events import (
    AnyEvent,
    AttemptFailed,
    Choice,
    DispatcherElected,
    FailureClass,
    KeysAdopted,
    ModelInfo,
    QualityJudged,
    TaskCancelled,
    TaskCompleted,
    TaskDead,
    TaskFailed,
    TaskReleased,
    TaskRouted,
    TaskStarted,
    TaskSubmitted,
    Terminal,
    WorkerLeft,
    WorkerPaused,
    WorkerReported,
    WorkerResumed,
)
from services.router.dispatch.draws import Draws, Served, count, serve
from services.router.dispatch.worker_record import WorkerRecord

EARLY = 100
"""Decisions that wait for their task; a task whose submission was never stored never comes."""
RECENT = 5_000
"""Ended tasks remembered for status pages; older ones are the projector's. 5,000 statuses are about 10 MB."""

Key = tuple[str, int]


class Attempt(msgspec.Struct, kw_only=True):
    """One try of a task. It is live, and holds its permits, from its release to its stored end. ``service_s`` is what was
    predicted of ``expected``, without the wait."""

    n: int
    epoch: int
    model: str
    capability: str
    lane: str
    expected: str | None
    holders: tuple[str, ...]
    permits: tuple[str, ...]
    released_seq: int
    released_us: int
    start_deadline_s: float = 2.0
    service_s: float | None = None
    worker: str | None = None
    boot: str | None = None
    started_us: int | None = None
    started_seq: int = 0
    failure: FailureClass | None = None
    detail: str = ""
    tokens: int = 0
    ended: bool = False

    @property
    def started(self) -> bool:
        return self.worker is not None


class Task(msgspec.Struct, kw_only=True):
    """One task with its attempts. ``service_s`` is the decision's E[S], ``models`` the models of its candidates in their order,
    ``target`` what a route drew for it; ``seqs`` are the sequences of all facts that name it, so that they can be read again."""

    submitted: TaskSubmitted
    seq: int
    at_us: int
    routed_seq: int | None = None
    choice: Choice | None = None
    service_s: float | None = None
    models: tuple[str, ...] = ()
    target: str | None = None
    attempts: dict[int, Attempt] = {}
    burned: int = 0
    retryable: bool = True
    seqs: list[int] = []
    terminal: Terminal | None = None
    terminal_seq: int | None = None

    @property
    def next_attempt(self) -> int:
        return max(self.burned, max(self.attempts, default=0)) + 1

    @property
    def live(self) -> Attempt | None:
        """The attempt that was released and has not ended; a task has at most one."""
        last = self.attempts[max(self.attempts)] if self.attempts else None
        return last if last is not None and not last.ended else None

    @property
    def failures(self) -> tuple[FailureClass, ...]:
        """Of the *started* attempts, in order."""
        return tuple(a.failure for _, a in sorted(self.attempts.items()) if a.started and a.failure is not None)


class RouterState(msgspec.Struct, kw_only=True):
    """The fold. ``tasks`` are those not ended, or ended with an attempt still live; ``held`` counts live attempts' permits.
    ``early`` are decisions stored before their task: both leave at once, and a reconnection may part them."""

    position: int = 0
    epoch: int = 0
    tasks: dict[str, Task] = {}
    workers: dict[str, WorkerRecord] = {}
    held: dict[str, int] = {}
    keys: tuple[str, ...] = ("model", "domain", "worker")
    ended: int = 0
    refused: int = 0
    second_ends: int = 0
    recent: dict[str, Task] = {}
    early: dict[str, tuple[int, TaskRouted]] = {}
    draws: dict[str, Draws] = {}
    sessions: dict[str, Served] = {}

    def apply(self, event: AnyEvent, seq: int, at_us: int) -> None:
        """Fold one event in. Events at or below ``position`` were folded before and change nothing."""
        if seq <= self.position:
            return
        self.position = seq
        match event:
            case TaskSubmitted():
                if event.task not in self.tasks and event.task not in self.recent:
                    self.tasks[event.task] = Task(submitted=event, seq=seq, at_us=at_us)
                    if early := self.early.pop(event.task, None):
                        self.tasks[event.task].seqs.append(early[0])
                        self._routed(early[1], early[0])
            case TaskRouted():
                count(self.draws, event)
                self._routed(event, seq)
            case TaskReleased():
                self._released(event, seq, at_us)
            case TaskStarted():
                self._started(event, seq, at_us)
            case AttemptFailed():
                self._attempt_failed(event)
            case TaskCompleted():
                serve(self.sessions, event)
                self._end_attempt(event.task, event.attempt, None)
                self._terminal(event, seq)
            case TaskFailed() | TaskCancelled() | TaskDead():
                self._terminal(event, seq)
            case DispatcherElected():
                self.epoch = max(self.epoch, event.epoch)
            case WorkerReported():
                self.workers.setdefault(event.worker, WorkerRecord(report=event, seq=seq)).reported(event, seq, at_us)
            case WorkerLeft() if event.worker in self.workers:
                self.workers[event.worker].went(event.boot, at_us)
            case WorkerPaused() | WorkerResumed() if event.worker in self.workers:
                self.workers[event.worker].held(event, at_us)
            case KeysAdopted():
                self.keys = event.keys
            case QualityJudged():
                for judged in filter(None, map(self.task, event.tasks)):
                    judged.seqs.append(seq)
        if (task := self.task(getattr(event, "task", ""))) is not None:
            task.seqs.append(seq)

    def task(self, task: str) -> Task | None:
        return self.tasks.get(task) or self.recent.get(task)

    def attempt(self, key: Key) -> Attempt | None:
        task = self.task(key[0])
        return task.attempts.get(key[1]) if task is not None else None

    def backend_permit(self, worker: str) -> str:
        """Two workers over one backend share its permit."""
        record = self.workers.get(worker)
        return f"backend:{(record.report.backend_id if record else None) or worker}"

    def without_recent(self) -> RouterState:
        """A shallow copy for a snapshot: what is needed to go on, not what pages show."""
        return msgspec.structs.replace(self, recent={})

    def _routed(self, event: TaskRouted, seq: int) -> None:
        task = self.tasks.get(event.task)
        if task is None and event.task not in self.recent:
            self.early[event.task] = (seq, event)
            while len(self.early) > EARLY:
                del self.early[next(iter(self.early))]
        if task is None or task.terminal is not None:
            return
        task.routed_seq, task.choice = seq, event.choice
        task.service_s, task.target = event.service_s, event.target
        task.models = tuple(dict.fromkeys(c.model for c in event.candidates))

    def _released(self, event: TaskReleased, seq: int, at_us: int) -> None:
        task = self.tasks.get(event.task)
        if task is None:
            return
        stale = event.epoch < self.epoch or task.terminal is not None or task.live is not None
        if stale or event.attempt < task.next_attempt:
            task.burned = max(task.burned, event.attempt)
            self.refused += 1
            return
        task.attempts[event.attempt] = Attempt(
            n=event.attempt,
            epoch=event.epoch,
            model=event.model,
            capability=event.capability,
            lane=event.lane,
            expected=event.expected_worker,
            holders=event.holders,
            permits=event.permits,
            released_seq=seq,
            released_us=at_us,
            start_deadline_s=event.deadline_s,
            service_s=None
            if (predicted := event.predicted).total_s is None
            else predicted.total_s - (predicted.wait_s or 0.0),
        )
        self._hold(event.permits, +1)

    def _started(self, event: TaskStarted, seq: int, at_us: int) -> None:
        attempt = self.attempt((event.task, event.attempt))
        if attempt is None or attempt.ended or attempt.started:
            return
        attempt.worker, attempt.boot = event.worker, event.boot
        attempt.started_us, attempt.started_seq = at_us, seq
        own = self.backend_permit(event.worker)
        kept = tuple(p for p in attempt.permits if not p.startswith("backend:") or p == own)
        self._hold(attempt.permits, -1)
        attempt.permits = kept
        self._hold(kept, +1)

    def _attempt_failed(self, event: AttemptFailed) -> None:
        if event.failure == "lost" and event.epoch is not None and event.epoch < self.epoch:
            self.refused += 1
            return
        task = self.tasks.get(event.task)
        if task is not None and event.attempt in task.attempts and not task.attempts[event.attempt].ended:
            task.retryable = event.retryable or event.failure == "fenced"
            failed = task.attempts[event.attempt]
            failed.tokens, failed.detail = event.tokens, event.detail
        self._end_attempt(event.task, event.attempt, event.failure)

    def _end_attempt(self, task_id: str, n: int, failure: FailureClass | None) -> None:
        attempt = self.attempt((task_id, n))
        if attempt is None or attempt.ended:
            return
        attempt.ended, attempt.failure = True, failure
        self._hold(attempt.permits, -1)
        self._retire(task_id)

    def _terminal(self, event: Terminal, seq: int) -> None:
        task = self.task(event.task)
        if task is None:
            return
        if task.terminal is not None:
            self.second_ends += 1
            return
        task.terminal, task.terminal_seq = event, seq
        self.ended += 1
        self._retire(event.task)

    def _retire(self, task_id: str) -> None:
        task = self.tasks.get(task_id)
        if task is None or task.terminal is None or task.live is not None:
            return
        self.recent[task_id] = self.tasks.pop(task_id)
        while len(self.recent) > RECENT:
            del self.recent[next(iter(self.recent))]

    def _hold(self, permits: tuple[str, ...], by: int) -> None:
        for permit in permits:
            count = self.held.get(permit, 0) + by
            if count:
                self.held[permit] = count
            else:
                self.held.pop(permit, None)


def served(report: WorkerReported) -> tuple[ModelInfo, ...]:
    """The models whose groups the worker pulls from: it supports what they need; embeddings need no declaration."""
    return tuple(m for m in report.models if m.capability in report.supports or m.capability == "embedding")


def fold(state: RouterState, event: AnyEvent, seq: int, at_us: int) -> RouterState:
    """``apply`` in the shape of a fold; it changes ``state`` in place and returns it, for speed."""
    state.apply(event, seq, at_us)
    return state
