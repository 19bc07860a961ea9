"""The product's own learning of quality: its facts, folds, statistics, debts, budget, suites' checks and judges.

Answers "what would the product have chosen?". Everything it knows came in as ``quality.judged``, and what it makes of that is
``schemas.statistics``'. What to evaluate next, and how, is ``services.benchmarker``'s choice. Modelled is what people, models and
judges say (``quality_world``, ``voices``). All models sit in the memory of one machine and are equally fast.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

from schemas.bias import Judges, Records, Seen
from schemas.events import (
    AnyEvent,
    Bench,
    Domain,
    Event,
    ModelInfo,
    PayloadRef,
    QualityJudged,
    Sizes,
    TaskCompleted,
    TaskStarted,
    TaskSubmitted,
    Tokens,
    Wants,
    WorkerLoad,
    WorkerReported,
)
from schemas.judgements import judgement_of
from schemas.statistics import CellKey, Sample, Statistics, effective, fold, key_of, sample_of
from schemas.work import Answer
from services.benchmarker.asking import CLIENT, Result, Work
from services.benchmarker.budget import why_not
from services.benchmarker.debts import debts
from services.benchmarker.seats import panel_of
from services.benchmarker.shadow import Shadow
from services.benchmarker.state import Fleet
from simulation.evidence.quality_world import DOMAINS, MODELS, QualityWorld
from simulation.evidence.voices import Voices, suites_of

WORKER, BOOT = "w1", "w1.b1"
TASK_S = 120.0
"""From one task to the next: 1,200 tasks are 40 hours."""
REAL_S, ANSWER_S, VERDICT_S = 10.0, 8.0, 2.0
QUALITY_S = 30.0
"""What a debt of quality is taken to cost of the machine (``services.benchmarker.plugs``)."""
CHECKED, JUDGED = 13, 5
"""Prompts of a domain, about as many as the product's suites have."""


class Ours:
    """Hears people only."""

    name = "ours_thumbs"

    def __init__(self, seed: int) -> None:
        self.statistics = Statistics()
        self.samples: dict[CellKey, list[Sample]] = {}
        self.now_s = 0.0
        self.seq = 0

    def choose(self, models: Sequence[str], domain: str) -> str:
        """The best expectation; of equals the first by name, as the planner."""
        return max(sorted(models), key=lambda model: self.quality(model, domain))

    def quality(self, model: str, domain: str) -> float:
        found = effective(self.statistics, model, domain, WORKER, model_bytes=None, now_us=self.now_us).quality.value
        return found if found is not None else 0.0

    def thumb(self, model: str, domain: str, value: float) -> None:
        self.store(
            QualityJudged(
                **self.envelope(), model=model, domain=domain, digest=model, worker=WORKER, source="thumb", value=value,
                tasks=(f"t{self.seq}",), client="c1",
            )
        )  # fmt: skip

    @property
    def now_us(self) -> int:
        return int(self.now_s * 1e6)

    def envelope(self) -> dict[str, Any]:
        return {"id": f"e{self.seq}", "at": self.now_s, "by": "sim"}

    def store(self, event: AnyEvent) -> None:
        """One more fact, counted as the projector would."""
        self.seq += 1
        if isinstance(event, QualityJudged) and (sample := sample_of(event, self.seq, self.now_us)) is not None:
            cell = self.samples.setdefault(key_of(sample), [])
            cell.append(sample)
            self.statistics.put(fold(cell))


