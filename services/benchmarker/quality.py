"""Pays debts of quality in the benchmarker: finds the seats that are free now, the judges' records, and says what came of it.

Answers nothing itself: ``seats`` says who may be asked, ``shadow`` what. Records are the projector's; without them nobody's word
could be weighed, so nothing is asked.
"""

from __future__ import annotations

import msgspec

from schemas.bias import Records
from schemas.errors import BusError
from schemas.events import Event
from schemas.judging import Side
from schemas.sizes import text_of
from schemas.subjects import PROJECTOR_JUDGES
from schemas.work import Answer, Body, decode_wire
from services.benchmarker.asking import Asks
from services.benchmarker.budget import Rules
from services.benchmarker.debts import Debt
from services.benchmarker.errand import Material, Told
from services.benchmarker.ground import Ground
from services.benchmarker.own_prompts import Asked
from services.benchmarker.seats import panel_of
from services.benchmarker.shadow import Shadow
from services.runtime.ids import new_id
from services.runtime.logs import logger

log = logger("benchmarker")

ANSWER_S = 2.0
"""The projector folds some thousand rows; a moment of its writing may come before."""


OWN = "own"
"""The suite that the users' own prompts make up; each is called by its task."""
OWN_MOST = 5


class Judging:
    """``await Judging(ground).pay(debt, asks)``. The seed of each choice is the log's position: anybody can look it up."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._shadow = Shadow(
            self._records,
            unix=ground.clock.unix,
            new_id=new_id,
            seed=lambda: self._ground.fleet.position,
            own=self._own_prompts if ground.settings.own_prompts else None,
        )

    async def pay(self, debt: Debt, asks: Asks) -> bool:
        ground = self._ground
        rules = Rules(share=ground.settings.budget, idle_s=ground.settings.idle_s, shadow=ground.settings.shadow)
        panel = panel_of(ground.fleet, ground.stats, debt.domain, ground.now_us(), rules=rules)
        outcome = await self._shadow.pay(debt, asks, panel, self._say)
        action = "quality_step" if outcome.worked else "quality_waits"
        log.info(outcome.why, action=action, model=debt.model, domain=debt.domain, worker=debt.worker)
        return outcome.worked

    async def _records(self) -> Records:
        """Raises BusError where the projector does not answer."""
        answer = await self._ground.bus.request(PROJECTOR_JUDGES, b"{}", timeout_s=ANSWER_S)
        try:
            return msgspec.json.decode(answer, type=Records)
        except msgspec.DecodeError as error:
            raise BusError(f"the projector's answer about judges cannot be read: {error}") from error

    async def _own_prompts(self, domain: str) -> list[tuple[Material, Told]]:
        """The latest whose texts are still there."""
        bus, found = self._ground.bus, []
        for asked in self._ground.fleet.own.of(domain)[-OWN_MOST:]:
            body, answer = await bus.last_for("TASKS", asked.body), await bus.last_for("TASKS", asked.answer)
            if body is not None and answer is not None:
                found.append(_read(asked, decode_wire(body.data, Body), decode_wire(answer.data, Answer)))
        return found

    async def _say(self, event: Event) -> None:
        await self._ground.bus.publish_event(event, event.id)


def _read(asked: Asked, body: Body, answer: Answer) -> tuple[Material, Told]:
    side = Side(
        model=asked.model,
        task=asked.task,
        chars=len(answer.text),
        digest=asked.digest,
        quantisation=asked.quantisation,
        worker=asked.worker,
    )
    return Material(OWN, asked.task, asked.language, text_of(body), body, asked.options), Told(side, answer.text)
