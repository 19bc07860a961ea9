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

from schemas.events import AnyEvent, TaskCompleted, TaskRouted, WorkerPaused, WorkerResumed
from schemas.statistics import Statistics
from schemas.subjects import ROUTER_CANCEL, pulse_subject
from schemas.work import Answer, CancelTask, encode_wire
from services.router import groups, intake, past
from services.router.decider import Decider
from services.router.desk import Desk
from services.router.dispatch.heard import PULSE_S
from services.router.dispatch.permits import Limits
from services.router.dispatch.state import Task
from services.router.dispatch.turn import Absence
from services.router.domains import Rule
from services.router.door import Door
from services.router.execute import Executor, wake_nobody
from services.router.fleet import Fleet
from services.router.follow import Channels
from services.router.fullness import Places
from services.router.hearing import Hearing
from services.router.measures import Measures, measures
from services.router.policy.routes import Routes
from services.router.port import NewTask, Readiness, RoutesInForce, Submitted, TaskStatus, Update
from services.router.readers import Readers
from services.router.rises import Rises
from services.router.routes_file import in_force
from services.router.tally import Tally
from services.router.term import Term
from services.router.texts import Texts
from services.router.tuning import Tuning
from services.router.view import queue_of
from services.runtime.bus import Bus
from services.runtime.clock import Clock
from services.runtime.logs import logger
from services.runtime.provision import provision
from services.runtime.watch import Watched

log = logger("router")

SOON_S = 0.001
"""Short beside any deadline; long enough that several acks of one pass are one look."""