class Shadowed(Ours):
    """And has its models evaluated while the machine is idle."""

    name = "ours"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.fleet, self.judges, self.models = Fleet(), Judges(), tuple[str, ...]()
        self.suites = suites_of(DOMAINS, checked=CHECKED, judged=JUDGED)
        self.seed, self.verdicts = seed, 0
        self.ids = itertools.count()
        self.shadow = Shadow(
            self._records, unix=lambda: self.now_s, new_id=lambda: f"x{next(self.ids)}", seed=lambda: self.fleet.position,
            domains=self.suites,
        )  # fmt: skip
        self.runner = asyncio.Runner()

    def evaluated(self, model: str, domain: str) -> int:
        """How often a check or a judge told something of it."""
        cells = [self.samples.get((model, domain, worker), []) for worker in (WORKER, None)]
        return sum(
            sample.source in ("check", "judge") and bool(sample.quality_w_u) for cell in cells for sample in cell
        )

    def ran(self, world: QualityWorld, n: int, model: str) -> None:
        """A real task was served, and then the machine is idle until the next."""
        self.voices = getattr(self, "voices", None) or Voices(self.seed, lambda m, d: world.worth[m, d], self.suites)
        self._report(world.models(n))
        self._task(f"t{n}", model, world.tasks[n].domain, REAL_S, None)
        self.now_s = n * TASK_S + 30.0
        self._hear()
        self._pay()
        self.now_s = max(self.now_s, (n + 1) * TASK_S)

    def _pay(self) -> None:
        for debt in debts(self.fleet, self.statistics, self.fleet.use, self.now_us):
            if debt.kind != "quality" or why_not(debt, self.fleet, self.now_us, cost_s=QUALITY_S) is not None:
                continue
            panel = panel_of(self.fleet, self.statistics, debt.domain, self.now_us)
            if self.runner.run(self.shadow.pay(debt, self, panel, self._say)).worked:
                return

    async def run(self, work: Work) -> Result:
        """As ``Asking``: the answer comes at once, and time has passed."""
        text, task = self.voices.answer(work), f"b{next(self.ids)}"
        self.verdicts += work.purpose == "judge"
        bench = Bench(purpose=work.purpose, reason=work.reason)
        took_s = VERDICT_S if work.purpose == "judge" else ANSWER_S
        completed = self._task(task, work.model, work.domain, took_s, bench)
        answer = Answer(task=task, attempt=1, model=work.model, worker=WORKER, text=text)
        return Result(task=task, completed=completed, answer=answer)

    async def _records(self) -> Records:
        found = self.judges.records()
        seen = tuple(
            Seen(judge=j.model, digest=j.digest, known=tuple(self.judges.known(j.model, j.digest))) for j in found
        )
        return Records(judges=found, seen=seen)

    async def _say(self, event: Event) -> None:
        self.store(event)  # type: ignore[arg-type]

    # what the benchmarker folds

    def store(self, event: AnyEvent) -> None:
        super().store(event)
        self.fleet.apply(event, self.seq, self.now_us)
        if (row := judgement_of(event)) is not None:
            self.judges.add(row)

    def _task(self, task: str, model: str, domain: str, took_s: float, bench: Bench | None) -> TaskCompleted:
        client = "c1" if bench is None else CLIENT
        self.store(
            TaskSubmitted(
                **self.envelope(), task=task, client=client, kind="chat" if bench is None else "bench",
                urgency="interactive" if bench is None else "background", domain=Domain(label=domain, method="simulated"),
                sizes=Sizes(messages=1, chars=400, prompt_tokens=100, body_bytes=400), wants=Wants(model=model, worker=WORKER),
                payload=PayloadRef(subject=f"task.in.{client}.{task}", bytes=400), bench=bench,
            )
        )  # fmt: skip
        self.store(TaskStarted(**self.envelope(), task=task, attempt=1, worker=WORKER, boot=BOOT, model=model))
        self.now_s += took_s
        completed = TaskCompleted(
            **self.envelope(), task=task, attempt=1, worker=WORKER, boot=BOOT, model=model, digest=model, domain=domain,
            kind="chat" if bench is None else "bench", tokens=Tokens(prompt=100, output=100),
        )  # fmt: skip
        self.store(completed)
        return completed

    def _report(self, models: tuple[str, ...]) -> None:
        if models != self.models:
            self.models = models
            infos = tuple(
                ModelInfo(name=m, backend_name=m, digest=m, bytes=int(4e9), capability="cpu_inference") for m in models
            )
            self.store(
                WorkerReported(
                    **self.envelope(), worker=WORKER, boot=BOOT, name=WORKER, backend="simulated", models=infos
                )
            )

    def _hear(self) -> None:
        """Heartbeats come all the time; the fold needs them for how long the machine was awake."""
        machine = self.fleet.machines[WORKER]
        for at_s in range(int(machine.heard_us / 1e6) + 15, int(self.now_s) + 1, 15):
            self._load(int(at_s * 1e6))
        self._load(self.now_us)

    def _load(self, at_us: int) -> None:
        load = WorkerLoad(
            **self.envelope(), worker=WORKER, boot=BOOT, seq=0, uptime_s=at_us / 1e6, backend_up=True, resident=MODELS,
            others_use=0.0, on_battery=False,
        )  # fmt: skip
        self.fleet.hear(load, at_us)
