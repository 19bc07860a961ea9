"""The benchmarker's shell: folds what it hears, pays debts where nobody is disturbed, gives way at once.

Answers nothing by itself: ``debts`` says what is worth measuring, ``budget`` when, a table of payers how. It looks when something
happened, and each second while time alone may make a machine idle; it never acts by the time of day.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from nats.aio.msg import Msg

from schemas.demands import Measuring, Owed
from schemas.errors import HeadraceError
from schemas.subjects import BENCH_OWED
from schemas.work import encode_wire
from services.benchmarker.asking import CLIENT
from services.benchmarker.budget import Rules, left, must_stop, not_now, why_not
from services.benchmarker.debts import Debt
from services.benchmarker.ground import Answer, Ground, Pay
from services.benchmarker.hearing import Hearing
from services.benchmarker.owing import Owing
from services.benchmarker.rests import REST_S, Rests
from services.benchmarker.term import Term
from services.benchmarker.watched import Payment, Watched
from services.runtime.bus import Listening
from services.runtime.lifecycle import Lifecycle
from services.runtime.logs import logger

log = logger("benchmarker")

LOOK_S = 1.0
"""How late an idle machine is noticed at the most: five idle seconds come before anyway."""
GIVE_WAY_S = 0.05
"""The same for a task that waits for a machine where something unasked runs."""
PAY_MOST_S = 900.0
"""Two answers of 512 tokens and two verdicts at 2 tokens/s. A payment that takes longer waits for what does not come."""
WEIGHED_MOST, WEIGHED_LEAST = 2_000, 10
"""Debts whose seconds are predicted in one look, on all machines and on each: a look is not to take a tenth of a second."""
TOLD_MOST = 50
"""Debts that somebody who asks is shown: a page, not a list of all pairs."""


class Benchmarker:
    """``await Benchmarker(ground, who, payers=…, answers=…).run(life)`` until asked to go. ``cost`` predicts a debt's seconds."""

    def __init__(
        self,
        ground: Ground,
        who: str,
        *,
        payers: Mapping[str, Pay],
        answers: Mapping[str, Answer],
        cost: Callable[[Debt], float] = lambda _debt: 0.0,
        rest_s: float = REST_S,
        look_s: float = LOOK_S,
        pay_most_s: float = PAY_MOST_S,
    ) -> None:
        self._ground, self._payers, self._answers, self._cost = ground, payers, answers, cost
        self._look_s, self._pay_most_s = look_s, pay_most_s
        mine = ground.settings
        self._rules = Rules(share=mine.budget, idle_s=mine.idle_s, shadow=mine.shadow)
        self._term = Term(ground.bus, who, ground.clock, self._took, self._lost)
        self._payments: dict[asyncio.Task[None], Payment] = {}
        self._rests = Rests(rest_s)
        self._listening: list[Listening] = []
        self._hearing = Hearing(ground)
        self._looked_us = 0
        self._owing = Owing(ground, self._give_way)
        self.held: dict[tuple[str, str, str, str], str] = {}
        """Debts that were not paid at the last look, each with its reason in words."""

    # -- life ----------------------------------------------------------------------------------------------------------

    async def run(self, life: Lifecycle) -> None:
        jobs: list[asyncio.Task[None]] = []
        try:
            await self._hearing.start()
            async with self._ground.asking:
                loops = (self._hearing.wait(), self._term.run(), self._pay_debts())
                jobs = [asyncio.create_task(loop) for loop in loops]
                life.ready()
                asked = asyncio.create_task(life.until_draining())
                done, _ = await asyncio.wait([asked, *jobs], return_when=asyncio.FIRST_COMPLETED)
                asked.cancel()
                await self._lost()
                for job in done - {asked}:
                    job.result()
        finally:
            for job in jobs:
                job.cancel()
            if jobs:
                await asyncio.wait(jobs)
            await self._hearing.stop()

    async def _took(self) -> None:
        """Whatever a former benchmarker left behind is nobody's any more."""
        for name, task in list(self._ground.fleet.tasks.items()):
            if task.submitted.client == CLIENT and not task.real:
                self._ground.asking.cancel(name, "its benchmarker is gone")
        for subject, answer in {**self._answers, BENCH_OWED: self._tell}.items():
            self._listening.append(await self._ground.bus.listen(subject, answer, queue=CLIENT))

    async def _tell(self, message: Msg) -> None:
        """What is owed, best first, with what keeps each back."""
        ground, busy = self._ground, {_key(payment.debt) for payment in self._payments.values()}
        owed = await self._owing.look(self._hearing.facts)
        told = tuple(
            Owed(**_told(debt), free=debt.free, why=None if _key(debt) in busy else self.held.get(_key(debt), "next"))
            for debt in sorted(owed, key=lambda debt: _key(debt) not in busy)[:TOLD_MOST]
        )
        left_s = {worker: left(machine, self._rules.share) for worker, machine in ground.fleet.machines.items()}
        measuring = Measuring(on=ground.settings.on, total=len(owed), owed=told, left_s=left_s)
        await ground.bus.send(message.reply, encode_wire(measuring))

    async def _lost(self) -> None:
        for listening in self._listening:
            await listening.stop()
        self._listening.clear()
        tasks = [*self._payments, *self._ground.demands]
        for task in tasks:
            task.cancel("the benchmarker stops")
        if tasks:
            await asyncio.wait(tasks)

    # -- paying --------------------------------------------------------------------------------------------------------

    async def _pay_debts(self) -> None:
        while True:
            try:
                async with asyncio.timeout(GIVE_WAY_S if self._payments else self._look_s):
                    await self._hearing.changed.wait()
            except TimeoutError:
                pass
            self._hearing.changed.clear()
            self._give_way()
            now_us = self._ground.now_us()
            if now_us - self._looked_us >= self._look_s * 1e6:
                self._looked_us = now_us
                await self._start()

    def _give_way(self) -> None:
        """At once, to whoever needs a machine where something unasked runs, and to what somebody asked for."""
        now_us, ground = self._ground.now_us(), self._ground
        for task, payment in self._payments.items():
            on = [worker for worker, n in payment.on.items() if n] or [payment.debt.worker]
            reasons = ["somebody asked for a run"] if ground.demands else []
            reasons += [why for worker in on if (why := must_stop(ground.fleet, worker, now_us)) is not None]
            if reasons and not task.cancelling():
                log.info("given up", action="bench_gave_way", **_told(payment.debt), why=reasons[0])
                task.cancel(reasons[0])

    async def _start(self) -> None:
        ground = self._ground
        if not self._may_start():
            return
        owed = await self._owing.look(self._hearing.facts)
        if not self._may_start():
            return
        now_us = ground.now_us()
        self._rests.look(ground.fleet)
        self.held = {}
        machines = ground.fleet.machines
        kept = {worker: not_now(ground.fleet, machine, now_us, self._rules) for worker, machine in machines.items()}
        weighed: Counter[str] = Counter()
        most = max(WEIGHED_LEAST, WEIGHED_MOST // max(1, len(machines)))
        for debt in owed:
            if weighed[debt.worker] >= most:
                continue
            why = kept[debt.worker] or self._rests_now(debt, now_us)
            if why is None:
                weighed[debt.worker] += 1
                why = self._why_not(debt, now_us)
            if why is None:
                self._begin(debt)
            else:
                self.held[_key(debt)] = why

    def _may_start(self) -> bool:
        ground = self._ground
        return self._term.ours and ground.settings.on and not ground.demands and ground.bus.connected

    def _rests_now(self, debt: Debt, now_us: int) -> str | None:
        """What is found out at no cost: behind any number of such debts, one that may be paid is looked at."""
        if debt.kind not in self._payers:
            return "nobody can pay it"
        if self._is_busy(debt.worker):
            return "something is measured there"
        if debt.kind == "quality" and any(
            (other.debt.kind, other.debt.domain) == ("quality", debt.domain) for other in self._payments.values()
        ):
            return f"answers about {debt.domain} are compared at this moment"  # they would choose the same pair
        if self._rests.rests(_key(debt), now_us):
            return "it was tried a moment ago"
        return None

    def _why_not(self, debt: Debt, now_us: int) -> str | None:
        return why_not(debt, self._ground.fleet, now_us, cost_s=self._cost(debt), rules=self._rules)

    def _is_busy(self, worker: str) -> bool:
        """One payment at a time for all workers of one machine: they would measure each other."""
        machines = self._ground.fleet.machines
        place = machines[worker].place
        on = {w for payment in self._payments.values() for w in (payment.debt.worker, *payment.on)}
        return any(w in machines and machines[w].place == place for w in on)

    def _begin(self, debt: Debt) -> None:
        payment = Payment(debt)
        task = asyncio.create_task(self._pay(payment), name=f"pay {debt.kind} {debt.model} on {debt.worker}")
        self._payments[task] = payment
        task.add_done_callback(lambda done: self._payments.pop(done, None))

    async def _pay(self, payment: Payment) -> None:
        debt = payment.debt
        log.info("measuring", action="bench_started", **_told(debt))
        asked = True
        try:
            async with asyncio.timeout(self._pay_most_s):
                asked = await self._payers[debt.kind](debt, Watched(self._ground, payment))
        except TimeoutError:
            log.warning("a debt took too long", action="bench_timeout", **_told(debt), after_s=self._pay_most_s)
        except HeadraceError as error:
            log.warning("a debt stays unpaid", action="bench_failed", **_told(debt), error=str(error))
        except Exception:  # one payer's fault must not end the others' way to their machines
            log.exception("a payer failed", action="payer_failed", **_told(debt))
        self._rests.tried(_key(debt), self._ground.now_us(), asked=asked)


def _key(debt: Debt) -> tuple[str, str, str, str]:
    return debt.kind, debt.model, debt.domain, debt.worker


def _told(debt: Debt) -> dict[str, Any]:
    return {
        "kind": debt.kind, "model": debt.model, "worker": debt.worker, "domain": debt.domain, "reason": debt.reason,
        "gain": round(debt.gain, 3),
    }  # fmt: skip
