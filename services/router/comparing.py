"""One comparison from its first task to its last: the same prompt to many machines at once, and a judge where one is wanted.

Answers "what happens in this comparison next?". Its tasks are ordinary ones, pinned to their machine: they wait where others do,
and limits hold. An answer that fails spoils no other; when whoever asked goes away, all that still runs is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress

import msgspec

from schemas.bias import weigh
from schemas.errors import HeadraceError
from schemas.events import Bench, Candidate, Domain, Pick, Removal, Wants
from schemas.judging import JUDGE_OPTIONS, Side, combine, pair_events, pick, question
from schemas.sizes import text_of
from schemas.work import Answer, Body
from services.router.compare import sides
from services.router.contest import Referee
from services.router.port import EndUpdate, NewTask, RouterPort, Submitted, TaskStatus, Update

GONE = "whoever compared went away"
JUDGING = "judging"
"""The domain of a judge's own tasks: ten tokens of verdict say nothing of how long an answer to the question would be."""


class NewComparison(msgspec.Struct, frozen=True, kw_only=True):
    """``task`` is what each of ``candidates`` is asked, ``id`` their common parent. ``judge``: whether somebody judges, and who
    where that was said."""

    id: str
    task: NewTask
    candidates: tuple[Candidate, ...]
    removed: tuple[Removal, ...] = ()
    judge: bool | str = False


class Entry(msgspec.Struct, kw_only=True):
    """One answer of a comparison, counted from 1."""

    number: int
    task: str
    candidate: Candidate
    status: TaskStatus | None = None
    answer: Answer | None = None


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """Two answers beside each other. ``picks`` are the first one's side: shown first, then shown second; ``value`` None where
    there is no verdict that counts."""

    first: int
    second: int
    judge: str | None
    kin: bool = False
    picks: tuple[Pick, ...] = ()
    value: float | None = None
    weight: float = 0.0
    words: str


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    entries: tuple[Entry, ...]
    removed: tuple[Removal, ...]
    domain: Domain
    language: str | None
    warning: str | None = None


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader of the entry's task learns."""

    entry: Entry
    update: Update


class Closed(msgspec.Struct, frozen=True, kw_only=True):
    """All have ended, and every verdict is in."""

    entries: tuple[Entry, ...]
    judged: tuple[Judged, ...]


Happening = Opened | Told | Judged | Closed


