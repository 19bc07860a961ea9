"""One debt's work, task by task: an answer to compare, a judge's word in both orders.

Answers "what did this model say?", in the form that a comparison needs. What was taken back, or answered by another model, is no
answer, and nobody may be judged by it.
"""

from __future__ import annotations

from typing import NamedTuple

from schemas.events import Options, Pick, Purpose
from schemas.judging import JUDGE_OPTIONS, Side, pick, question
from schemas.work import Body
from services.benchmarker.asking import WAIT_S, Asks, Result, Work
from services.benchmarker.debts import Debt
from services.benchmarker.panel import Seat
from services.benchmarker.suites import Prompt, Suite

NEVER_ASKED = ("cancelled", "busy")
"""How a failure begins that says nothing of the model."""


class Material(NamedTuple):
    """A prompt to compare on: ``name`` is its own within ``suite``, ``text`` what a judge is shown of it."""

    suite: str
    name: str
    language: str | None
    text: str
    body: Body
    options: Options


class Told(NamedTuple):
    """An answer that may be compared: whose, by which task, and its text."""

    side: Side
    text: str


def material_of(suite: Suite, prompt: Prompt) -> Material:
    return Material(suite.name, prompt.id, prompt.language, prompt.text, prompt.body, prompt.options)


class GivenUp(Exception):
    """The work ended early: nothing is said about it."""


class Errand:
    """One debt's work, task by task; ``last`` is the task that was asked last."""

    def __init__(self, debt: Debt, asking: Asks) -> None:
        self.debt, self._asking, self.last = debt, asking, ""

    async def answer(self, seat: Seat, asked: Material) -> Told:
        """Raises GivenUp where there is none that could be compared."""
        result = await self._run("shadow", seat, asked.body, asked.options, suite=asked.suite, prompt=asked.name)
        if result.completed is None or result.answer is None:
            raise GivenUp(f"{seat.model} gave no answer: {result.failure or 'its text is gone'}")
        if result.completed.outcome == "substituted":
            raise GivenUp(f"{seat.model} was answered for by {result.completed.backend_model or 'another model'}")
        side = Side(
            model=seat.model,
            task=result.task,
            chars=len(result.answer.text),
            digest=result.completed.digest or seat.digest,
            quantisation=result.completed.quantisation or seat.quantisation,
            worker=result.completed.worker,
        )
        return Told(side, result.answer.text)

    async def judge(
        self, seat: Seat, prompt: str, language: str | None, own: str, peer: str, of: tuple[str, ...] = ()
    ) -> tuple[Pick, Pick]:
        """Its picks with the own answer shown first, then second. ``of`` are the tasks that wrote the answers."""
        first = await self._word(seat, question(prompt, own, peer, language=language), of)
        second = await self._word(seat, question(prompt, peer, own, language=language), of)
        return pick(first, own_first=True), pick(second, own_first=False)

    async def _word(self, seat: Seat, body: Body, of: tuple[str, ...]) -> str | None:
        """None where it gave no answer. Raises GivenUp where the work was taken back, or found nobody free."""
        result = await self._run("judge", seat, body, JUDGE_OPTIONS, of=of)
        if result.failure is not None and result.failure.startswith(NEVER_ASKED):
            raise GivenUp(result.failure)
        return result.answer.text if result.answer is not None else None

    async def _run(
        self,
        purpose: Purpose,
        seat: Seat,
        body: Body,
        options: Options,
        *,
        suite: str | None = None,
        prompt: str | None = None,
        of: tuple[str, ...] = (),
    ) -> Result:
        work = Work(
            purpose=purpose,
            model=seat.model,
            worker=seat.worker,
            domain=self.debt.domain,
            body=body,
            options=options,
            suite=suite,
            prompt=prompt,
            reason=self.debt.reason,
            of=of,
            deadline_s=WAIT_S,
        )
        result = await self._asking.run(work)
        self.last = result.task
        return result
