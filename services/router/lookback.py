"""What was decided, looked at again: explained, verified, and set beside what another policy, task or time would say.

Answers ``explain`` and ``?versus=``. It asks the log and the projector, changes nothing, and decides nothing that is released.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from schemas.errors import HeadraceError
from schemas.events import AnyEvent, TaskRouted, TaskSubmitted
from services.router import past
from services.router.as_of import as_of
from services.router.comparison import compare
from services.router.decision_words import Names
from services.router.desk import Desk
from services.router.moment import moment_us
from services.router.policy.request import request_of
from services.router.recompute import fleet_then, routing_then
from services.router.routing import in_flight, routing_of, seed_of
from services.router.versus import Versus
from services.router.what_if import Case, UnknownPolicy, decided, names, under, with_numbers
from services.runtime.bus import Bus

TASK_ID = re.compile(r"[0-9a-z]{26}")
"""As ``services.runtime.ids`` makes them; nothing else is worth asking the projector about."""


class Lookback:
    def __init__(self, bus: Bus, desk: Desk) -> None:
        self._bus, self._desk = bus, desk

    async def events_of(self, task: str) -> tuple[AnyEvent, ...]:
        """All facts of a task, from the log by what is remembered of it, else from the projector."""
        found = self._desk.state.task(task)
        if found is not None:
            return await past.events_at(self._bus, found.seqs)
        return await past.events_of(self._bus, task)

    async def preview(self, case: Case, asked: TaskRouted, what: str, shown: Names, unix: float) -> Versus:
        """What is decided now, beside ``what``: a policy, a slider or a route is what would be, the rest is what was."""
        case_if = under(case, what, self._desk.routes)
        if case_if is None:
            label, other = await self._before(case, what, unix)
            words = compare(other, asked, shown)
        else:
            label, other = what, self._routed(case_if, unix)
            words = compare(asked, other, shown, what_if=True)
        return Versus(what=what, label=label, other=other, asked=asked, what_if=case_if is not None, words=tuple(words))

    async def explain(self, events: tuple[Any, ...], what: str, shown: Names, unix: float) -> Versus:
        """What was decided of a task, beside ``what`` with the inputs that are recorded."""
        submitted = next((event for event in events if isinstance(event, TaskSubmitted)), None)
        routed = next((event for event in events if isinstance(event, TaskRouted)), None)
        if submitted is None or routed is None:
            raise HeadraceError("nothing was decided of this task yet, so there is nothing to compare")
        return await self.preview(await self.case_then(submitted, routed), routed, what, shown, unix)

    def case_now(self, request: Any, task: str, unix: float) -> Case:
        desk = self._desk
        return Case(
            request=request,
            fleet=desk.fleet(unix),
            stats=desk.stats,
            seed=seed_of(task),
            now_us=int(unix * 1e6),
            slider=desk.slider,
            routing=routing_of(desk.routes, request, desk.state, desk.live),
            in_flight=in_flight(desk.state),
        )

    async def case_then(self, submitted: TaskSubmitted, routed: TaskRouted) -> Case:
        """A past decision's, from its recorded inputs."""
        if routed.folded is None:
            raise HeadraceError("this task was decided by a version that did not record enough to decide it again")
        then = await as_of(self._bus, position=routed.position, folded=routed.folded)
        return Case(
            request=request_of(submitted),
            fleet=fleet_then(then.workers, {given.worker: given for given in routed.inputs}),
            stats=then.stats,
            seed=routed.seed,
            now_us=int(routed.at * 1e6),
            slider=routed.policy.weights["slider"],
            routing=routing_then(routed) if routed.policy.route is not None else None,
            in_flight={given.worker: given.in_flight or given.running or 0 for given in routed.inputs},
        )

    async def _before(self, case: Case, what: str, unix: float) -> tuple[str, TaskRouted]:
        at_us = moment_us(what, int(unix * 1e6))
        if at_us is not None:
            then = await as_of(self._bus, at_us=at_us)
            routed = self._routed(with_numbers(case, then.stats), unix)
            return f"the numbers known at {_clock(at_us)} (the log up to {routed.position})", routed
        known = self._desk.state.task(what) is not None
        events = await self.events_of(what) if known or TASK_ID.fullmatch(what) else ()
        told = next((event for event in events if isinstance(event, TaskRouted)), None)
        if told is None:
            raise UnknownPolicy(what, names(self._desk.routes))
        return f"task {what}", told

    def _routed(self, case: Case, unix: float) -> TaskRouted:
        return decided(case).routed(
            "versus", id="versus", at=unix, by=self._desk.router, epoch=max(self._desk.epoch, 0)
        )


def _clock(at_us: int) -> str:
    """In UTC, to the minute: nobody asks about a second of two hours ago."""
    return datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M UTC")
