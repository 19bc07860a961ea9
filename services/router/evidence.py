"""The part of the router's port that gathers evidence: ratings, picks, comparisons and their judges.

Answers "what is asked of a router about the worth of answers?", by handing each to who knows. ``service`` says what the
attributes are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from schemas.bias import Judge, JudgeKey, Records, by_key
from schemas.errors import BusError, HeadraceError
from schemas.events import QualityJudged
from schemas.subjects import PROJECTOR_JUDGES
from services.router import compare, intake, past
from services.router.comparing import numbered
from services.router.contest import Eligible, Referee
from services.router.desk import Desk
from services.router.domains import Rule
from services.router.feedback import Feedback
from services.router.port import NewTask
from services.router.rating import Pick, Rated, Rating
from services.runtime.bus import Bus
from services.runtime.clock import Clock

RECORDS_S = 60.0
"""A judge's record changes with its next dozen verdicts, not with each."""


class Evidence:
    desk: Desk
    _bus: Bus
    _clock: Clock
    _rules: Sequence[Rule]
    _feedback: Feedback
    _reading: asyncio.Lock
    _records: tuple[float, Mapping[JudgeKey, Judge]] | None = None

    async def rate(self, rating: Rating) -> Rated | None:
        return await self._feedback.rate(rating)

    async def pick(self, pick: Pick) -> Rated | None:
        tasks = await self._entries(pick.compare)
        chosen = numbered(tasks, pick.chosen)
        if chosen is None:
            return None
        return await self._feedback.pick(pick, chosen, [task for task in tasks if task != chosen])

    async def judged(self, event: QualityJudged) -> None:
        await self._feedback.say(msgspec.structs.replace(event, at=self._clock.unix(), by=self.desk.router))

    def eligible(self, task: NewTask, models: Sequence[str], workers: Sequence[str]) -> Eligible:
        unix = self._clock.unix()
        fleet = self.desk.fleet(unix)
        asked = intake.read(task, 0, self._rules, fleet, sliders=self.desk.sliders)
        return compare.eligible(
            intake.request_from(task, asked), fleet, self.desk.stats, models=models, workers=workers,
            slider=self.desk.slider if asked.options.slider is None else asked.options.slider, now_us=int(unix * 1e6),
        )  # fmt: skip

    async def referee(self, models: Sequence[str], domain: str, wanted: str | None) -> Referee | None:
        records, unix = await self._judges(), self._clock.unix()
        return compare.referee(
            self.desk.fleet(unix), self.desk.stats, records, models, domain, wanted=wanted, now_us=int(unix * 1e6)
        )

    async def comparison(self, compare: str) -> tuple[str, ...]:
        state = self.desk.state
        tasks = [t for t in (*state.tasks.values(), *state.recent.values()) if t.submitted.parent == compare]
        known = [task.submitted.task for task in sorted(tasks, key=lambda task: task.seq)]
        try:
            former = await past.tasks_under(self._bus, compare)  # a restarted router may remember only the later ones
        except HeadraceError:
            if not known:
                raise
            former = ()
        return tuple(dict.fromkeys((*former, *known)))

    async def _entries(self, compare: str) -> list[str]:
        """Without its judges' tasks."""
        tasks = []
        for task in await self.comparison(compare):
            submitted = await self._feedback.submission(task)
            if submitted is not None and submitted.bench is None:
                tasks.append(task)
        return tasks

    async def judges(self) -> Records:
        return await _records(self._bus)

    async def _judges(self) -> Mapping[JudgeKey, Judge]:
        """Every judge's record; without one nobody's word counts, so no record is no answer."""
        async with self._reading:
            now = self._clock.monotonic()
            if self._records is None or now - self._records[0] > RECORDS_S:
                self._records = now, by_key((await _records(self._bus)).judges)
            return self._records[1]


async def _records(bus: Bus) -> Records:
    try:
        answer = await bus.request(PROJECTOR_JUDGES, b"{}", timeout_s=past.ANSWER_S)
        return msgspec.json.decode(answer, type=Records)
    except (BusError, msgspec.DecodeError) as error:
        raise HeadraceError(
            f"the projector does not answer about the judges' records ({error}); try again soon"
        ) from error
