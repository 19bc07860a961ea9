"""The benchmarker in virtual time: the product's fold, debts and budget, and what its service does with them.

Answers "what would the benchmarker ask next, of whom?". It decides nothing by itself: which debts there are and in which order,
whether one may start now and whether it must stop is ``services.benchmarker``'s. A debt's price is predicted as the product
predicts any answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from schemas.events import AnyEvent, Credit, TaskSubmitted, WorkerLoad
from schemas.statistics import effective
from services.benchmarker.budget import WAITS_S, others, wanted, why_not
from services.benchmarker.debts import Debt, debts, resident, seconds
from services.benchmarker.state import Fleet

if TYPE_CHECKING:
    from simulation.evidence.household import Errand, Household

CLIENT = "benchmarker"
PROBE_PROMPT, PROBE_TOKENS = 32, 64


class Bencher:
    """``look`` is to be called often; everything else only tells it what happened."""

    def __init__(self, house: Household) -> None:
        self.house = house
        self.fleet = Fleet()
        self.running: dict[str, Errand] = {}
        self.waiting: tuple[Debt, ...] = ()
        self.refused: dict[str, int] = {}
        self._seen: object = None
        self._given_up: set[str] = set()

    def apply(self, event: AnyEvent, seq: int, at_us: int) -> None:
        self.fleet.apply(event, seq, at_us)
        if isinstance(event, TaskSubmitted) and event.kind != "bench" and self.running:
            self.house.kernel.after(WAITS_S, None, self.look)

    def hear(self, word: Credit | WorkerLoad) -> None:
        if isinstance(word, WorkerLoad):
            self.fleet.hear(word, self.house.now_us)

    def look(self) -> None:
        """Give up what is in somebody's way, and begin what may begin."""
        now_us = self.house.now_us
        for worker, errand in list(self.running.items()):
            if errand.ended is not None:
                del self.running[worker]
            elif errand.task not in self._given_up and (reason := self._must_stop(errand, now_us)) is not None:
                self._given_up.add(errand.task)
                self.house.give_up(errand.task, reason)
        for debt in self._debts(now_us):
            if debt.kind == "probe" and debt.worker not in self.running:
                if why_not(debt, self.fleet, now_us, cost_s=self._cost_s(debt)) is None:
                    self.running[debt.worker] = self.house.ask(
                        "probe", debt.model, debt.worker, debt.domain, prompt=PROBE_PROMPT, output=PROBE_TOKENS,
                        reason=debt.reason, free=debt.free,
                    )  # fmt: skip

    def _must_stop(self, errand: Errand, now_us: int) -> str | None:
        machine = self.fleet.machines[errand.worker]
        return wanted(self.fleet, errand.worker, now_us) or others(machine, now_us, free=errand.free)

    def _debts(self, now_us: int) -> tuple[Debt, ...]:
        """Computed again when anything has changed that they rest on, and each minute."""
        loads = tuple((w, m.load.resident if m.load else None, m.woke_us) for w, m in self.fleet.machines.items())
        seen = (self.house.desk.stats.version, self.fleet.position, loads, now_us // 60_000_000)
        if seen != self._seen:
            self._seen, self.waiting = seen, debts(self.fleet, self.house.desk.stats, self.fleet.use, now_us)
        return self.waiting

    def _cost_s(self, debt: Debt) -> float:
        machine = self.fleet.machines[debt.worker]
        info = machine.infos()[debt.model]
        known = effective(
            self.house.desk.stats, debt.model, debt.domain, debt.worker, model_bytes=info.bytes, now_us=self.house.now_us
        )
        load_s = 0.0 if resident(machine, info) else known.load.value or 0.0
        return load_s + seconds(known, PROBE_PROMPT, PROBE_TOKENS)
