"""Who is the better model in a domain, by the product's own statistics of a log.

Answers "would the router prefer another one now?". Events go through the same fold as the projector's: samples, cells, quality.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from schemas.events import Event
from schemas.statistics import CellKey, Sample, Statistics, effective, fold, key_of, sample_of


def qualities(log: Iterable[Event], domain: str) -> dict[str, float]:
    """Model -> its expected quality in ``domain``."""
    groups: dict[CellKey, list[Sample]] = defaultdict(list)
    for seq, event in enumerate(log, 1):
        sample = sample_of(event, seq, seq * 1_000_000)  # type: ignore[arg-type]
        if sample is not None:
            groups[key_of(sample)].append(sample)
    stats = Statistics()
    for samples in groups.values():
        stats.put(fold(samples))
    models = sorted({model for model, _, _ in groups})
    found = {m: effective(stats, m, domain, "nowhere", model_bytes=None, now_us=0).quality.value for m in models}
    return {model: value for model, value in found.items() if value is not None}


def ranking(log: Iterable[Event], domain: str) -> list[str]:
    """The best first."""
    found = qualities(log, domain)
    return sorted(found, key=lambda model: (-found[model], model))
