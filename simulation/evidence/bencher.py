"""The benchmarker in virtual time: the product's fold, debts, budget and payers, and what its service does with them.

Answers "what would the benchmarker ask next, of whom?". It decides nothing by itself: which debts there are and in which order,
whether one may start now and whether it must stop, what is asked for one and what comes of it is ``services.benchmarker``'s. Only
the service's loop is told again here, for the product's waits for sockets and this one for the kernel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from schemas.bias import Judges, Records, Seen
from schemas.events import AnyEvent, Credit, Event, TaskCompleted, TaskSubmitted, WorkerLoad
from schemas.judgements import judgement_of
from schemas.statistics import Statistics
from schemas.work import Answer
from services.benchmarker.asking import Result, Work
from services.benchmarker.budget import WAITS_S, Rules, must_stop, why_not
from services.benchmarker.debts import Debt, debts
from services.benchmarker.ground import Ground
from services.benchmarker.plugs import cost_of
from services.benchmarker.probing import Prober
from services.benchmarker.rests import REST_S
from services.benchmarker.seats import panel_of
from services.benchmarker.shadow import Shadow
from services.benchmarker.state import Fleet
from services.runtime.sections import Benchmarker as Settings
from simulation.evidence.voices import Voices, suites_of
from simulation.fleet.physics import DOMAINS, QUALITY

if TYPE_CHECKING:
    from simulation.evidence.household import Errand, Household

JUDGED = 6
"""Prompts of each domain that only a judge can weigh. None that a check can: two answers and two verdicts are more work."""


class Later:
    """What a payer of the product waits for: an errand's end."""

    def __init__(self, errand: Errand) -> None:
        self.errand = errand

    def __await__(self) -> Generator[Later, Result, Result]:
        return (yield self)


@dataclass(eq=False)
class Payment:
    """A debt being paid; ``errand`` is what it waits for now, ``on`` the machines that its work was at."""

    debt: Debt
    bencher: Bencher
    steps: Coroutine[Any, Any, Any] | None = None
    errand: Errand | None = None
    on: set[str] = field(default_factory=set)

    async def run(self, work: Work) -> Result:
        """As ``Asking``."""
        self.on.add(work.worker)
        errand = self.bencher.house.ask(work, free=self.debt.free)
        return await Later(errand)


class Bencher:
    """``look`` is to be called often; everything else only tells it what happened. To payers it looks like their ``Ground``."""

    def __init__(self, house: Household) -> None:
        self.house, self.settings, self.fleet = house, Settings(), Fleet()
        self.payments: list[Payment] = []
        self.judges, self._rests = Judges(), dict[tuple[str, str, str, str], int]()
        suites = suites_of([domain.label for domain in DOMAINS], checked=0, judged=JUDGED)
        self._voices = Voices(house.instance.seed, lambda m, d: QUALITY[m][d], suites)
        self._cost, self._prober = cost_of(cast(Ground, self)), Prober(cast(Ground, self), house.new_id)
        self._shadow = Shadow(
            self._records, unix=lambda: house.kernel.now, new_id=house.new_id, seed=lambda: self.fleet.position,
            domains=suites,
        )  # fmt: skip
        self._rules, self._seen, self._debts = Rules(), None, tuple[Debt, ...]()

    @property
    def stats(self) -> Statistics:
        return self.house.desk.stats

    def now_us(self) -> int:
        return self.house.now_us

    # what it hears

    def apply(self, event: AnyEvent, seq: int, at_us: int) -> None:
        self.fleet.apply(event, seq, at_us)
        if (row := judgement_of(event)) is not None:
            self.judges.add(row)
        if isinstance(event, TaskSubmitted) and event.kind != "bench" and self.payments:
            self.house.kernel.after(WAITS_S, None, self.look)

    def hear(self, word: Credit | WorkerLoad) -> None:
        if isinstance(word, WorkerLoad):
            self.fleet.hear(word, self.now_us())

    def ended(self, errand: Errand, completed: TaskCompleted | None) -> None:
        for payment in self.payments:
            if payment.errand is errand:
                self._step(payment, self._result(errand, completed))
                return

    # what it does, as the service

    def look(self) -> None:
        """Give way where somebody waits, and begin what may begin."""
        now_us = self.now_us()
        for payment in list(self.payments):
            on = [payment.errand.worker] if payment.errand is not None else [payment.debt.worker]
            reasons = [why for worker in on if (why := must_stop(self.fleet, worker, now_us)) is not None]
            if reasons:
                self._give_up(payment, reasons[0])
        for debt in self._owed(now_us):
            if self._is_busy(debt.worker) or now_us < self._rests.get(_key(debt), 0):
                continue
            if why_not(debt, self.fleet, now_us, cost_s=self._cost(debt), rules=self._rules) is None:
                self._begin(debt)

    def _owed(self, now_us: int) -> tuple[Debt, ...]:
        """Computed again when anything has changed that they rest on, and each minute."""
        loads = tuple((w, m.load.resident if m.load else None, m.woke_us) for w, m in self.fleet.machines.items())
        seen: Any = (self.stats.version, self.fleet.position, loads, now_us // 60_000_000)
        if seen != self._seen:
            self._seen, self._debts = seen, debts(self.fleet, self.stats, self.fleet.use, now_us)
        return self._debts

    def _is_busy(self, worker: str) -> bool:
        return any(worker in (payment.debt.worker, *payment.on) for payment in self.payments)

    def _begin(self, debt: Debt) -> None:
        payment = Payment(debt, self)
        if debt.kind == "probe":
            payment.steps = self._prober.pay(debt, payment)
        else:
            panel = panel_of(self.fleet, self.stats, debt.domain, self.now_us(), rules=self._rules)
            payment.steps = self._shadow.pay(debt, payment, panel, self._say)
        self.payments.append(payment)
        self._step(payment, None)

    def _step(self, payment: Payment, result: Result | None) -> None:
        """Let the payer go on until it asks for the next thing."""
        assert payment.steps is not None
        try:
            payment.errand = payment.steps.send(result).errand
        except StopIteration:
            self._over(payment)

    def _give_up(self, payment: Payment, reason: str) -> None:
        assert payment.steps is not None and payment.errand is not None
        self.house.give_up(payment.errand.task, reason)
        try:
            payment.steps.throw(asyncio.CancelledError(reason))
        except (StopIteration, asyncio.CancelledError):
            self._over(payment)

    def _over(self, payment: Payment) -> None:
        self.payments.remove(payment)
        self._rests[_key(payment.debt)] = self.now_us() + int(REST_S * 1e6)

    # what stands for the projector, the bus and the models

    async def _records(self) -> Records:
        found = self.judges.records()
        seen = tuple(
            Seen(judge=j.model, digest=j.digest, known=tuple(self.judges.known(j.model, j.digest))) for j in found
        )
        return Records(judges=found, seen=seen)

    async def _say(self, event: Event) -> None:
        self.house.publish(cast(AnyEvent, event), event.id)

    def _result(self, errand: Errand, completed: TaskCompleted | None) -> Result:
        if completed is None:
            return Result(task=errand.task, failure="cancelled: it ended without an answer")
        text = "" if errand.work.purpose == "probe" else self._voices.answer(errand.work)
        answer = Answer(task=errand.task, attempt=1, model=errand.work.model, worker=errand.work.worker, text=text)
        return Result(task=errand.task, completed=completed, answer=answer)


def _key(debt: Debt) -> tuple[str, str, str, str]:
    return debt.kind, debt.model, debt.domain, debt.worker
