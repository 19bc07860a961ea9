"""The router's shell: follows the log, hears workers, executes decisions, serves the port that HTTP surfaces use.

Answers nothing by itself: ``Desk`` decides, ``Executor`` does, ``Channels`` tells readers. It never touches a backend.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
from nats.aio.msg import Msg

from schemas.events import AnyEvent, WorkerPaused, WorkerResumed
from schemas.subjects import ROUTER_CANCEL, pulse_subject
from schemas.work import CancelTask, encode_wire
from services.router import groups
from services.router.benching import Benching
from services.router.decider import Decider
from services.router.desk import Desk
from services.router.dispatch.heard import PULSE_S
from services.router.dispatch.permits import Limits
from services.router.dispatch.turn import Absence
from services.router.domains import Rule
from services.router.door import Door
from services.router.evidence import Evidence
from services.router.execute import Executor, wake_nobody
from services.router.feedback import Feedback
from services.router.follow import Channels
from services.router.fullness import Places
from services.router.hearing import Hearing
from services.router.lookback import Lookback
from services.router.policy.routes import Routes
from services.router.port import NewTask, Submitted, Update
from services.router.pulling import Pulling
from services.router.questions import Questions
from services.router.readers import Readers
from services.router.rises import Rises
from services.router.tally import Tally
from services.router.term import Term
from services.router.texts import Texts
from services.router.tuning import Tuning
from services.runtime.bus import Bus
from services.runtime.clock import Clock
from services.runtime.logs import logger
from services.runtime.provision import provision
from services.runtime.watch import Watched

log = logger("router")

SOON_S = 0.001
"""Short beside any deadline; long enough that several acks of one pass are one look."""


class RouterService(Questions, Evidence, Benching, Pulling):
    """Implements ``RouterPort``. ``start`` returns when the log has been read; ``close`` leaves nothing running."""

    def __init__(
        self,
        bus: Bus,
        router: str,
        *,
        clock: Clock,
        new_id: Callable[[], str],
        rules: Sequence[Rule],
        limits: Limits,
        slider: float = 1.0,
        grace_s: float = 10.0,
        places: Places | None = None,
        sync: str | None = None,
        keep_s: float | None = None,
        routes: Watched[Routes] | None = None,
        absence: Absence | None = None,
        tuning: Watched[Tuning] | None = None,
        on_tuned: Callable[[Tuning], None] | None = None,
        wake: Callable[[str], Awaitable[None]] = wake_nobody,
    ) -> None:
        self._bus, self._router, self._clock, self._new_id = bus, router, clock, new_id
        self._rules, self._sync, self._keep_s = rules, sync, keep_s
        self.desk = Desk(router, slider=slider, limits=limits, new_id=new_id, absence=absence)
        self._routes, self._tuning, self._on_tuned = routes, tuning, on_tuned
        self._decider = Decider(self, self.desk, rules, clock)
        if routes is not None:
            self.desk.routes = routes.value
        self.channels = Channels()
        self._tally = Tally()
        self._lookback = Lookback(bus, self.desk)
        self._feedback = Feedback(
            bus, self.desk, self.channels, self._lookback, clock, salt=new_id().encode(),
            passed=lambda seq: self._hearing.passed(seq), decides=self._decides,
        )  # fmt: skip
        self._reading = asyncio.Lock()
        self._readers = Readers(bus, self.desk, self.channels, unix=clock.unix, grace_s=grace_s)
        self._rises = Rises()
        self._places = (0.0, {})
        self._hearing = Hearing(bus, self.desk, self.channels, step=self._step, told=self._told)
        self._term = Term(bus, self.desk, clock)
        self._texts = Texts(
            bus, keep_s, state=lambda: self.desk.state, decides=self._decides, passed=self._hearing.passed
        )
        self._executor = Executor(
            bus, self.desk.live, now=lambda: self.desk.now, position=lambda: self.desk.state.position, done=self._soon,
            wake=wake,
        )  # fmt: skip
        self._door = Door(
            bus, self.desk, self.channels, self._executor, rules, clock, passed=self._hearing.passed, step=self._step,
            places=places or Places(),
        )  # fmt: skip
        self._loops: list[asyncio.Task[None]] = []
        self._later: asyncio.TimerHandle | None = None
        self._next: asyncio.Handle | None = None
        self._rested_at = 0.0
        self._last = 0

    # -- life ----------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        for change in await provision(self._bus, keep_s=self._keep_s):
            log.info(change, action="provisioned")
        await self._term.restore()
        self.desk.live.confirmed.update(dict.fromkeys(await groups.existing(self._bus), 0))
        await self._bus.listen(pulse_subject(self._router), self._on_pulse, at_once=True)
        await self._hearing.start()
        self._last = self.desk.state.position
        loops = (self._pulses, self._term.campaign, self._term.save_often, self._texts.run, self._hearing.wait)
        self._loops = [asyncio.create_task(loop()) for loop in loops]
        if self._routes is not None:
            self._loops.append(asyncio.create_task(self._routes.run(self._rerouted)))
        if self._tuning is not None:
            self._loops.append(asyncio.create_task(self._tuning.run(self.tuned)))

    async def close(self) -> None:
        loops, self._loops = self._loops, []  # without loops nothing is decided any more
        for loop in loops:
            loop.cancel()
        if loops:
            await asyncio.wait(loops)
        await self._readers.close()
        await self._feedback.close()
        await self._decider.close()
        await self._executor.close()
        await self._hearing.stop()
        if self._last and self._bus.connected:
            await self._term.save()

    async def wait(self) -> None:
        """Until something that must not end has ended; raises its error."""
        done, _ = await asyncio.wait(self._loops, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    # -- what goes out -------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        """Look again, once for all that comes in meanwhile, and rest between two looks as long as the last one took:
        under load the looks take half of the time at most, and each serves many credits and texts."""
        if self._next is None:
            loop = asyncio.get_running_loop()
            wait_s = self._rested_at - loop.time()
            self._next = loop.call_later(wait_s, self._look) if wait_s > 0 else loop.call_soon(self._look)

    def _look(self) -> None:
        """Cheap when there is nothing to do; never before the log has been read."""
        self._next = None
        loop = asyncio.get_running_loop()
        began = loop.time()
        if self._loops and self._bus.connected:
            try:
                self._executor.start(self.desk.decide(self._clock.unix()))
            except Exception:  # what came next may put it right; ending here would end every other task's way too
                log.exception("cannot decide", action="step_failed", position=self.desk.state.position)
        ended = loop.time()
        self._rested_at = ended + (ended - began)

    def _told(self, event: AnyEvent) -> None:
        """A new fact: counted, and passed on to whoever reads its task."""
        deviation = self._tally.tell(event)
        if deviation is not None:
            log.info(
                "another machine served than planned", action="release_deviated", **msgspec.structs.asdict(deviation)
            )
        self._readers.told(event)
        self._feedback.told(event)

    def _soon(self) -> None:
        """Look again, once for all that was done within a millisecond."""
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(SOON_S, self._looked_soon)

    def _looked_soon(self) -> None:
        self._later = None
        self._step()

    def _on_pulse(self, message: Msg) -> None:
        self.desk.beat(self._clock.monotonic(), self._clock.unix())
        self._readers.beat(self.queue)
        self._step()

    async def _pulses(self) -> None:
        while True:
            await self._bus.send(pulse_subject(self._router), b"")
            await self._pass_on_cancels()
            await asyncio.sleep(PULSE_S)

    async def _pass_on_cancels(self) -> None:
        """While another router decides, tell it; again with each pulse, because that may get lost."""
        if not self._decides():
            for task, reason in list(self.desk.live.cancels.items()):
                await self._bus.send(ROUTER_CANCEL, encode_wire(CancelTask(task=task, reason=reason)))

    def _rerouted(self, routes: Routes) -> None:
        """Another routes.toml is in force: what waits goes by it too."""
        self.desk.routes = routes
        self.desk.refresh()
        self._step()

    def tuned(self, tuning: Tuning) -> None:
        """What runs goes on; what waits goes by the new numbers."""
        self.desk.limits, self.desk.slider, self.desk.absence = tuning.limits, tuning.slider, tuning.absence
        self.desk.sliders, self.desk.outlook.order_k = tuning.sliders, tuning.order_k
        self._door.places = tuning.places
        if self._on_tuned is not None:
            self._on_tuned(tuning)
        self.desk.refresh()
        self._step()

    # -- the port ------------------------------------------------------------------------------------------------------

    async def submit(self, task: NewTask) -> Submitted:
        if self._decider.asks(task):
            self._door.admit(
                task
            )  # a full queue must not make work for a decision service, nor be told of seconds later
            task = await self._decider.advised(task)
        repeats, accepted = self._feedback.noticed(task)
        submitted = await self._door.submit(msgspec.structs.replace(task, repeats=repeats))
        accepted(submitted.task)
        return submitted

    async def cancel(self, task: str, reason: str) -> bool:
        found, channel = self.desk.state.task(task), self.channels.get(task)
        accepted = channel is not None and channel.status is not None and channel.end is None
        if (found is None and not accepted) or (found is not None and found.terminal is not None):
            return False
        self.desk.live.cancels[task] = reason
        self._step()
        return True

    async def give_up(self, task: str) -> None:
        found, channel = self.desk.state.task(task), self.channels.get(task)
        followed = channel is not None and bool(channel.readers)
        if not followed and (found is None or found.submitted.urgency == "interactive"):
            await self.cancel(task, "its client went away")

    def follow(self, task: str) -> AbstractAsyncContextManager[AsyncIterator[Update]]:
        return self._readers.follow(task)

    async def pause(self, worker: str, for_s: float | None, reason: str) -> None:
        await self._say(WorkerPaused(**self._envelope(), worker=worker, for_s=for_s, reason=reason))

    async def resume(self, worker: str, reason: str) -> None:
        await self._say(WorkerResumed(**self._envelope(), worker=worker, reason=reason))

    async def _say(self, event: WorkerPaused | WorkerResumed) -> None:
        """Stored, and folded here where nothing holds that up."""
        ack = await self._bus.publish_event(event, event.id)
        await self._hearing.passed(ack.seq)

    def _envelope(self) -> dict[str, Any]:
        return {"id": self._new_id(), "at": self._clock.unix(), "by": self._router}
