"""From effective statistics to seconds, and from seconds to a cost.

Answers "how long would this take there, and is it worth it?". Unknown is never good: each missing input counts as its worst
case, so a machine that stops reporting something never gains by it. Uncertainty is shown, never added.
"""

from __future__ import annotations

import math

import msgspec

from schemas.events import Kind, Measure, Prediction

FREE_LEAST = 0.25
"""The share of its speed that a machine keeps at the least while somebody else uses it; also what unknown use counts as."""

UNKNOWN_WAIT_S = 3600.0
"""An attempt lasts at most an hour (PROTOCOL.md), so no known wait for a slot is longer than an unknown one."""

TYPICAL_PROMPT_TOKENS = 200


class Effective(msgspec.Struct, frozen=True, kw_only=True):
    """What to expect of a model on a worker for a domain, field by field, each with its own source.

    ``decode`` and ``prefill`` are tokens per second of one stream on the free machine, ``load`` seconds to load the model,
    ``output_tokens`` the expected length, ``quality`` in [0, 1]. ``slowdown``: each further stream adds this share of its own
    time to a token's; ``others_weight``: how much of others' use comes off the speed (ROUTING.md, B3.4);
    ``use_known``: the share of the samples that knew it. ``uncertainty`` is the
    standard deviation of ln(decode rate).
    """

    decode: Measure
    prefill: Measure
    load: Measure
    output_tokens: Measure
    quality: Measure
    slowdown: Measure = Measure(value=1.0, level="prior", n=0)
    others_weight: Measure = Measure(value=1.0, level="prior", n=0)
    use_known: Measure = Measure(value=1.0, level="prior", n=0)
    uncertainty: float


def factor(others_use: float | None, weight: float = 1.0, known: float = 1.0) -> float:
    """The share of the machine's speed that is ours, in [0.25, 1].

    ``known`` is the share of the speed's samples that say what others used meanwhile: a speed that was measured without that
    holds their use already, and only the rest is taken off. Unknown use takes off the most that a reported one could, so that
    silence never gains: factor(None) <= factor(u) for every u, of the same statistics.
    """
    most = 1.0 - FREE_LEAST
    return 1.0 - known * (most if others_use is None else min(weight * others_use, most))


def written_most(kind: Kind, max_tokens: int | None) -> int | None:
    """How many tokens the answer can have; None: nobody has said. Embeddings are read and never written, whatever is known of
    their model."""
    return 0 if kind == "embedding" else max_tokens


def predict(
    effective: Effective,
    *,
    prompt_tokens: int,
    max_tokens: int | None,
    resident: bool | None,
    others_use: float | None,
    wait_s: float | None,
    sharing_s: float | None = None,
) -> Prediction:
    """Seconds until the whole answer is there. An unknown wait stays None and costs UNKNOWN_WAIT_S in the total."""
    share = factor(others_use, _value(effective.others_weight), _value(effective.use_known))
    load_s = 0.0 if resident else _value(effective.load)
    prefill_s = prompt_tokens / (_value(effective.prefill) * share)
    output = _value(effective.output_tokens)
    if max_tokens is not None:
        output = min(output, float(max_tokens))
    decode_s = output / (_value(effective.decode) * share)
    waiting = UNKNOWN_WAIT_S if wait_s is None else wait_s
    return Prediction(
        wait_s=wait_s,
        load_s=load_s,
        prefill_s=prefill_s,
        decode_s=decode_s,
        sharing_s=sharing_s,
        total_s=waiting + load_s + prefill_s + decode_s + (sharing_s or 0.0),
    )


def cost(total_s: float, quality: float, slider: float) -> float:
    """Seconds, minus the seconds that this quality (in [0, 1]) is worth: ``slider`` seconds for each of 100 points."""
    return total_s - slider * 100.0 * quality


def service_seconds(
    effective: Effective, *, resident: bool | None, prompt_tokens: int = TYPICAL_PROMPT_TOKENS
) -> float:
    """What a mean task takes on the free machine, the load included unless the model is known to be resident."""
    load_s = 0.0 if resident else _value(effective.load)
    return (
        load_s + prompt_tokens / _value(effective.prefill) + _value(effective.output_tokens) / _value(effective.decode)
    )


def pull_priority(own_s: float, best_s: float) -> int:
    """0 for the fastest holder to 9: three steps for each doubling of the service time (ROUTING.md, "Releasing")."""
    if own_s <= 0.0 or best_s <= 0.0:
        return 0
    return min(max(round(3.0 * math.log2(own_s / best_s)), 0), 9)


def _value(measure: Measure) -> float:
    """An effective measure always has a value; the levels end in a prior."""
    assert measure.value is not None
    return measure.value
