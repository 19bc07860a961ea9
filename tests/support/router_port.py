"""A second implementation of the router's port: tasks in memory, played by the test instead of by a fleet.

Answers "does the surface do its part?" without NATS. It keeps the port's promises: updates are replayed to late followers,
an unknown model raises with the nearest names, and an interactive task is cancelled when its last follower left.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from schemas.bias import Records
from schemas.demands import Demand, Measuring, Owed, RunShown
from schemas.errors import HeadraceError, UnknownModel, UnknownRun
from schemas.events import (
    Choice,
    Domain,
    FailureClass,
    ModelInfo,
    QualityJudged,
    TaskRouted,
    TaskSubmitted,
    Times,
    Tokens,
)
from schemas.statistics import Statistics
from schemas.work import Answer, Body, PullProgress, encode_wire
from services.router.compare import eligible
from services.router.contest import Eligible, Referee
from services.router.dispatch.permits import UNLIMITED
from services.router.dispatch.planner import Plan
from services.router.dispatch.state import RouterState
from services.router.domains import compile_rules, misspelt
from services.router.fleet import Fleet, WorkerView
from services.router.measures import Measures, measures
from services.router.policy.request import RouteRequest
from services.router.port import (
    EndUpdate,
    NewTask,
    Readiness,
    RestartUpdate,
    RoutesInForce,
    StatusUpdate,
    Submitted,
    TaskStatus,
    TokenUpdate,
    Update,
)
from services.router.rating import NotRated, Pick, Rated, Rating
from services.router.tally import Tally
from services.router.verification import Verification
from services.router.versus import Versus
from services.router.what_if import UnknownPolicy
from support import builders
from support.eventually import PATIENCE_S

DESKTOP = WorkerView(
    id="w-1",
    name="desktop",
    boot="b1",
    supports=("gpu_inference", "cpu_inference"),
    models={
        "qwen3": ModelInfo(
            name="qwen3", backend_name="qwen3:8b", digest="sha256:9f", context=40960, capability="gpu_inference"
        ),
        "smollm2:135m": ModelInfo(name="smollm2:135m", backend_name="smollm2", digest="sha256:aa"),
    },
    slots=2,
    free=1,
    running=1,
    wait_s=0.0,
    resident=frozenset({"qwen3"}),
    others_use=0.0,
    credit_age_s=1.0,
    armed={"g~gpu_inference~qwen3": 0},
    backend="ollama",
)
RULES = compile_rules()
LAPTOP = WorkerView(
    id="w-2",
    name="laptop",
    boot="b1",
    models={"smollm2:135m": ModelInfo(name="smollm2:135m", backend_name="smollm2.gguf", digest="sha256:bb")},
    others_reason="no_agent",
    backend="llama.cpp",
    local=False,
    fresh=False,
)
TOKENS = Tokens(prompt=12, cached=4, output=3)


class Play:
    """One task as the test plays it: each method is something the fleet would do."""

    def __init__(self, task: str, asked: NewTask, domain: str) -> None:
        self.asked = asked
        self.status = TaskStatus(task=task, state="waiting", client=asked.client, domain=domain, position=1)
        self.log: list[Update] = [StatusUpdate(status=self.status)]
        self.answer: Answer | None = None
        self.followers = 0
        self._abandoned = asyncio.Event()
        self._text = ""
        self._index = 0
        self._seen = 0
        self._moved = asyncio.Condition()

    def abandon(self) -> None:
        self._abandoned.set()

    @property
    def is_abandoned(self) -> bool:
        return self._abandoned.is_set()

    async def followed(self) -> None:
        """Until somebody follows and has seen everything so far."""
        async with asyncio.timeout(PATIENCE_S), self._moved:
            await self._moved.wait_for(lambda: self._seen == len(self.log))

    async def abandoned(self) -> None:
        """Until the last follower has left before the end."""
        await asyncio.wait_for(self._abandoned.wait(), PATIENCE_S)

    @property
    def ended(self) -> bool:
        return isinstance(self.log[-1], EndUpdate)

    async def move(self, **changes: Any) -> None:
        self.status = msgspec.structs.replace(self.status, **changes)
        await self._say(StatusUpdate(status=self.status))

    async def start(
        self, worker: str = "w-1", model: str = "qwen3", reason: str = "least predicted completion"
    ) -> None:
        choice = Choice(model=model, worker=worker, reason=reason)
        await self.move(
            state="running", worker=worker, model=model, choice=choice, attempt=self.status.attempt + 1, position=None
        )

    async def say(self, *texts: str, thinking: str = "", tool_calls: tuple[dict[str, Any], ...] = ()) -> None:
        for text in texts or ("",):
            self._text += text
            token = TokenUpdate(
                attempt=self.status.attempt, index=self._index, text=text, thinking=thinking, tool_calls=tool_calls
            )
            self._index += 1
            await self._say(token)

    async def restart(self, reason: str = "lost: desktop is silent") -> None:
        self._text, self._index = "", 0
        await self._say(RestartUpdate(attempt=self.status.attempt + 1, reason=reason))

    async def complete(self, text: str | None = None, *, times: Times | None = None, **answer: Any) -> None:
        status = self.status
        self.answer = Answer(
            task=status.task,
            attempt=status.attempt,
            model=status.model or "qwen3",
            worker=status.worker or "w-1",
            text=self._text if text is None else text,
            **{"finish_reason": "stop", "tokens": TOKENS, **answer},
        )
        ended = {"outcome": self.answer.outcome, "tokens": self.answer.tokens, "times": times}
        await self._end(self.answer, state="completed", **ended)

    async def fail(self, failure: FailureClass, detail: str = "") -> None:
        await self._end(None, state="failed", failure=failure, detail=detail)

    async def cancel(self, reason: str) -> None:
        await self._end(None, state="cancelled", detail=reason)

    async def die(self, detail: str = "") -> None:
        await self._end(None, state="dead", detail=detail)

    async def updates(self) -> AsyncIterator[Update]:
        seen = 0
        while True:
            async with self._moved:
                while seen >= len(self.log):
                    self._seen = seen
                    self._moved.notify_all()
                    await self._moved.wait()
            while seen < len(self.log):
                update = self.log[seen]
                seen += 1
                yield update
                if isinstance(update, EndUpdate):
                    return

    async def _end(self, answer: Answer | None, **changes: Any) -> None:
        self.status = msgspec.structs.replace(self.status, **changes)
        await self._say(EndUpdate(status=self.status, answer=answer))

    async def _say(self, update: Update) -> None:
        async with self._moved:
            self.log.append(update)
            self._moved.notify_all()


Script = Callable[[Play], Awaitable[None]]


async def plain_answer(play: Play) -> None:
    """Starts, says two pieces and completes."""
    await play.start()
    await play.say("Hello", " world")
    await play.complete()


class MemoryRouter:
    """``script`` plays each submitted task; None leaves it to the test. ``refusal`` is raised by every submission."""

    def __init__(self, script: Script | None = plain_answer) -> None:
        self.script = script
        self.refusal: HeadraceError | None = None
        self.view = Fleet(workers={worker.id: worker for worker in (DESKTOP, LAPTOP)})
        self.numbers = Statistics()
        self.in_force = RoutesInForce()
        self.state = Readiness(
            ready=True, dispatcher=True, epoch=1, position=5, last=5, workers=2, waiting=0, sync="always"
        )
        self.plays: dict[str, Play] = {}
        self.tally = Tally()
        self.proof = Verification(decision="task.routed", same=True, position=3, folded=5)
        self.referees: Referee | None = None
        self.judgements: list[QualityJudged] = []
        self.records = Records()
        self.demands: list[Demand] = []
        self.runs: dict[str, RunShown] = {}
        self.pulls: list[tuple[str, str]] = []
        self.pull_words: list[PullProgress] = []
        self.pulls_left = asyncio.Event()
        self._submitted = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()

    @property
    def last(self) -> Play:
        return next(reversed(self.plays.values()))

    async def submitted(self) -> None:
        """Until the first task is here."""
        await asyncio.wait_for(self._submitted.wait(), PATIENCE_S)

    async def submit(self, task: NewTask) -> Submitted:
        decision = self._decision(task)
        if self.refusal is not None:
            raise self.refusal
        encode_wire(task.body)
        name = f"t{len(self.plays) + 1}"
        domain = task.domain or "general"
        play = self.plays[name] = Play(name, task, domain)
        self._submitted.set()
        if self.script is not None:
            running = asyncio.ensure_future(self.script(play))
            self._running.add(running)
            running.add_done_callback(self._running.discard)
        label = Domain(label=domain, method="client" if task.domain else "rules", confidence=0.9)
        warning = misspelt(label, RULES)
        return Submitted(task=name, domain=label, language="en", decision=decision, warning=warning)

    async def cancel(self, task: str, reason: str) -> bool:
        play = self.plays.get(task)
        if play is None or play.ended:
            return False
        await play.cancel(reason)
        return True

    async def give_up(self, task: str) -> None:
        await self.cancel(task, "its client went away")

    async def status(self, task: str) -> TaskStatus | None:
        play = self.plays.get(task)
        return play.status if play is not None else None

    @asynccontextmanager
    async def follow(self, task: str) -> AsyncIterator[AsyncIterator[Update]]:
        play = self.plays[task]
        play.followers += 1
        try:
            yield play.updates()
        finally:
            play.followers -= 1
            if not play.followers and not play.ended:
                play.abandon()

    async def answer(self, task: str) -> Answer | None:
        return self.plays[task].answer

    async def asked(self, task: str) -> tuple[TaskSubmitted, Body] | None:
        play = self.plays.get(task)
        if play is None:
            return None
        return builders.build(TaskSubmitted, task=task, client=play.asked.client), play.asked.body

    def preview(self, task: NewTask) -> Submitted:
        domain = Domain(label=task.domain or "general", method="client" if task.domain else "rules", confidence=0.4)
        decision, warning = self._decision(task), misspelt(domain, RULES)
        return Submitted(task="preview", domain=domain, language="en", decision=decision, warning=warning)

    def _decision(self, task: NewTask) -> TaskRouted:
        wanted = task.wants.model
        if wanted is not None and wanted not in self.view.models():
            raise UnknownModel(wanted, tuple(difflib.get_close_matches(wanted, self.view.models(), n=3, cutoff=0.4)))
        candidate = msgspec.structs.replace(builders.DESK_CANDIDATE, model=wanted or "qwen3", worker="w-1")
        choice = Choice(model=candidate.model, worker="w-1", reason="least predicted completion")
        return builders.build(TaskRouted, candidates=(candidate,), choice=choice)

    async def explain(self, task: str) -> tuple[TaskStatus, TaskRouted | None, tuple[Any, ...]] | None:
        play = self.plays.get(task)
        return None if play is None else (play.status, self._decision(play.asked), ())

    async def verify(self, task: str) -> list[Verification] | None:
        if task not in self.plays:
            return None
        return [self.proof]

    async def versus(self, asked: NewTask | str, what: str) -> Versus:
        if what != "slider=2":
            raise UnknownPolicy(what, ("least_completion",))
        before = self._decision(self.plays[asked].asked if isinstance(asked, str) else asked)
        return Versus(what=what, label=what, other=before, asked=before, words=("The choice is the same.",))

    async def rate(self, rating: Rating) -> Rated | None:
        """A task's name stands for the message it was submitted as, too."""
        play = self.plays.get(rating.task or rating.message or "")
        if play is None:
            return None
        if not play.ended or play.answer is None:
            raise NotRated(f"task {play.status.task} is still {play.status.state}", retry_after_s=2.0)
        return self._judge(play, rating.client, rating.value, rating.comment)

    async def pick(self, pick: Pick) -> Rated | None:
        plays = [play for play in self.plays.values() if play.asked.parent == pick.compare]
        chosen = next((p for n, p in enumerate(plays, 1) if pick.chosen in (n, p.status.task)), None)
        return None if chosen is None else self._judge(chosen, pick.client, 1.0, pick.comment)

    def _judge(self, play: Play, client: str, value: float, comment: str | None) -> Rated:
        event = builders.build(
            QualityJudged, source="thumb", value=value, client=client, comment=comment, tasks=(play.status.task,),
            model=play.status.model or "qwen3", worker=play.status.worker, judge=None, peer=None,
        )  # fmt: skip
        again = any((e.tasks, e.client, e.value) == (event.tasks, client, value) for e in self.judgements)
        self.judgements.append(event)
        return Rated(task=play.status.task, events=(event,), before=again)

    def eligible(self, task: NewTask, models: Sequence[str], workers: Sequence[str]) -> Eligible:
        request = RouteRequest(prompt_tokens=10, max_tokens=task.options.max_tokens, wants=task.wants, kind=task.kind)
        return eligible(request, self.view, self.numbers, models=models, workers=workers, slider=1.0, now_us=0)

    async def referee(self, models: Sequence[str], domain: str, wanted: str | None) -> Referee | None:
        return self.referees if wanted is None else Referee(model=wanted)

    async def judges(self) -> Records:
        return self.records

    async def judged(self, event: QualityJudged) -> None:
        self.judgements.append(event)

    async def comparison(self, compare: str) -> tuple[str, ...]:
        return tuple(name for name, play in self.plays.items() if play.asked.parent == compare)

    async def bench(self, demand: Demand) -> RunShown:
        if self.refusal is not None:
            raise self.refusal
        self.demands.append(demand)
        run = self.runs[f"r{len(self.demands)}"] = RunShown(
            run=f"r{len(self.demands)}", state="running", done=0, total=3
        )
        return run

    async def bench_owed(self) -> Measuring:
        told = {"model": "qwen3", "worker": DESKTOP.id, "domain": "code"}
        owed = Owed(kind="probe", reason="stale", gain=0.4, why="a task runs there", **told)
        return Measuring(on=True, total=1, owed=(owed,), left_s={DESKTOP.id: 12.0})

    async def bench_run(self, run: str) -> RunShown:
        if run not in self.runs:
            raise UnknownRun(f"no run {run!r} is known")
        return self.runs[run]

    async def bench_cancel(self, run: str) -> RunShown:
        self.runs[run] = msgspec.structs.replace(await self.bench_run(run), state="cancelled")
        return self.runs[run]

    @asynccontextmanager
    async def pull(self, worker: str, model: str) -> AsyncIterator[AsyncIterator[PullProgress]]:
        """``pulls`` are (worker, model) as they began; ``pull_words`` what the machine says; without an end it goes on."""
        self.pulls.append((worker, model))

        async def said() -> AsyncIterator[PullProgress]:
            for word in self.pull_words:
                yield word
            if not self.pull_words or not (self.pull_words[-1].done or self.pull_words[-1].error):
                await asyncio.get_running_loop().create_future()

        try:
            yield said()
        finally:
            self.pulls_left.set()

    async def pause(self, worker: str, for_s: float | None, reason: str) -> None:
        self._replace(worker, paused=True, paused_until_us=None if for_s is None else int(for_s * 1e6))

    async def resume(self, worker: str, reason: str) -> None:
        self._replace(worker, paused=False, paused_until_us=None)

    def _replace(self, worker: str, **changes: Any) -> None:
        changed = msgspec.structs.replace(self.view.workers[worker], **changes)
        self.view = Fleet(workers={**self.view.workers, worker: changed})

    def fleet(self) -> Fleet:
        return self.view

    def routes(self) -> RoutesInForce:
        return self.in_force

    def statistics(self) -> Statistics:
        return self.numbers

    def queue(self) -> tuple[TaskStatus, ...]:
        return tuple(play.status for play in self.plays.values() if not play.ended)

    def recent(self, most: int) -> tuple[TaskStatus, ...]:
        return tuple(play.status for play in reversed(self.plays.values()) if play.status.choice is not None)[:most]

    def measures(self) -> Measures:
        return measures(RouterState(), Plan((), {}, {}, {}, {}), UNLIMITED, self.tally)

    def readiness(self) -> Readiness:
        return self.state
