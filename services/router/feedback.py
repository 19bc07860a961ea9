"""Judgements on their way to the log: what people say of answers, and the signals that nobody gives on purpose.

Answers "which answer is meant, is it there yet, and is this said already?". A rating that comes before its answer waits a moment,
then is refused in words: it is never lost silently. Signals are the dispatching router's to say; message ids make each one fact,
whoever says it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from schemas.events import (
    AnyEvent,
    DispatcherElected,
    QualityJudged,
    TaskCancelled,
    TaskCompleted,
    TaskDead,
    TaskFailed,
    TaskSubmitted,
    Terminal,
)
from schemas.subjects import signal_id
from services.router import past
from services.router.desk import Desk
from services.router.follow import Channels
from services.router.lookback import Lookback
from services.router.port import NewTask
from services.router.rating import (
    NotRated,
    Pick,
    Rated,
    Rating,
    Word,
    answered,
    end_in,
    preference,
    preferences,
    thumb,
    withdrawal,
)
from services.router.signals import ASKED_AGAIN, Repeats, signal_event, signal_of
from services.router.view import status_of
from services.runtime.bus import Bus
from services.runtime.clock import Clock
from services.runtime.logs import logger

log = logger("router")

WAIT_S = 5.0
"""For an answer's end: who reads the last words and clicks at once is a second early; who rates a running answer is minutes."""
AGAIN_S, AGAIN_MOST_S = 2.0, 60.0
TRIES = 3
"""Each further one has seen the word that took the id of the one before."""
SAID_WITHIN_S = 3600.0
"""How old an answer may be whose signal a new dispatcher says again: well within the server's memory of message ids (2 h)."""


class Stored(NamedTuple):
    """The fact in the log, whether it was there before, and the one that it takes the place of."""

    event: QualityJudged
    was_there: bool
    supersedes: str | None


