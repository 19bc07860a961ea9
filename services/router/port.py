"""The interface between the router's shell (``service``) and its HTTP surfaces, as plain values.

Answers "what can a surface ask of the router?". No surface touches NATS, the fold or the planner.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol

import msgspec

from schemas.bias import Records
from schemas.events import (
    Bench,
    Choice,
    Domain,
    FailureClass,
    Kind,
    Options,
    Outcome,
    QualityJudged,
    TaskRouted,
    TaskSubmitted,
    Times,
    Tokens,
    Urgency,
    Verdict,
    Wants,
)
from schemas.statistics import Statistics
from schemas.work import Answer, Body
from services.router.bench_port import BenchPort
from services.router.contest import Eligible, Referee
from services.router.fleet import Fleet
from services.router.measures import Measures
from services.router.policy.routes import Routes
from services.router.prospect import Prospect
from services.router.pull_port import PullPort
from services.router.rating import Pick, Rated, Rating
from services.router.refusals import (
    Busy as Busy,
    TooLarge as TooLarge,
    UnknownDomain as UnknownDomain,
    UnknownWorker as UnknownWorker,
    Unsupported as Unsupported,
)
from services.router.verification import Verification
from services.router.versus import Versus

State = Literal["waiting", "released", "running", "completed", "failed", "cancelled", "dead"]


class NewTask(msgspec.Struct, frozen=True, kw_only=True):
    """A request as every surface hands it over. ``domain`` overrides the classification; ``message`` is the client's name for
    the answer. ``verdict`` and ``repeats`` are the service's to add, ``bench`` says what a judge of a comparison judges."""

    client: str = "local"
    session: str | None = None
    kind: Kind = "chat"
    urgency: Urgency = "interactive"
    body: Body
    wants: Wants = Wants()
    options: Options = Options()
    domain: str | None = None
    deadline_s: float | None = None
    parent: str | None = None
    verdict: Verdict | None = None
    message: str | None = None
    bench: Bench | None = None
    repeats: str | None = None


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """What the router stored (its PubAck is in). ``decision`` is provisional until the task starts; ``prospect`` is a
    preview's; ``warning`` says what in the request may be a mistake, although it was taken as it is."""

    task: str
    domain: Domain
    language: str | None
    decision: TaskRouted | None = None
    prospect: Prospect | None = None
    warning: str | None = None


RiseCode = Literal["joined_ahead", "died", "paused", "slower_than_predicted"]


class Rise(msgspec.Struct, frozen=True, kw_only=True):
    """A place, or the seconds to a start, that got worse, and why. ``before`` None: it did not wait; ``after`` None: unknown."""

    of: Literal["position", "eta_s"]
    before: float | None
    after: float | None
    code: RiseCode
    words: str


class TaskStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Where a task stands. ``position`` counts from 1 among the waiting; ``reason`` is a hold's code and words; ``eta_s`` are the
    predicted seconds until it starts, None unknown; ``rises`` the latest of each of the two while it waits, unless made good.
    ``ran_s``, ``ends_s`` and ``late_s`` are of what runs: the seconds since its start, those predicted until its end (None:
    unknown), and those that it has run longer than was predicted (None: it has not, or nothing was)."""

    task: str
    state: State
    client: str = ""
    kind: Kind = "chat"
    domain: str | None = None
    language: str | None = None
    model: str | None = None
    worker: str | None = None
    expected_worker: str | None = None
    choice: Choice | None = None
    attempt: int = 0
    position: int | None = None
    reason: str | None = None
    eta_s: float | None = None
    rises: tuple[Rise, ...] = ()
    waited_s: float | None = None
    ran_s: float | None = None
    ends_s: float | None = None
    late_s: float | None = None
    outcome: Outcome | None = None
    finish_reason: str | None = None
    failure: FailureClass | None = None
    detail: str | None = None
    tokens: Tokens | None = None
    times: Times | None = None


class StatusUpdate(msgspec.Struct, frozen=True, kw_only=True, tag="status"):
    """The task moved: queued with a position and a reason, released, started on a worker."""

    status: TaskStatus


class TokenUpdate(msgspec.Struct, frozen=True, kw_only=True, tag="token"):
    """A piece of the answer; ``index`` has no holes within an attempt."""

    attempt: int
    index: int
    text: str = ""
    thinking: str = ""
    tool_calls: tuple[dict[str, Any], ...] = ()
    logprobs: tuple[dict[str, Any], ...] = ()


class RestartUpdate(msgspec.Struct, frozen=True, kw_only=True, tag="restart"):
    """Text was delivered and its attempt died; what follows starts over with ``attempt``."""

    attempt: int
    reason: str


class EndUpdate(msgspec.Struct, frozen=True, kw_only=True, tag="end"):
    """The terminal fact. ``answer`` is the whole stored answer of a completed task, None otherwise."""

    status: TaskStatus
    answer: Answer | None = None


Update = StatusUpdate | TokenUpdate | RestartUpdate | EndUpdate


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """``ready`` is False until the log is caught up. ``sync`` says what an acknowledgement survives; ``routes`` and ``settings``
    why routes.toml and the settings file as they are now are not in force."""

    ready: bool
    dispatcher: bool
    epoch: int
    position: int
    last: int
    workers: int
    waiting: int
    sync: str | None
    reason: str | None = None
    routes: str | None = None
    settings: str | None = None


class RoutesInForce(msgspec.Struct, frozen=True, kw_only=True):
    """The virtual models. ``problem`` says, with its line, why the file as it is now is not what is in force."""

    routes: Routes = Routes()
    path: str | None = None
    problem: str | None = None


class RouterPort(BenchPort, PullPort, Protocol):
    """What HTTP surfaces may ask. Every method answers from memory unless it says otherwise."""

    async def submit(self, task: NewTask) -> Submitted:
        """Store the body and the fact; raises UnknownModel, Busy, or HeadraceError with a clear message."""
        ...

    async def cancel(self, task: str, reason: str) -> bool:
        """Ask for cancellation; False where the task is unknown or already ended. The running stream closes upstream."""
        ...

    async def status(self, task: str) -> TaskStatus | None:
        """From memory, else from the projector."""
        ...

    async def give_up(self, task: str) -> None:
        """Its only client is gone for good: an interactive task that nobody else follows is cancelled at once."""
        ...

    def follow(self, task: str) -> AbstractAsyncContextManager[AsyncIterator[Update]]:
        """Updates from the task's present state to its end, whichever came first: tokens already seen are replayed.

        When the last follower of an interactive task leaves before its end, the router cancels it after the grace time."""
        ...

    async def answer(self, task: str) -> Answer | None:
        """The stored answer of a completed task, read from TASKS; None when there is none or it has expired."""
        ...

    async def asked(self, task: str) -> tuple[TaskSubmitted, Body] | None:
        """What was asked, with its text, read from TASKS; None where the task is unknown or its text is gone."""
        ...

    def preview(self, task: NewTask) -> Submitted:
        """What ``submit`` would say now, as the task ``preview``; nothing is stored. Raises UnknownModel."""
        ...

    async def explain(self, task: str) -> tuple[TaskStatus, TaskRouted | None, tuple[Any, ...]] | None:
        """Status, the decision and all events known of a task (from memory, else from the projector)."""
        ...

    async def verify(self, task: str) -> list[Verification] | None:
        """Each decision on the task, computed again from the log; None where the task is unknown. Asks the projector."""
        ...

    async def versus(self, asked: NewTask | str, what: str) -> Versus:
        """What a policy, a route, a past task or the statistics of a past time say of a task that might be asked, or of one
        that was (its id). Raises HeadraceError where ``what`` is none of these."""
        ...

    async def rate(self, rating: Rating) -> Rated | None:
        """Store what somebody thinks of an answer; None where nobody knows the task. Raises NotRated where it has no answer."""
        ...

    async def pick(self, pick: Pick) -> Rated | None:
        """Store which answer of a comparison somebody prefers; None where nobody knows the comparison or the entry."""
        ...

    def eligible(self, task: NewTask, models: Sequence[str], workers: Sequence[str]) -> Eligible:
        """Who could answer the task now, of these models and workers (ids; none means all). Raises UnknownModel."""
        ...

    async def referee(self, models: Sequence[str], domain: str, wanted: str | None) -> Referee | None:
        """Who judges between these models; None where nobody can. Reads the judges' records from the log."""
        ...

    async def judges(self) -> Records: ...

    async def judged(self, event: QualityJudged) -> None:
        """Store a judge's word once, under its id; who says it, and when, is the router's to add."""
        ...

    async def comparison(self, compare: str) -> tuple[str, ...]:
        """A comparison's tasks in their order, its judges' among them; empty where nobody knows it."""
        ...

    async def pause(self, worker: str, for_s: float | None, reason: str) -> None:
        """Take a machine out, by its id: what runs there ends, nothing new begins until ``resume`` or the end of ``for_s``."""
        ...

    async def resume(self, worker: str, reason: str) -> None: ...

    def fleet(self) -> Fleet: ...

    def routes(self) -> RoutesInForce: ...

    def statistics(self) -> Statistics: ...

    def queue(self) -> tuple[TaskStatus, ...]:
        """The waiting tasks in order, then the released and running ones."""
        ...

    def recent(self, most: int) -> tuple[TaskStatus, ...]:
        """The tasks last decided that memory knows, the newest first; ended or not."""
        ...

    def measures(self) -> Measures: ...

    def readiness(self) -> Readiness: ...
