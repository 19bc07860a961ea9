"""The release valve in its smallest form: a router that releases only against credits, and workers that pull.

It says what PROTOCOL.md says and no more: no models, no HTTP, no statistics. The services' own code is not used here on purpose:
this proves that the rules hold on a real server before anything is built on them. As a script it is a worker that can be frozen.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from nats.aio.msg import Msg

from schemas import subjects
from schemas.codec import decode
from schemas.events import (
    AttemptFailed,
    Credit,
    Event,
    RunningAttempt,
    TaskCompleted,
    TaskReleased,
    TaskStarted,
    TaskSubmitted,
)
from services.runtime.bus import Bus
from services.runtime.feed import Feed
from services.runtime.ids import new_id
from services.runtime.stored import StoredMessage
from services.runtime.take import Round, Taken, Taker
from support.builders import build as build_event
from support.eventually import PATIENCE_S

CAPABILITY, MODEL, CLIENT = "chat", "m", "me"
ROUTER = "router"
GROUP = subjects.group_durable(CAPABILITY, MODEL)
Attempt = tuple[str, int]
E = TypeVar("E", bound=Event)


def build(kind: type[E], **fields: Any) -> E:
    """An event with an id of its own: who holds a claim is decided by it."""
    return build_event(kind, id=new_id(), **fields)


@dataclass
class Valve:
    """The router's side. ``log`` is what the stream says, one line for each fact, in stream order."""

    bus: Bus
    preference: tuple[str, ...]
    cap: int = 100
    deadline_s: float = 2.0
    log: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    attempts: dict[str, int] = field(default_factory=dict)
    live: dict[Attempt, str] = field(default_factory=dict)
    started: set[Attempt] = field(default_factory=set)
    ended: set[Attempt] = field(default_factory=set)
    items: dict[Attempt, int] = field(default_factory=dict)
    credits: dict[str, Credit] = field(default_factory=dict)
    suspects: dict[str, set[str]] = field(default_factory=dict)
    live_max: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def start(self) -> Feed:
        await self.bus.listen(subjects.CREDITS_ALL, self._credited)
        feed = await Feed(self.bus, "EVENTS", self._fold).start()
        await feed.caught_up.wait()
        return feed

    async def until(self, holds: Callable[[], bool], within_s: float = PATIENCE_S) -> bool:
        """False where it did not come to hold."""
        try:
            async with asyncio.timeout(within_s), self.changed:
                await self.changed.wait_for(holds)
        except TimeoutError:
            return False
        return True

    async def submit(self, *tasks: str) -> None:
        for task in tasks:
            body = subjects.body_subject(CLIENT, task)
            await self.bus.publish_stored(body, b"prompt", subjects.submit_id(task))
            await self.say(build(TaskSubmitted, task=task, by=ROUTER), subjects.submit_id(task))
        assert await self.until(lambda: all(task in self.waiting for task in tasks))

    def available(self, worker: str) -> int:
        """PROTOCOL.md: free − live attempts planned for it that its own word does not list."""
        credit = self.credits.get(worker)
        if credit is None:
            return 0
        listed = {(running.task, running.attempt) for running in credit.running}
        return credit.free - sum(planned == worker and attempt not in listed for attempt, planned in self.live.items())

    async def pump(self) -> None:
        """Release one after the other, each after the start of the one before, while credits and permits last."""
        while self.waiting and len(self.live) < self.cap:
            task = self.waiting[0]
            fit = [w for w in self.preference if self.available(w) > 0 and w not in self.suspects.get(task, ())]
            if not fit:
                return
            lane = fit[0] if self.suspects.get(task) else subjects.ANY_LANE
            await self.put_item(await self.decide(task, fit[0], lane))
            attempt = (task, self.attempts[task])
            if not await self.until(lambda attempt=attempt: attempt in self.started, self.deadline_s):  # type: ignore[misc]
                await self.revoke(attempt)

    async def decide(self, task: str, worker: str, lane: str = subjects.ANY_LANE) -> TaskReleased:
        """Store the release. The item follows only after our own fold has accepted it."""
        number = self.attempts.get(task, 0) + 1
        released = build(
            TaskReleased,
            task=task,
            attempt=number,
            expected_worker=worker,
            lane=lane,
            capability=CAPABILITY,
            model=MODEL,
            by=ROUTER,
        )
        await self.say(released, subjects.release_id(task, number))
        assert await self.until(lambda: (task, number) in self.live)
        return released

    async def put_item(self, released: TaskReleased) -> None:
        task, number = released.task, released.attempt
        subject = subjects.item_subject(CAPABILITY, MODEL, released.lane, task, number)
        ack = await self.bus.publish_stored(subject, b"item", subjects.item_id(task, number))
        self.items[task, number] = ack.seq

    async def revoke(self, attempt: Attempt) -> bool:
        """Take the claim's own id. If it is taken, the attempt has started: leave it."""
        task, number = attempt
        suspect = self.live[attempt]
        failed = build(AttemptFailed, task=task, attempt=number, failure="not_started", worker=None, by=ROUTER)
        if not await self.say(failed, subjects.start_id(task, number)):
            return False
        self.suspects.setdefault(task, set()).add(suspect)
        await self.bus.delete_message("TASKS", self.items[attempt])
        return await self.until(lambda: attempt in self.ended)

    async def recover(self) -> None:
        """On start: an item that is missing is put under the same id; one that is there is left."""
        for (task, number), worker in self.live.items():
            if (task, number) in self.started:
                continue
            subject = subjects.item_subject(CAPABILITY, MODEL, subjects.ANY_LANE, task, number)
            found = await self.bus.last_for("TASKS", subject)
            if found is not None:
                self.items[task, number] = found.seq
                continue
            release = build(TaskReleased, task=task, attempt=number, expected_worker=worker, lane="any", by=ROUTER)
            await self.put_item(release)

    async def say(self, event: Event, msg_id: str) -> bool:
        return await say(self.bus, event, msg_id)

    async def _credited(self, message: Msg) -> None:
        credit = msgspec.json.decode(message.data, type=Credit)
        async with self.changed:
            self.credits[credit.worker] = credit
            self.changed.notify_all()

    async def _fold(self, message: StoredMessage) -> None:
        event = decode(message.data)
        async with self.changed:
            self._apply(event)
            self.changed.notify_all()

    def _apply(self, event: object) -> None:
        if isinstance(event, TaskSubmitted):
            self.waiting.append(event.task)
            self.log.append(f"{event.task} submitted")
            return
        assert isinstance(event, TaskReleased | TaskStarted | AttemptFailed | TaskCompleted)
        attempt = (event.task, event.attempt)
        name = f"{event.task}.{event.attempt}"
        if isinstance(event, TaskReleased):
            self.waiting.remove(event.task)
            self.attempts[event.task] = event.attempt
            self.live[attempt] = str(event.expected_worker)
            self.live_max = max(self.live_max, len(self.live))
            to = "group" if event.lane == subjects.ANY_LANE else "lane"
            self.log.append(f"{name} released for {event.expected_worker} by {to}")
        elif isinstance(event, TaskStarted):
            self.started.add(attempt)
            self.live[attempt] = event.worker
            self.log.append(f"{name} started on {event.worker}")
        elif isinstance(event, AttemptFailed):
            self.ended.add(attempt)
            self.live.pop(attempt, None)
            self.waiting.insert(0, event.task)
            self.log.append(f"{name} failed: {event.failure}")
        else:
            self.ended.add(attempt)
            self.live.pop(attempt, None)
            self.log.append(f"{name} completed on {event.worker}")


