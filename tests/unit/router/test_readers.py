"""Readers learn what they came for, whenever they come, and are missed when they go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count

import pytest

from schemas import events
from schemas.events import AnyEvent
from schemas.subjects import answer_subject
from schemas.work import Answer, TokenChunk, encode_wire
from services.router.desk import Desk
from services.router.dispatch.permits import Limits
from services.router.follow import Channels
from services.router.port import EndUpdate, StatusUpdate, TaskStatus, TokenUpdate, Update
from services.router.readers import Readers
from services.runtime.bus import Bus
from support.builders import TASK, build
from support.eventually import PATIENCE_S, eventually

ANSWER = Answer(task=TASK, attempt=1, model="m", worker="w", text="one two")


class Desks:
    """Readers at a desk to which facts come by hand."""

    def __init__(self, bus: Bus) -> None:
        numbers, self.seqs = count(), count(1)
        self.desk = Desk("r1", slider=1.0, limits=Limits(), new_id=lambda: f"id-{next(numbers)}")
        self.desk.clock.interval_s = 100.0
        self.channels = Channels()
        self.readers = Readers(bus, self.desk, self.channels, unix=lambda: 1_000.0, grace_s=5.0)
        self.beat(0.0)

    def tell(self, *told: AnyEvent) -> None:
        for event in told:
            self.desk.fold([(event, next(self.seqs), 0)])
            self.readers.told(event)

    def beat(self, monotonic: float, *queue: TaskStatus) -> None:
        self.desk.beat(monotonic, 1_000.0)
        self.readers.beat(lambda: queue)

    async def read(self) -> list[Update]:
        async with asyncio.timeout(PATIENCE_S), self.readers.follow(TASK) as updates:
            return [update async for update in updates]


@pytest.fixture
async def desks(bus: Bus) -> AsyncIterator[Desks]:
    await bus.publish_stored(answer_subject("me", TASK, 1), encode_wire(ANSWER), "answer")
    desks = Desks(bus)
    yield desks
    await desks.readers.close()


SUBMITTED, STARTED, COMPLETED = build(events.TaskSubmitted), build(events.TaskStarted), build(events.TaskCompleted)


async def test_a_reader_from_the_beginning_sees_tokens_and_the_end(desks: Desks) -> None:
    desks.tell(SUBMITTED)
    reading = asyncio.create_task(desks.read())
    await eventually(lambda: (channel := desks.channels.get(TASK)) is not None and channel.readers)
    desks.channels.token(TokenChunk(task=TASK, attempt=1, index=0, text="one "), "w")
    desks.tell(build(events.TaskReleased), STARTED, COMPLETED)
    updates = await reading
    assert [update.text for update in updates if isinstance(update, TokenUpdate)] == ["one ", "two"]
    assert updates[-1] == EndUpdate(status=desks.readers.status(desks.desk.state.recent[TASK]), answer=ANSWER)


async def test_a_reader_after_the_end_gets_the_stored_answer(desks: Desks) -> None:
    desks.tell(SUBMITTED, COMPLETED)
    for _ in range(2):
        last = (await desks.read())[-1]
        assert isinstance(last, EndUpdate) and last.answer == ANSWER


async def test_nothing_is_kept_of_a_task_that_nobody_reads(desks: Desks) -> None:
    desks.channels.open(TASK)
    desks.tell(SUBMITTED)
    desks.channels.token(TokenChunk(task=TASK, attempt=1, index=0, text="one "), "w")
    desks.tell(COMPLETED)
    assert desks.channels.get(TASK) is None
    assert not desks.readers._lookups


async def test_an_end_without_an_answer_is_still_an_end(desks: Desks) -> None:
    desks.tell(SUBMITTED, build(events.TaskCancelled))
    (end,) = [update for update in await desks.read() if isinstance(update, EndUpdate)]
    assert (end.status.state, end.answer) == ("cancelled", None)


@pytest.mark.parametrize(("urgency", "cancelled"), [("interactive", True), ("batch", False)])
async def test_only_an_interactive_task_is_cancelled_when_its_last_reader_is_gone_for_long(
    desks: Desks, urgency: str, cancelled: bool
) -> None:
    desks.tell(build(events.TaskSubmitted, urgency=urgency))
    async with desks.readers.follow(TASK):
        desks.beat(50.0)
    desks.beat(54.0)
    assert desks.desk.live.cancels == {}
    desks.beat(55.0)
    assert bool(desks.desk.live.cancels) is cancelled


async def test_a_waiting_reader_learns_its_place_and_reason_once(desks: Desks) -> None:
    desks.tell(SUBMITTED)
    place = TaskStatus(task=TASK, state="waiting", position=2, reason="busy: all machines are busy", waited_s=1.0)
    async with desks.readers.follow(TASK) as updates:
        await anext(updates)
        desks.beat(1.0, place)
        desks.beat(2.0, place)
        told = await anext(updates)
        channel = desks.channels.get(TASK)
        assert channel is not None and all(queue.empty() for queue in channel.readers)
    assert not isinstance(told, TokenUpdate | EndUpdate)
    assert told.status.position == 2  # type: ignore[union-attr]


async def test_a_channel_of_a_task_that_nobody_knows_is_forgotten(desks: Desks) -> None:
    async with desks.readers.follow("nobody's"):
        pass
    desks.beat(61.0)
    assert desks.channels.get("nobody's") is None


async def test_places_are_told_at_most_once_a_second_and_stay_in_what_is_told_between(desks: Desks) -> None:
    def place(position: int) -> TaskStatus:
        return TaskStatus(task=TASK, state="waiting", position=position, reason="busy: all are", eta_s=4.0 * position)

    desks.tell(SUBMITTED)
    async with desks.readers.follow(TASK) as updates:
        await anext(updates)
        desks.beat(1.0, place(3))
        desks.beat(1.5, place(2))
        desks.tell(build(events.TaskRouted))
        desks.beat(2.0, place(1))
        told = [await anext(updates) for _ in range(3)]
    seen = [(update.status.position, update.status.eta_s) for update in told if isinstance(update, StatusUpdate)]
    assert seen == [(3, 12.0), (3, 12.0), (1, 4.0)]


async def test_what_does_not_come_at_the_first_try_is_looked_up(desks: Desks, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to the one question was lost with its connection."""
    lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    monkeypatch.setattr(desks.readers._bus, "asking_last_for", lambda *_: lost)
    desks.tell(SUBMITTED)
    reading = asyncio.create_task(desks.read())
    await eventually(lambda: (channel := desks.channels.get(TASK)) is not None and channel.readers)
    desks.tell(COMPLETED)
    lost.set_result(None)
    last = (await reading)[-1]
    assert isinstance(last, EndUpdate) and last.answer == ANSWER


async def test_an_answer_that_cannot_be_read_ends_its_task_all_the_same(desks: Desks, bus: Bus) -> None:
    await bus.publish_stored(answer_subject("me", TASK, 1), b"{", "another")
    desks.tell(SUBMITTED)
    reading = asyncio.create_task(desks.read())
    await eventually(lambda: (channel := desks.channels.get(TASK)) is not None and channel.readers)
    desks.tell(COMPLETED)
    last = (await reading)[-1]
    assert isinstance(last, EndUpdate) and (last.status.state, last.answer) == ("completed", None)