class RouterService:
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
        wake: Callable[[str], Awaitable[None]] = wake_nobody,
    ) -> None:
        self._bus, self._router, self._clock, self._new_id = bus, router, clock, new_id
        self._rules, self._sync, self._keep_s = rules, sync, keep_s
        self.desk = Desk(router, slider=slider, limits=limits, new_id=new_id, absence=absence)
        self._routes, self._tuning = routes, tuning
        self._decider = Decider(self, self.desk, rules, clock)
        if routes is not None:
            self.desk.routes = routes.value
        self.channels = Channels()
        self._tally = Tally()
        self._readers = Readers(bus, self.desk, self.channels, unix=clock.unix, grace_s=grace_s)
        self._rises = Rises()
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
        self._last = 0

    # -- life ----------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        for change in await provision(self._bus, keep_s=self._keep_s):
            log.info(change, action="provisioned")
        await self._term.restore()
        self.desk.live.confirmed.update(dict.fromkeys(await groups.existing(self._bus), 0))
        await self._bus.listen(pulse_subject(self._router), self._on_pulse)
        await self._hearing.start()
        self._last = self.desk.state.position
        loops = (self._pulses, self._term.campaign, self._term.save_often, self._texts.run, self._hearing.wait)
        self._loops = [asyncio.create_task(loop()) for loop in loops]
        if self._routes is not None:
            self._loops.append(asyncio.create_task(self._routes.run(self._rerouted)))
        if self._tuning is not None:
            self._loops.append(asyncio.create_task(self._tuning.run(self._tuned)))

    async def close(self) -> None:
        loops, self._loops = self._loops, []  # without loops nothing is decided any more
        for loop in loops:
            loop.cancel()
        if loops:
            await asyncio.wait(loops)
        await self._readers.close()
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
        """Look again, once for all that comes in during one turn of the loop: under load that is many credits and texts."""
        if self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        """Cheap when there is nothing to do; never before the log has been read."""
        self._next = None
        if self._loops and self._bus.connected:
            try:
                self._executor.start(self.desk.decide(self._clock.unix()))
            except Exception:  # what came next may put it right; ending here would end every other task's way too
                log.exception("cannot decide", action="step_failed", position=self.desk.state.position)

    def _told(self, event: AnyEvent) -> None:
        """A new fact: counted, and passed on to whoever reads its task."""
        deviation = self._tally.tell(event)
        if deviation is not None:
            log.info(
                "another machine served than planned", action="release_deviated", **msgspec.structs.asdict(deviation)
            )
        self._readers.told(event)

    def _soon(self) -> None:
        """Look again, once for all that was done within a millisecond: what was published only now counts when it is heard
        back, which looks by itself and must not wait behind this."""
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(SOON_S, self._looked_soon)

    def _looked_soon(self) -> None:
        self._later = None
        self._look()

    def _on_pulse(self, message: Msg) -> None:
        self.desk.beat(self._clock.monotonic(), self._clock.unix())
        self._readers.beat(self.queue)
        self._step()

    def _decides(self) -> bool:
        return self.desk.epoch >= 0 and self.desk.state.epoch == self.desk.epoch

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

    def _tuned(self, tuning: Tuning) -> None:
        """What runs goes on; what waits goes by the new numbers."""
        self.desk.limits, self.desk.slider, self.desk.absence = tuning.limits, tuning.slider, tuning.absence
        self._door.places = tuning.places
        self.desk.refresh()
        self._step()

    # -- the port ------------------------------------------------------------------------------------------------------

    async def submit(self, task: NewTask) -> Submitted:
        return await self._door.submit(await self._decider.advised(task))

    async def cancel(self, task: str, reason: str) -> bool:
        found, channel = self.desk.state.task(task), self.channels.get(task)
        accepted = channel is not None and channel.status is not None and channel.end is None
        if (found is None and not accepted) or (found is not None and found.terminal is not None):
            return False
        self.desk.live.cancels[task] = reason
        self._step()
        return True

    async def status(self, task: str) -> TaskStatus | None:
        found = self.desk.state.task(task)
        if found is not None:
            return self._shown(found)
        channel = self.channels.get(task)
        if channel is not None and channel.status is not None:
            return channel.status  # accepted a moment ago; its fact is on its way back
        return await past.status(self._bus, task)

    def follow(self, task: str) -> AbstractAsyncContextManager[AsyncIterator[Update]]:
        return self._readers.follow(task)

    async def answer(self, task: str) -> Answer | None:
        found = self.desk.state.task(task)
        if found is not None:
            terminal = found.terminal
            return await past.answer_at(self._bus, terminal) if isinstance(terminal, TaskCompleted) else None
        return await past.answer(self._bus, task)

    def preview(self, task: NewTask) -> Submitted:
        unix = self._clock.unix()
        asked = intake.read(task, 0, self._rules, self.desk.fleet(unix), self.desk.routes)
        decision = self.desk.decision(intake.request_from(task, asked), "preview", unix)
        routed = self.desk.routed(decision, "preview", None, unix)
        return Submitted(task="preview", domain=asked.domain, language=asked.language, decision=routed)

    async def explain(self, task: str) -> tuple[TaskStatus, TaskRouted | None, tuple[Any, ...]] | None:
        found = self.desk.state.task(task)
        if found is None:
            return await past.explain(self._bus, task)
        events = await past.events_at(self._bus, found.seqs)
        routed = next((event for event in events if isinstance(event, TaskRouted)), None)
        return self._shown(found), routed, events

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

    def fleet(self) -> Fleet:
        return self.desk.fleet(self._clock.unix())

    def routes(self) -> RoutesInForce:
        return in_force(self._routes)

    def statistics(self) -> Statistics:
        return self.desk.stats

    def _shown(self, task: Task) -> TaskStatus:
        """What waits has its place among the others, as of now."""
        if task.live is None and task.terminal is None:
            return next(status for status in self.queue() if status.task == task.submitted.task)
        return self._readers.status(task)

    def queue(self) -> tuple[TaskStatus, ...]:
        """Everybody is shown the same, so that a rise is told once and for all."""
        unix = self._clock.unix()
        tasks = queue_of(self.desk.state, self.desk.live, self.desk.plan(), int(unix * 1e6))
        return self._rises.look(tasks, self.desk.fleet(unix))

    def measures(self) -> Measures:
        desk = self.desk
        return measures(
            desk.state, desk.plan(), desk.limits, self._tally, exact=desk.cells.exact, statistics=desk.stats.position
        )

    def readiness(self) -> Readiness:
        state = self.desk.state
        waiting = sum(1 for t in state.tasks.values() if t.terminal is None and t.live is None)
        caught_up = bool(self._loops)
        connected = self._bus.connected
        why = None if caught_up and connected else "the log is being read" if connected else "no connection to NATS"
        return Readiness(
            ready=caught_up and connected and state.epoch > 0,
            dispatcher=self._decides(),
            epoch=state.epoch,
            position=state.position,
            last=max(self._last, state.position),
            workers=sum(1 for view in self.fleet().workers.values() if view.alive),
            waiting=waiting,
            sync=self._sync,
            routes=self.routes().problem,
            settings=self._tuning.problem if self._tuning is not None else None,
            reason=why or (None if state.epoch > 0 else "no dispatcher has been elected yet"),
        )
