"""What a pass may count on besides the log and what was heard: speeds from the statistics, and who may serve what.

Answers "how fast, how good, and who is allowed?". Pure: the statistics are handed in; lookups are kept until they change, because
a pass asks for the same few hundred numbers over and over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from schemas.events import ModelInfo
from schemas.statistics import Effective, Statistics, effective
from services.router.dispatch.completion import Speed
from services.router.dispatch.offers import Offer
from services.router.dispatch.order import ORDER_K
from services.router.dispatch.state import RouterState, Task, served

Pairs = Callable[[RouterState, Task], tuple[tuple[str, tuple[str, ...]], ...]]
"""(model, who may serve the task with it, heard lately or not) for every model allowed, both sorted."""
Prefer = Callable[[Task, Sequence[Offer]], int | None]
"""Which of the offers a route's policies want; None leaves it to the least cost."""
Lacks = Callable[[RouterState, Task, str], str | None]
"""Why the worker may not serve the task with what it holds, in words; None where it may, or holds nothing of it."""


def reported_pairs(state: RouterState, task: Task) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """By the reports alone: who holds a model, supports what it needs, has the context, and is the worker asked for."""
    wants = task.submitted.wants
    context = wants.context or 0
    found: dict[str, list[str]] = {}
    for worker in sorted(state.workers):
        record = state.workers[worker]
        if record.left or (wants.worker is not None and wants.worker != worker):
            continue
        for info in served(record.report):
            if wants.model is not None and info.name != wants.model:
                continue
            if not wants.context_flexible and (info.context or context) < context:
                continue
            found.setdefault(info.name, []).append(worker)
    return tuple((model, tuple(found[model])) for model in sorted(found))


def nothing_lacks(state: RouterState, task: Task, worker: str) -> str | None:
    """By the reports alone nobody says why it may not."""
    return None


class Outlook:
    """``slider``: seconds for one more point of quality; ``order_k``: ROUTING.md's k; ``now_us`` only makes ages."""

    def __init__(
        self,
        stats: Statistics,
        *,
        slider: float = 1.0,
        order_k: float = ORDER_K,
        pairs: Pairs = reported_pairs,
        prefer: Prefer | None = None,
        lacks: Lacks = nothing_lacks,
    ) -> None:
        self.stats, self.slider, self.order_k, self.pairs, self.prefer = stats, slider, order_k, pairs, prefer
        self.lacks = lacks
        self._speeds: dict[tuple[str, str, str, int | None], Speed] = {}
        self._version = -1

    def slider_of(self, task: Task) -> float:
        own = task.submitted.options.slider
        return self.slider if own is None else own

    def speed(self, model: str, domain: str, worker: str, info: ModelInfo | None) -> Speed:
        """From the statistics as they are now."""
        if self._version != self.stats.version:
            self._speeds.clear()
            self._version = self.stats.version
        size = info.bytes if info is not None else None
        key = (model, domain, worker, size)
        found = self._speeds.get(key)
        if found is None:
            known = effective(self.stats, model, domain, worker, model_bytes=size, now_us=0)
            found = self._speeds[key] = speed_of(known, size)
        return found


def speed_of(known: Effective, size: int | None = None) -> Speed:
    """The plain numbers; every effective measure has a value, because the levels end in a prior."""
    values = [known.load, known.prefill, known.decode, known.output_tokens, known.quality]
    load_s, prefill, decode, output, quality = (measure.value or 0.0 for measure in values)
    beta, gamma, told = known.slowdown.value, known.others_weight.value, known.use_known.value
    assert beta is not None and gamma is not None and told is not None
    return Speed(load_s, prefill, decode, output, quality, beta, gamma, told, size)
