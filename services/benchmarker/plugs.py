"""Who pays which kind of debt, and who answers which demand: the two tables of the benchmarker.

Answers "what does it do about this?". A new kind of debt or demand is one row here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from schemas.subjects import BENCH_CANCEL, BENCH_RUN, BENCH_SHOW
from services.benchmarker.asking import CLIENT
from services.benchmarker.debts import Debt
from services.benchmarker.ground import Answer, Ground, Pay
from services.benchmarker.on_demand import OnDemand
from services.benchmarker.places import places
from services.benchmarker.probing import Prober
from services.benchmarker.quality import Judging
from services.benchmarker.suites import suites
from services.runtime.ids import new_id

QUALITY_S = 30.0
"""Two answers and two verdicts, about: what a quality debt is taken to cost where nobody knows better."""


def payers(ground: Ground, new_word: Callable[[], str]) -> Mapping[str, Pay]:
    """Kind of debt -> who pays it. A kind without a payer is left alone."""
    return {"probe": Prober(ground, new_word).pay, "quality": Judging(ground).pay}


def answers(ground: Ground) -> Mapping[str, Answer]:
    """Subject of ``rpc.benchmarker.*`` -> who answers; only while this benchmarker is the active one."""
    demands = OnDemand(
        ground.bus,
        ground.asking,
        places=lambda: places(ground.fleet, ground.now_us()),
        suites=suites(),
        by=CLIENT,
        clock=ground.clock,
        new_id=new_id,
        during=ground.demanded,
    )
    return dict.fromkeys((BENCH_RUN, BENCH_SHOW, BENCH_CANCEL), demands.answer)


def cost_of(ground: Ground) -> Callable[[Debt], float]:
    """What a debt will take of its machine, in seconds."""
    prober = Prober(ground, str)
    return lambda debt: prober.cost_s(debt) if debt.kind == "probe" else QUALITY_S
