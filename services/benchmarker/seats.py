"""Which models may be given unasked work now, and where?

Answers it for a debt of quality, whose candidates and judge sit on machines other than the debt's too: each must be idle, within
its own budget and without a use by others. Pure.
"""

from __future__ import annotations

from collections.abc import Callable

from schemas.events import ModelInfo
from schemas.statistics import Statistics, effective
from services.benchmarker.budget import STANDARD, UNREAD, Rules, loads_too_soon, why_not
from services.benchmarker.debts import Debt, answers, fits, resident
from services.benchmarker.panel import Panel, Seat
from services.benchmarker.state import Fleet, Machine


def panel_of(fleet: Fleet, stats: Statistics, domain: str, now_us: int, *, rules: Rules = STANDARD) -> Panel:
    """The seats for a debt in ``domain``. Nothing is driven out of memory for them."""
    stats.settle()
    seats = []
    for worker, machine in sorted(fleet.machines.items()):
        # Of the machine alone, whatever it is to be asked: once, not for each of its models.
        work = Debt(kind="probe", model="", worker=worker, domain=domain, reason="unmeasured", gain=0.0)
        if why_not(work, fleet, now_us, rules=rules) not in (None, UNREAD):  # its next heartbeat is waited for
            continue
        for info in _ready(machine, fleet, now_us, lambda model: stats.pool("quality", "md", model, domain).n):
            known = effective(stats, info.name, domain, worker, model_bytes=info.bytes, now_us=now_us)
            seats.append(
                Seat(
                    model=info.name,
                    worker=worker,
                    digest=info.digest,
                    quantisation=info.quantisation,
                    resident=resident(machine, info),
                    quality=known.quality.value,
                    decode_tps=known.decode.value,
                )
            )
    return Panel(seats=tuple(seats))


def _ready(machine: Machine, fleet: Fleet, now_us: int, judged: Callable[[str], int]) -> list[ModelInfo]:
    """What is in memory, as told after the last work there; and after a rest one more that fits beside it, of which least is
    known: a second one might not fit any more."""
    if machine.load is None or machine.load_us <= machine.ended_us:
        return []
    able = [info for info in machine.report.models if answers(machine, info)]
    there = [info for info in able if resident(machine, info)]
    if loads_too_soon(fleet, machine, now_us) is not None:
        return there
    more = [info for info in able if info not in there and fits(machine, info)]
    return there + sorted(more, key=lambda info: (judged(info.name), info.name))[:1]