class Comparing:
    """``async with aclosing(Comparing(router, asked).run()) as happenings``: leaving it early cancels what runs."""

    def __init__(self, router: RouterPort, asked: NewComparison) -> None:
        self._router, self._asked = router, asked
        self._open: set[str] = set()
        self._working: set[asyncio.Task[None]] = set()
        self._happened: asyncio.Queue[Happening | None] = asyncio.Queue()
        self._entries: list[Entry] = []
        self._judged: list[Judged] = []

    async def run(self) -> AsyncGenerator[Happening, None]:
        """Raises HeadraceError where not one task was accepted, or the router fails."""
        running = asyncio.ensure_future(self._run())
        running.add_done_callback(lambda _: self._happened.put_nowait(None))
        try:
            while (happened := await self._happened.get()) is not None:
                yield happened
            running.result()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            for task in sorted(self._open):
                with suppress(HeadraceError):
                    await self._router.cancel(task, GONE)

    async def _run(self) -> None:
        opened = await self._submit_all()
        self._happened.put_nowait(opened)
        await asyncio.gather(*(self._answer(entry) for entry in self._entries))
        if self._asked.judge:
            await self._judge_all(opened)
        self._happened.put_nowait(Closed(entries=tuple(self._entries), judged=tuple(self._judged)))

    async def _submit_all(self) -> Opened:
        """One after the other: the order in the log is the entries' order. Whoever is refused is told of as removed."""
        removed, last, refusal = list(self._asked.removed), None, None
        for candidate in self._asked.candidates:
            wants = msgspec.structs.replace(
                self._asked.task.wants, model=candidate.model, worker=candidate.worker, route=None
            )
            try:
                last = await self._submit(wants, self._asked.task.body)
            except HeadraceError as error:
                refusal = error
                removed.append(Removal(model=candidate.model, worker=candidate.worker, reason=f"refused: {error}"))
                continue
            known = last.decision.candidates if last.decision is not None else ()
            pinned = (c for c in known if (c.model, c.worker) == (candidate.model, candidate.worker))
            number = len(self._entries) + 1
            self._entries.append(Entry(number=number, task=last.task, candidate=next(pinned, candidate)))
        if last is None:
            raise refusal or HeadraceError("nobody takes part in this comparison")
        return Opened(
            entries=tuple(self._entries), removed=tuple(removed), domain=last.domain, language=last.language,
            warning=last.warning,
        )  # fmt: skip

    async def _submit(self, wants: Wants, body: Body, **changes: object) -> Submitted:
        """Once it is accepted it is known here, even if nobody waits for that any more."""
        new = msgspec.structs.replace(
            self._asked.task, kind="compare", body=body, wants=wants, parent=self._asked.id, **changes
        )
        submitting = asyncio.ensure_future(self._router.submit(new))
        try:
            submitted = await asyncio.shield(submitting)
        except asyncio.CancelledError:
            with suppress(HeadraceError):
                self._open.add((await submitting).task)
            raise
        self._open.add(submitted.task)
        return submitted

    async def _answer(self, entry: Entry) -> None:
        try:
            async for update in self._updates(entry.task):
                self._tell(entry, update)
        except HeadraceError as error:
            lost = TaskStatus(task=entry.task, state="failed", detail=f"it cannot be followed any more: {error}")
            self._tell(entry, EndUpdate(status=lost))

    def _tell(self, entry: Entry, update: Update) -> None:
        if isinstance(update, EndUpdate):
            entry.status, entry.answer = update.status, update.answer
        self._happened.put_nowait(Told(entry=entry, update=update))

    async def _updates(self, task: str) -> AsyncGenerator[Update, None]:
        async with self._router.follow(task) as updates:
            async for update in updates:
                if isinstance(update, EndUpdate):
                    self._open.discard(task)
                yield update

    # -- the judge -----------------------------------------------------------------------------------------------------

    async def _judge_all(self, opened: Opened) -> None:
        by_task = {entry.task: entry for entry in self._entries}
        answers = {entry.task: entry.answer for entry in self._entries if entry.answer is not None}
        digests = {entry.task: entry.candidate.digest for entry in self._entries}
        pairs = sides(answers, digests)
        sat = [(own, peer, by_task[own.task], by_task[peer.task]) for own, peer in pairs]
        for verdict in asyncio.as_completed([self._judge(*pair, opened) for pair in sat]):
            judged = await verdict
            self._judged.append(judged)
            self._happened.put_nowait(judged)

    async def _judge(self, own: Side, peer: Side, first: Entry, second: Entry, opened: Opened) -> Judged:
        try:
            return await self._pair(own, peer, first, second, opened)
        except HeadraceError as error:
            return Judged(first=first.number, second=second.number, judge=None, words=str(error))

    async def _pair(self, own: Side, peer: Side, first: Entry, second: Entry, opened: Opened) -> Judged:
        """In both orders, at once; a judge that fails is a verdict that is missing, which is recorded and counts nothing."""
        domain, wanted = opened.domain.label, self._asked.judge if isinstance(self._asked.judge, str) else None
        referee = await self._router.referee((own.model, peer.model), domain, wanted)
        if referee is None:
            words = f"the fleet holds no third model that could judge between {own.model} and {peer.model}"
            return Judged(first=first.number, second=second.number, judge=None, words=words)
        said = await asyncio.gather(
            self._word(referee, first, second, opened), self._word(referee, second, first, opened)
        )
        picks = (pick(said[0], own_first=True), pick(said[1], own_first=False))
        value, why = combine(*picks)
        weight, related, note = weigh(referee.record, (own.model, own.chars), (peer.model, peer.chars), value)
        for event in pair_events(
            own, peer, picks, pair=f"{self._asked.id}.{first.number}-{second.number}", domain=domain,
            judge=referee.model, judge_digest=referee.digest, weight=weight, kin=related, at=0.0, by="",
        ):  # fmt: skip
            await self._router.judged(event)
        counts = "" if weight == 1.0 else f"; it counts {weight:.2g}" + (f": {note}" if note else "")
        return Judged(
            first=first.number, second=second.number, judge=referee.model, kin=related, picks=picks, value=value,
            weight=weight, words=f"{why}{counts}",
        )  # fmt: skip

    async def _word(self, referee: Referee, one: Entry, other: Entry, opened: Opened) -> str | None:
        assert one.answer is not None and other.answer is not None
        body = question(text_of(self._asked.task.body), one.answer.text, other.answer.text, language=opened.language)
        try:
            submitted = await self._submit(
                Wants(model=referee.model), body, options=JUDGE_OPTIONS, domain=JUDGING,
                bench=Bench(purpose="judge", of=(one.task, other.task)),
            )  # fmt: skip
            async with aclosing(self._updates(submitted.task)) as updates:
                async for update in updates:
                    if isinstance(update, EndUpdate):
                        return update.answer.text if update.answer is not None else None
        except HeadraceError:
            return None
        return None


def numbered(tasks: Sequence[str], chosen: int | str) -> str | None:
    """The task of an entry, by its number or its id."""
    if isinstance(chosen, str):
        return chosen if chosen in tasks else None
    return tasks[chosen - 1] if 1 <= chosen <= len(tasks) else None
