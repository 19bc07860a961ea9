"""What can be asked of a router without changing anything: the reading half of its port.

Answers each question from memory where it can, else from the log and the projector. ``service`` is the other half, and says what
the attributes are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from heapq import nlargest
from itertools import islice
from typing import Any

from schemas.events import TaskCompleted, TaskRouted, TaskSubmitted
from schemas.statistics import Statistics
from schemas.work import Answer, Body, decode_wire
from services.router import intake, past
from services.router.desk import Desk
from services.router.dispatch.state import Task
from services.router.domains import Rule, misspelt
from services.router.fleet import Fleet
from services.router.follow import Channels
from services.router.lookback import Lookback
from services.router.measures import Measures, measures
from services.router.policy.routes import Routes
from services.router.port import NewTask, Readiness, RoutesInForce, Submitted, TaskStatus
from services.router.prospect import Prospect, prospect
from services.router.readers import PLACES_S, Readers
from services.router.rises import Rises
from services.router.routes_file import in_force
from services.router.tally import Tally
from services.router.tuning import Tuning
from services.router.verification import Verification
from services.router.verify import verify
from services.router.versus import Versus
from services.router.view import queue_of
from services.runtime.bus import Bus
from services.runtime.clock import Clock
from services.runtime.watch import Watched


class Questions:
    desk: Desk
    channels: Channels
    _bus: Bus
    _clock: Clock
    _rules: Sequence[Rule]
    _readers: Readers
    _rises: Rises
    _places: tuple[float, dict[str, TaskStatus]]
    _tally: Tally
    _lookback: Lookback
    _routes: Watched[Routes] | None
    _tuning: Watched[Tuning] | None
    _sync: str | None
    _loops: list[asyncio.Task[None]]
    _last: int

    async def status(self, task: str) -> TaskStatus | None:
        found = self.desk.state.task(task)
        if found is not None:
            return self._shown(found)
        channel = self.channels.get(task)
        if channel is not None and channel.status is not None:
            return channel.status  # accepted a moment ago; its fact is on its way back
        return await past.status(self._bus, task)

    async def answer(self, task: str) -> Answer | None:
        found = self.desk.state.task(task)
        if found is not None:
            terminal = found.terminal
            return await past.answer_at(self._bus, terminal) if isinstance(terminal, TaskCompleted) else None
        return await past.answer(self._bus, task)

    async def asked(self, task: str) -> tuple[TaskSubmitted, Body] | None:
        found = self.desk.state.task(task)
        events = (found.submitted,) if found is not None else await past.events_of(self._bus, task)
        for event in events:
            if isinstance(event, TaskSubmitted):
                stored = await self._bus.last_for("TASKS", event.payload.subject)
                return (event, decode_wire(stored.data, Body)) if stored is not None else None
        return None

    def preview(self, task: NewTask) -> Submitted:
        unix = self._clock.unix()
        asked = intake.read(task, 0, self._rules, self.desk.fleet(unix), self.desk.routes, self.desk.sliders)
        decision = self.desk.decision(intake.request_from(task, asked), "preview", unix)
        routed = self.desk.routed(decision, "preview", None, unix)
        submitted = intake.submitted(task, asked, "preview", id="preview", at=unix, by=self.desk.router)
        return Submitted(
            task="preview",
            domain=asked.domain,
            language=asked.language,
            decision=routed,
            prospect=self._prospect(submitted, routed),
            warning=misspelt(asked.domain, self._rules),
        )

    def _prospect(self, submitted: TaskSubmitted, routed: TaskRouted) -> Prospect | None:
        """None where nobody could answer it."""
        desk = self.desk
        if routed.choice is None:
            return None
        return prospect(submitted, routed, desk.state, desk.live, desk.now, desk.limits, desk.outlook)

    async def explain(self, task: str) -> tuple[TaskStatus, TaskRouted | None, tuple[Any, ...]] | None:
        found = self.desk.state.task(task)
        if found is None:
            return await past.explain(self._bus, task)
        events = await past.events_at(self._bus, found.seqs)
        routed = next((event for event in events if isinstance(event, TaskRouted)), None)
        return self._shown(found), routed, events

    async def verify(self, task: str) -> list[Verification] | None:
        events = await self._lookback.events_of(task)
        return await verify(self._bus, events) if events else None

    async def versus(self, asked: NewTask | str, what: str) -> Versus:
        unix, names = self._clock.unix(), self.fleet().names()
        if isinstance(asked, str):
            return await self._lookback.explain(await self._lookback.events_of(asked), what, names, unix)
        seen = self.preview(asked)
        assert seen.decision is not None
        read = intake.read(asked, 0, self._rules, self.desk.fleet(unix), self.desk.routes, self.desk.sliders)
        case = self._lookback.case_now(intake.request_from(asked, read), "preview", unix)
        return await self._lookback.preview(case, seen.decision, what, names, unix)

    def fleet(self) -> Fleet:
        return self.desk.fleet(self._clock.unix())

    def routes(self) -> RoutesInForce:
        return in_force(self._routes)

    def statistics(self) -> Statistics:
        return self.desk.stats

    def _shown(self, task: Task) -> TaskStatus:
        """What waits has its place among the others, at most a second old: as many clients as wait may ask for theirs, and each
        place costs a plan for all."""
        if task.live is not None or task.terminal is not None:
            return self._readers.status(task)
        (looked_at, places), name = self._places, task.submitted.task
        if self.desk.now - looked_at >= PLACES_S or name not in places or places[name].state != "waiting":
            self.queue()
        return self._places[1][name]

    def queue(self) -> tuple[TaskStatus, ...]:
        """Everybody is shown the same, so that a rise is told once and for all."""
        unix = self._clock.unix()
        desk = self.desk
        tasks = queue_of(desk.state, desk.live, desk.plan(), int(unix * 1e6), desk.outlook.order_k)
        shown = self._rises.look(tasks, self.desk.fleet(unix))
        self._places = desk.now, {status.task: status for status in shown}
        return shown

    def recent(self, most: int) -> tuple[TaskStatus, ...]:
        state = self.desk.state
        ended = islice(reversed(state.recent.values()), 2 * most)
        decided = [task for task in (*state.tasks.values(), *ended) if task.routed_seq is not None]
        return tuple(self._readers.status(task) for task in nlargest(most, decided, key=lambda t: t.routed_seq or 0))

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

    def _decides(self) -> bool:
        return self.desk.epoch >= 0 and self.desk.state.epoch == self.desk.epoch