class Hand:
    """The worker's side: arm, credit, claim, run until told, arm the next, say the end, ack, credit."""

    def __init__(self, bus: Bus, name: str, *, slots: int, priority: int, groups: tuple[str, ...] = (GROUP,)) -> None:
        self.bus, self.name, self.slots = bus, name, slots
        self.pulls = [(group, priority) for group in (*groups, subjects.lane_durable(name))]
        self.taker = Taker(bus)
        self.running: dict[str, asyncio.Event] = {}
        self.refused: asyncio.Queue[str] = asyncio.Queue()
        self.taken: list[Taken] = []
        self._boot, self._seq = new_id(), 0
        self._rounds: list[Round] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def arm(self, k: int) -> None:
        """Pulls out first; only then does the caller send the credit."""
        self._rounds.append(await self.taker.arm(self.pulls, k, 30.0))
        self._spawn(self._listen(self._rounds[-1]))

    async def credit(self) -> None:
        self._seq += 1
        await self.bus.send(
            subjects.credit_subject(self.name),
            msgspec.json.encode(
                Credit(
                    worker=self.name,
                    boot=self._boot,
                    seq=self._seq,
                    slots=self.slots,
                    free=self.slots - len(self.running),
                    running=tuple(RunningAttempt(task=t, attempt=1, phase="decode") for t in self.running),
                    armed=dict(self._rounds[-1].armed) if self._rounds else {},
                )
            ),
        )

    async def open(self) -> None:
        await self.arm(self.slots)
        await self.credit()

    def finish(self, task: str) -> None:
        self.running[task].set()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.taker.close()

    def _spawn(self, work: Awaitable[None]) -> None:
        self._tasks.add(asyncio.ensure_future(work))

    async def _listen(self, round_: Round) -> None:
        while items := await round_.items():
            for item in items:
                self._spawn(self._attempt(item))

    async def _attempt(self, item: Taken) -> None:
        self.taken.append(item)
        place = subjects.parse_item_subject(item.subject)
        task, number = place.task, place.attempt
        started = build(TaskStarted, task=task, attempt=number, worker=self.name, by=self.name)
        self.running[task] = asyncio.Event()
        if not await say(self.bus, started, subjects.start_id(task, number)):
            del self.running[task]
            self.refused.put_nowait(f"{task}.{number}")
            await item.term("another event holds the claim")
            return
        await self.credit()
        await self.running[task].wait()
        await self.bus.publish_stored(subjects.answer_subject(CLIENT, task, number), b"answer", f"{task}.{number}.out")
        await self.arm(1)
        completed = build(TaskCompleted, task=task, attempt=number, worker=self.name, by=self.name)
        assert await say(self.bus, completed, subjects.end_id(task))
        await item.ack()
        del self.running[task]
        await self.credit()


async def say(bus: Bus, event: Event, msg_id: str) -> bool:
    """True if this very event is the stored one: a duplicate never decides alone."""
    ack = await bus.publish_event(event, msg_id)
    if not ack.duplicate:
        return True
    winner = await bus.stored("EVENTS", ack.seq)
    return winner is not None and decode(winner.data).id == event.id


async def main(url: str, name: str) -> None:
    """A worker of one slot with the best priority, for freezing: says ``armed`` and then what it refused."""
    async with await Bus.connect(url, name=name) as bus:
        hand = Hand(bus, name, slots=1, priority=0)
        await hand.open()
        print("armed", flush=True)
        while True:
            print(f"refused {await hand.refused.get()}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
