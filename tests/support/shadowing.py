"""A fleet of models that answer as they are told to, for ``Shadow``: no broker, no clock, the same words every time.

Answers "what would the benchmarker say of such models and judges?". Every event said goes into the log; the judges' records are
folded from it, as the projector does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from schemas.bias import Judges, Records, Seen
from schemas.events import Event, QualityJudged, TaskCompleted
from schemas.judgements import judgement_of
from schemas.work import Answer
from services.benchmarker.asking import Result, Work
from services.benchmarker.debts import Debt
from services.benchmarker.panel import Panel, Seat
from services.benchmarker.shadow import Outcome, Shadow
from services.benchmarker.suites import Prompt, Suite
from support.builders import build
from support.judges import Habit, texts_of

Voice = Callable[[str], str | None]
"""What a model answers to a prompt; None where its machine fails."""

DOMAIN = "writing"


def suite_of(n: int) -> dict[str, Suite]:
    """Prompts that only a judge can weigh."""
    prompts = tuple(Prompt(id=f"w{i}", level=1, language="en", text=f"Write verse {i}.") for i in range(n))
    return {DOMAIN: Suite(name=DOMAIN, domain=DOMAIN, prompts=prompts)}


class Models:
    """An ``Asks``: voices by model, habits by judge. ``asked`` are the works in order."""

    def __init__(self, voices: dict[str, Voice], habits: dict[str, Habit]) -> None:
        self._voices, self._habits = voices, habits
        self.asked: list[Work] = []
        self.fails: dict[str, str] = {}

    async def run(self, work: Work) -> Result:
        self.asked.append(work)
        task = f"task{len(self.asked)}"
        if work.model in self.fails:
            return Result(task=task, failure=self.fails[work.model])
        text = self._said(work)
        if text is None:
            return Result(task=task, failure="stall: it stopped")
        completed = build(
            TaskCompleted, task=task, model=work.model, worker=work.worker, digest=None, domain=work.domain
        )
        return Result(
            task=task,
            completed=completed,
            answer=Answer(task=task, attempt=1, model=work.model, worker=work.worker, text=text),
        )

    def _said(self, work: Work) -> str | None:
        texts = texts_of(list(work.body.messages))
        if texts is not None and work.model in self._habits:
            return self._habits[work.model](texts)
        return self._voices[work.model](str(work.body.messages[-1]["content"]))


class Household:
    """``await pay(model)`` pays one debt of quality; ``log`` is everything that was said."""

    def __init__(self, models: Models, names: Sequence[str], domains: dict[str, Suite]) -> None:
        self.models = models
        self.panel = Panel(seats=tuple(Seat(model=name, worker=f"on-{name}", resident=True) for name in names))
        self.log: list[Event] = []
        ids, seeds = count(1), count(1)
        self.shadow = Shadow(
            self.records,
            unix=lambda: 1_767_225_600.0 + len(self.models.asked),
            new_id=lambda: f"id{next(ids)}",
            seed=lambda: next(seeds),
            domains=domains,
        )

    async def records(self) -> Records:
        judges = Judges(row for event in self.log if (row := judgement_of(event)) is not None)  # type: ignore[arg-type]
        found = judges.records()
        seen = tuple(Seen(judge=r.model, digest=r.digest, known=tuple(judges.known(r.model, r.digest))) for r in found)
        return Records(judges=found, seen=seen)

    async def pay(self, model: str, domain: str = DOMAIN) -> Outcome:
        debt = Debt(kind="quality", model=model, worker=f"on-{model}", domain=domain, reason="unjudged", gain=1.0)
        return await self.shadow.pay(debt, self.models, self.panel, self._say)

    async def pay_all(self, model: str, most: int = 200) -> int:
        """Until nothing is left to do for it; how often there was something."""
        for times in range(most):
            if not (await self.pay(model)).worked:
                return times
        raise AssertionError(f"{model} is still in debt after {most} payments")

    def judged(self) -> list[QualityJudged]:
        return [event for event in self.log if isinstance(event, QualityJudged)]

    async def _say(self, event: Event) -> None:
        self.log.append(event)
