"""Who pays which kind of debt, and who answers which demand: the two tables of the benchmarker.

Answers "what does it do about this?". A new kind of debt or demand is one row here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from services.benchmarker.debts import Debt
from services.benchmarker.ground import Answer, Ground, Pay
from services.benchmarker.probing import Prober
from services.benchmarker.quality import Judging

QUALITY_S = 30.0
"""Two answers and two verdicts, about: what a quality debt is taken to cost where nobody knows better."""


def payers(ground: Ground, new_word: Callable[[], str]) -> Mapping[str, Pay]:
    """Kind of debt -> who pays it. A kind without a payer is left alone."""
    return {"probe": Prober(ground, new_word).pay, "quality": Judging(ground).pay}


def answers(ground: Ground) -> Mapping[str, Answer]:
    """Subject of ``rpc.benchmarker.*`` -> who answers; only while this benchmarker is the active one."""
    return {}


def cost_of(ground: Ground) -> Callable[[Debt], float]:
    """What a debt will take of its machine, in seconds."""
    prober = Prober(ground, str)
    return lambda debt: prober.cost_s(debt) if debt.kind == "probe" else QUALITY_S
