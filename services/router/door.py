"""Where tasks come in: read, decided on, stored, accepted; or refused with a reason.

Answers "is this task accepted?". What was accepted is in the log with its text; what was refused or failed left nothing that
would run. It releases nothing and waits for no machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from schemas.codec import encode
from schemas.errors import BusError
from schemas.events import TaskRouted, TaskSubmitted, type_of
from schemas.subjects import event_subject, routed_id, submit_id
from schemas.work import encode_wire
from services.router import intake
from services.router.desk import Desk
from services.router.dispatch.actions import Action, Publish
from services.router.dispatch.engine import mark_pending
from services.router.domains import Rule, misspelt
from services.router.execute import Executor
from services.router.follow import Channels
from services.router.fullness import Crowd, Places, has_place, refusal
from services.router.needs import refuse_unable
from services.router.port import NewTask, Submitted, TaskStatus
from services.runtime.bus import Ack, Bus
from services.runtime.clock import Clock


class Door:
    """``passed`` waits until the fold has reached a sequence; ``step`` lets the engine look again."""

    def __init__(
        self,
        bus: Bus,
        desk: Desk,
        channels: Channels,
        executor: Executor,
        rules: Sequence[Rule],
        clock: Clock,
        *,
        passed: Callable[[int], Awaitable[None]],
        step: Callable[[], None],
        places: Places,
    ) -> None:
        self._bus, self._desk, self._channels, self._executor = bus, desk, channels, executor
        self._rules, self._clock, self._passed, self._step = rules, clock, passed, step
        self.places = places
        self._entering: dict[str, str] = {}

    def admit(self, task: NewTask) -> tuple[intake.Asked, bytes]:
        """What it asks, and its text as it is stored. Raises what ``submit`` would at once, and keeps nothing."""
        body = encode_wire(task.body)
        fleet = self._desk.fleet(self._clock.unix())
        intake.refuse_too_large(len(body), self._bus.nc.max_payload)
        asked = intake.read(task, len(body), self._rules, fleet, self._desk.routes, self._desk.sliders)
        refuse_unable(intake.request_from(task, asked), fleet, self._desk.routes)
        self._refuse_full(task.client)
        return asked, body

    async def submit(self, task: NewTask) -> Submitted:
        asked, body = self.admit(task)
        unix, task_id = self._clock.unix(), self._desk.new_id()
        decision = self._desk.decision(intake.request_from(task, asked), task_id, unix)
        event = intake.submitted(task, asked, task_id, id=self._desk.new_id(), at=unix, by=self._desk.router)
        routed = self._desk.routed(decision, task_id, event.id, unix)
        self._channels.open(task_id)
        self._channels.moved(_accepted(task_id, task, asked))
        self._entering[task_id] = task.client
        try:
            ack = await self._store(body, event, routed)
        except BusError:  # if it was stored after all, the log brings it back
            self._desk.live.drafts.pop(task_id, None)
            self._channels.close(task_id)
            raise
        else:
            await self._passed(ack.seq)  # its release is on its way before we spend time on words about it
        finally:
            del self._entering[task_id]
        warning = misspelt(asked.domain, self._rules)
        return Submitted(task=task_id, domain=asked.domain, language=asked.language, decision=routed, warning=warning)

    async def _store(self, body: bytes, event: TaskSubmitted, routed: TaskRouted) -> Ack:
        """The text and the fact, accepted when both are stored. They leave at once, for one round trip less, and nothing is
        released before the text is there; where another router decides, it cannot know that, and the text goes first."""
        task, decides = event.task, self._desk.epoch >= 0
        subject, fact_data = event_subject(type_of(event), event.by), encode(event)
        text = self._bus.storing(event.payload.subject, body, f"{task}.in")
        if not decides:
            await text
        self._desk.live.bodies.add(task)
        text.add_done_callback(lambda done: self._text_landed(task, done))
        fact = self._bus.storing(subject, fact_data, submit_id(task))
        if decides and routed.choice is not None:
            self._decided(task, routed)
        await asyncio.wait([text, fact])  # a caller that goes away cancels neither
        if fact.exception() is not None:
            self._desk.live.cancels.pop(task, None)
        text.result()
        return fact.result()

    def _text_landed(self, task: str, text: asyncio.Future[Ack]) -> None:
        """From here on the task may be released; or, without its text, must end: the fact may be in the log all the same."""
        self._desk.live.bodies.discard(task)
        if text.cancelled() or text.exception() is not None:
            self._desk.live.cancels[task] = "its text could not be stored"
        self._step()

    def _decided(self, task_id: str, routed: TaskRouted) -> None:
        """The decision leaves right behind its task, so that the release need not wait for its fsync too."""
        self._desk.live.drafts[task_id] = routed
        decision: list[Action] = [Publish(routed, routed_id(task_id))]
        mark_pending(self._desk.live, decision)
        self._executor.start(decision)

    def _refuse_full(self, client: str) -> None:
        """What was accepted a moment ago is not in the fold yet, and waits all the same."""
        tasks, least = self._desk.state.tasks, min(self.places.total, self.places.client)
        if len(tasks) + len(self._entering) < least:
            return  # however many of them wait
        waiting = [(name, t.submitted.client) for name, t in tasks.items() if t.terminal is None and t.live is None]
        waiting += [(name, whose) for name, whose in self._entering.items() if self._desk.state.task(name) is None]
        if has_place(client, waiting, self.places):
            return
        running = [t.submitted.client for t in tasks.values() if t.live is not None]
        mine = [name for name, whose in waiting if whose == client] or [name for name, _ in waiting]
        crowd = Crowd(
            waiting=tuple(waiting), running=len(running), running_mine=sum(whose == client for whose in running)
        )
        if (busy := refusal(client, crowd, self.places, self._desk.starts(mine))) is not None:
            raise busy


def _accepted(task: str, new: NewTask, asked: intake.Asked) -> TaskStatus:
    """What is known of a task before its fact has come back from the log."""
    return TaskStatus(
        task=task, state="waiting", client=new.client, kind=new.kind, domain=asked.domain.label, language=asked.language
    )
