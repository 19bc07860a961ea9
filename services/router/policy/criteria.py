"""When is a model the right one? A sentence for a decision service, where routes.toml has none.

Answers from what is known of the models alone: their sizes beside each other, and the qualities that were measured by domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

SMALL = "everyday requests: greetings, short texts, simple questions, rewording, extraction. It answers fastest"
MIDDLE = "requests of medium difficulty: longer texts, ordinary programming, explanations, summaries"
LARGE = "hard requests only: proofs, mathematics, difficult programming, several steps of reasoning. It is slow"
GIGA = 1e9
DOMAINS_SHOWN = 4


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A model as criteria know it; ``qualities`` in [0, 1] by domain, the measured ones only."""

    model: str
    bytes: int | None = None
    qualities: Mapping[str, float] = {}


def criteria(models: Sequence[Known], written: Mapping[str, str]) -> dict[str, str]:
    """By model: the written criterion, else one made of its place among the others by size, and of what it was measured at."""
    sizes = sorted({known.bytes for known in models if known.bytes is not None})
    return {known.model: written.get(known.model) or _made(known, sizes) for known in models}


def _made(known: Known, sizes: Sequence[int]) -> str:
    parts = []
    if known.bytes is None or len(sizes) < 2:
        parts.append(
            f"{known.model}, whose size is {'unknown' if known.bytes is None else f'{known.bytes / GIGA:.1f} GB'}"
        )
    else:
        kind, words = ("small", SMALL) if known.bytes == sizes[0] else ("large", LARGE)
        if sizes[0] < known.bytes < sizes[-1]:
            kind, words = "middle-sized", MIDDLE
        parts.append(f"{known.model}, a {kind} model of {known.bytes / GIGA:.1f} GB, for {words}")
    best = sorted(known.qualities.items(), key=lambda item: (-item[1], item[0]))[:DOMAINS_SHOWN]
    if best:
        told = ", ".join(f"{domain} {100 * quality:.0f} %" for domain, quality in best)
        parts.append(f"measured quality: {told}")
    return "; ".join(parts)