class Feedback:
    """``passed`` waits until the fold has reached a sequence, ``decides`` is whether this router dispatches."""

    def __init__(
        self,
        bus: Bus,
        desk: Desk,
        channels: Channels,
        lookback: Lookback,
        clock: Clock,
        *,
        salt: bytes,
        passed: Callable[[int], Awaitable[None]],
        decides: Callable[[], bool],
    ) -> None:
        self._bus, self._desk, self._channels, self._lookback, self._clock = bus, desk, channels, lookback, clock
        self._passed, self._decides = passed, decides
        self._repeats = Repeats(salt)
        self._waiting: dict[str, list[asyncio.Event]] = {}
        self._saying: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        for saying in self._saying:
            saying.cancel()
        if self._saying:
            await asyncio.wait(self._saying)

    # -- what people say -----------------------------------------------------------------------------------------------

    async def rate(self, rating: Rating) -> Rated | None:
        """None where nobody knows the task. Raises NotRated, or HeadraceError where it cannot be looked up."""
        task = rating.task or await self._named(rating.message or "", rating.client)
        events = await self._whole(task) if task is not None else ()
        if task is None or not events or (rating.own and _client(events) != rating.client):
            return None
        end = answered(_end(task, events))
        stored = await self._store(task, events, lambda facts: thumb(rating, end, facts, self._envelope()))
        return Rated(task=task, events=(stored.event,), before=stored.was_there, supersedes=stored.supersedes)

    async def pick(self, pick: Pick, chosen: str, others: list[str]) -> Rated:
        """``chosen`` is the answer's task, ``others`` those of the other answers of its comparison. Each pair is two facts, one
        pair for each other model: an answer of the same model is no rival, and a model that ran twice loses once. What a former
        pick said of any other pair counts no more: whoever chooses again says nothing of the rest."""
        own_events = await self._whole(chosen)
        own = answered(_end(chosen, own_events))
        facts = {chosen: own_events} | {other: await self._lookback.events_of(other) for other in others}
        rivals: dict[str, TaskCompleted] = {}
        for other in others:
            peer = end_in(facts[other])
            if isinstance(peer, TaskCompleted) and peer.model != own.model:
                rivals.setdefault(peer.model, peer)
        if not rivals:
            raise NotRated("there is no answer of another model to compare it with (yet); a thumb rates it alone")
        sides = [side for peer in rivals.values() for side in ((own, peer, 1.0), (peer, own, 0.0))]
        stored = [await self._prefer(pick, one, beside, value, facts[one.task]) for one, beside, value in sides]
        withdrawn = await self._withdraw(pick, facts, {(one.task, beside.task) for one, beside, _ in sides})
        events, before = tuple(s.event for s in stored), all(s.was_there for s in stored)
        return Rated(task=chosen, events=events, before=before, withdrawn=withdrawn)

    async def _prefer(
        self, pick: Pick, own: TaskCompleted, peer: TaskCompleted, value: float, events: tuple[AnyEvent, ...]
    ) -> Stored:
        return await self._store(
            own.task, events, lambda facts: preference(pick, own, peer, value, facts, self._envelope())
        )

    async def _withdraw(
        self, pick: Pick, facts: Mapping[str, tuple[AnyEvent, ...]], decided: set[tuple[str, ...]]
    ) -> tuple[str, ...]:
        """All that this client said of pairs but those ``decided`` now; the ids of the facts that count no more."""
        gone: list[str] = []
        for task, events in facts.items():
            for said in preferences(events, task, pick.client):
                if said.tasks not in decided:
                    await self._store(task, events, partial(self._taken_back, said))
                    gone.append(said.id)
        return tuple(gone)

    def _taken_back(self, said: QualityJudged, facts: tuple[AnyEvent, ...]) -> Word:
        return withdrawal(said, facts, self._envelope())

    async def say(self, event: QualityJudged) -> None:
        """A judge's word, stored under its own id."""
        ack = await self._bus.publish_event(event, event.id)
        await self._passed(ack.seq)

    async def submission(self, task: str) -> TaskSubmitted | None:
        """What was asked, without its text; None where nobody knows."""
        found = self._desk.state.task(task)
        if found is not None:
            return found.submitted
        return next((e for e in await self._lookback.events_of(task) if isinstance(e, TaskSubmitted)), None)

    async def _named(self, message: str, client: str) -> str | None:
        """The newest task that was submitted under this name: the client's own, else anybody's (a bridge rates for others)."""
        state = self._desk.state
        found = [t.submitted for t in (*state.recent.values(), *state.tasks.values()) if t.submitted.message == message]
        if found:
            return max(found, key=lambda submitted: (submitted.client == client, submitted.task)).task
        return await past.task_named(self._bus, message)

    async def _whole(self, task: str) -> tuple[AnyEvent, ...]:
        """All facts of a task that has ended, or ends within a moment."""
        found = self._desk.state.task(task)
        channel = self._channels.get(task)
        is_new = found is None and channel is not None and channel.status is not None and channel.end is None
        if is_new or (found is not None and found.terminal is None):
            await self._ended(task)
        return await self._lookback.events_of(task)

    async def _ended(self, task: str) -> None:
        ended = asyncio.Event()
        self._waiting.setdefault(task, []).append(ended)
        try:
            async with asyncio.timeout(WAIT_S):
                await ended.wait()
        except TimeoutError:
            raise self._too_early(task) from None
        finally:
            if ended in (waiting := self._waiting.get(task, [])):
                waiting.remove(ended)
            if not waiting:
                self._waiting.pop(task, None)

    def _too_early(self, task: str) -> NotRated:
        """Nothing of it is kept: whoever rates says it again when there is an answer."""
        found = self._desk.state.task(task)
        state, left_s = "waiting", None
        if found is not None:
            status = status_of(found, now_us=int(self._clock.unix() * 1e6))
            state, left_s = status.state, status.ends_s
        again_s = min(max(left_s or 0.0, AGAIN_S), AGAIN_MOST_S)
        return NotRated(
            f"task {task} is still {state}; rate its answer when it is there (nothing was stored)",
            retry_after_s=again_s,
        )

    async def _store(
        self, task: str, events: tuple[AnyEvent, ...], say: Callable[[tuple[AnyEvent, ...]], Word]
    ) -> Stored:
        """What ``say`` makes of the task's facts, stored; said anew where its id was taken by a word that counts no more."""
        for _ in range(TRIES):
            word = say(events)
            if word.is_stored:
                return Stored(word.event, True, None)
            ack = await self._bus.publish_event(word.event, word.msg_id)
            await self._passed(ack.seq)
            found = await past.events_at(self._bus, [ack.seq]) if ack.duplicate else ()
            if not found or found[0].id == word.event.id:
                return Stored(word.event, False, word.supersedes)
            events = await self._lookback.events_of(task)
        raise NotRated(f"others rate task {task} at this moment; say it again", retry_after_s=AGAIN_S)

    # -- what answers say of themselves --------------------------------------------------------------------------------

    def noticed(self, new: NewTask) -> tuple[str | None, Callable[[str], None]]:
        """The task that this one asks again, and what to call with its own id once it is accepted."""
        digest = self._repeats.digest(new)
        if digest is None:
            return None, lambda _task: None
        return self._repeats.earlier(digest, self._desk.now), lambda task: self._repeats.remember(
            digest, task, self._desk.now
        )

    def told(self, event: AnyEvent) -> None:
        """A new fact."""
        match event:
            case TaskCompleted():
                self._repeats.completed(event.task, self._desk.now)
                self._arrived(event.task)
                self._signal(event)
            case TaskFailed() | TaskCancelled() | TaskDead():
                self._repeats.forget((event.task,))
                self._arrived(event.task)
            case TaskSubmitted() if event.repeats is not None and self._decides():
                self._start(self._asked_again(event.repeats, event.id))
            case DispatcherElected() if event.router == self._desk.router:
                self._catch_up()

    def _arrived(self, task: str) -> None:
        for waiting in self._waiting.get(task, ()):
            waiting.set()

    def _catch_up(self) -> None:
        """What a former dispatcher may have left unsaid."""
        for task in (*self._desk.state.recent.values(), *self._desk.state.tasks.values()):
            if isinstance(task.terminal, TaskCompleted) and self._clock.unix() - task.terminal.at < SAID_WITHIN_S:
                self._signal(task.terminal)
            if task.submitted.repeats is not None and self._clock.unix() - task.submitted.at < SAID_WITHIN_S:
                self._start(self._asked_again(task.submitted.repeats, task.submitted.id))

    def _signal(self, end: TaskCompleted) -> None:
        signal, task = signal_of(end), self._desk.state.task(end.task)
        is_judge = task is not None and task.submitted.bench is not None
        if signal is not None and self._decides() and not is_judge and (task is None or task.terminal is end):
            self._start(self._say_signal(end, signal, end.id))

    async def _asked_again(self, earlier: str, cause: str) -> None:
        end = end_in(await self._lookback.events_of(earlier))
        if isinstance(end, TaskCompleted):
            await self._say_signal(end, ASKED_AGAIN, cause)

    async def _say_signal(self, end: TaskCompleted, signal: str, cause: str) -> None:
        event = signal_event(end, signal, cause=cause, envelope=self._envelope())
        await self._bus.publish_event(event, signal_id(end.task, signal))

    def _start(self, work: Any) -> None:
        saying = asyncio.create_task(work)
        self._saying.add(saying)
        saying.add_done_callback(self._said)

    def _said(self, saying: asyncio.Task[None]) -> None:
        self._saying.discard(saying)
        if not saying.cancelled() and (error := saying.exception()) is not None:
            log.warning("a signal was not stored", action="signal_lost", error=str(error))

    def _envelope(self) -> dict[str, Any]:
        return {"id": self._desk.new_id(), "at": self._clock.unix(), "by": self._desk.router}


def _client(events: tuple[AnyEvent, ...]) -> str | None:
    return next((event.client for event in events if isinstance(event, TaskSubmitted)), None)


def _end(task: str, events: tuple[AnyEvent, ...]) -> Terminal:
    end = end_in(events)
    if end is None:
        raise NotRated(
            f"task {task} has no answer yet; rate it when it has (nothing was stored)", retry_after_s=AGAIN_S
        )
    return end
