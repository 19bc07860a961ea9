"""One measured execution or judgement as a row of integers.

Answers "what does this event teach?". A sample carries every attribute that a statistic may be keyed by, so any key is a
function of one row. Missing stays ``None``, never 0; an impossible number (negative, absurdly large) is missing too.
Never reads a clock: ``at_us`` is the server's time of storage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from schemas.errors import InvalidEvent
from schemas.events import (
    AnyEvent,
    AttemptFailed,
    Event,
    JudgeSource,
    QualityJudged,
    TaskCompleted,
    Times,
    Tokens,
)

SampleKind = Literal["speed", "quality", "failure"]

UNIT = 1_000_000
"""Fractions are stored in millionths, times in microseconds: integers add up the same in any order, floats do not."""

SOURCE_WEIGHT_U = {"judge": 1_000_000, "check": 1_000_000, "thumb": 300_000, "signal": 100_000}
"""How much one judgement counts, by source (ROUTING.md, B3.8)."""

BACKEND_FAILURES = frozenset({"stall", "disconnect", "oom", "protocol", "timeout", "lost"})
"""Failures that say something about the machine; busy, refused or fenced attempts never ran."""

_LONGEST_S = 1e6
_MOST = 1 << 30
_MOST_BYTES = 1 << 50
"""Beyond these a number is a broken clock or a broken backend: treated as missing. Products of two stay below 2^63."""


class Sample(msgspec.Struct, frozen=True, omit_defaults=True):
    """One row of ``samples``. ``prefill_tok`` counts uncached tokens only. ``others_u`` is the share of the machine that
    somebody else used, ``quality_w_u`` the judgement's weight, both in millionths.

    ``source`` and ``judge`` say who judged: ``judge`` is the judge's model, the check's or signal's name, or the client whose
    thumb it was. With a ``peer`` the judgement compares, and its value counts against that model only. ``topic`` is the
    suite's prompt that was answered: asked again of the same file, it says nothing new."""

    seq: int
    at_us: int
    kind: SampleKind
    model: str
    domain: str
    worker: str | None = None
    digest: str | None = None
    quantisation: str | None = None
    model_bytes: int | None = None
    language: str | None = None
    task_kind: str | None = None
    client: str | None = None
    lane: str | None = None
    context: int | None = None
    capability: str | None = None
    backend: str | None = None
    gpu: str | None = None
    task: str | None = None
    attempt: int | None = None
    ok: bool | None = None
    outcome: str | None = None
    finish_reason: str | None = None
    resident: bool | None = None
    concurrency: int | None = None
    others_u: int | None = None
    queue_us: int | None = None
    load_us: int | None = None
    prefill_tok: int | None = None
    prefill_us: int | None = None
    decode_tok: int | None = None
    decode_us: int | None = None
    output_tok: int | None = None
    prompt_tok: int | None = None
    cached_tok: int | None = None
    thinking_tok: int | None = None
    prompt_chars: int | None = None
    first_token_us: int | None = None
    total_us: int | None = None
    quality_u: int | None = None
    quality_w_u: int | None = None
    source: JudgeSource | None = None
    judge: str | None = None
    peer: str | None = None
    topic: str | None = None


def sample_of(event: AnyEvent, seq: int, at_us: int) -> Sample | None:
    """The sample that ``event`` is, or None. Raises InvalidEvent for a judgement outside [0, 1]."""
    make = _SAMPLE_OF.get(type(event))
    return make(event, seq, at_us) if make is not None else None


def _completed(event: TaskCompleted, seq: int, at_us: int) -> Sample:
    """An empty answer gives the speed of what ran, and is not a success; a substituted model's speed is somebody else's."""
    substituted = event.outcome == "substituted"
    times = Times(queue_s=event.times.queue_s) if substituted else event.times
    tokens = Tokens() if substituted else event.tokens
    # Conversions stand here in full, and the fields below go by position: with a call for each it takes three times as long,
    # and this runs once for every execution that there ever was.
    queue_us = int(t * 1e6 + 0.5) if (t := times.queue_s) is not None and 0.0 <= t < _LONGEST_S else None
    load_us = int(t * 1e6 + 0.5) if (t := times.load_s) is not None and 0.0 <= t < _LONGEST_S else None
    prefill_us = int(t * 1e6 + 0.5) if (t := times.prefill_s) is not None and 0.0 <= t < _LONGEST_S else None
    decode_us = int(t * 1e6 + 0.5) if (t := times.decode_s) is not None and 0.0 <= t < _LONGEST_S else None
    first_token_us = int(t * 1e6 + 0.5) if (t := times.first_token_s) is not None and 0.0 <= t < _LONGEST_S else None
    total_us = int(t * 1e6 + 0.5) if (t := times.total_s) is not None and 0.0 <= t < _LONGEST_S else None
    prompt = n if (n := tokens.prompt) is not None and 0 <= n < _MOST else None
    cached = n if (n := tokens.cached) is not None and 0 <= n < _MOST else None
    output = n if (n := tokens.output) is not None and 0 <= n < _MOST else None
    thinking = n if (n := tokens.thinking) is not None and 0 <= n < _MOST else None
    prefill_tok = None if prompt is None else prompt - (cached or 0)
    if prefill_tok is None or prefill_us is None or prefill_tok <= 0 or prefill_us == 0:
        prefill_tok = prefill_us = None  # a rate needs both of its halves, and both above zero
    decode_tok = output
    if decode_tok is None or decode_us is None or decode_tok == 0 or decode_us == 0:
        decode_tok = decode_us = None
    return Sample(
        seq,
        at_us,
        "speed",
        event.model,
        event.domain,
        event.worker,
        event.digest,
        event.quantisation,
        n if (n := event.model_bytes) is not None and 0 < n < _MOST_BYTES else None,
        event.language,
        event.kind,
        event.client,
        event.lane,
        n if (n := event.context) is not None and 0 <= n < _MOST else None,
        event.capability,
        event.backend,
        event.gpu,
        event.task,
        event.attempt,
        event.outcome in ("ok", "truncated"),
        event.outcome,
        event.finish_reason,
        event.resident,
        n if 0 <= (n := event.concurrency) < _MOST else None,
        _share(event.others_use),
        queue_us,
        load_us,
        prefill_tok,
        prefill_us,
        decode_tok,
        decode_us,
        output,
        prompt,
        cached,
        thinking,
        n if (n := event.prompt_chars) is not None and 0 <= n < _MOST else None,
        first_token_us,
        total_us,
    )


def _judged(event: QualityJudged, seq: int, at_us: int) -> Sample:
    value = _share(event.value)
    if value is None or not 0.0 <= event.weight <= 1.0:
        raise InvalidEvent(
            f"quality.judged {event.id}: value {event.value!r} and weight {event.weight!r} must both be between 0 and 1"
        )
    return Sample(
        seq=seq,
        at_us=at_us,
        kind="quality",
        task=event.tasks[0] if event.tasks else None,
        model=event.model,
        domain=event.domain,
        worker=event.worker,
        digest=event.digest,
        quantisation=event.quantisation,
        quality_u=value,
        quality_w_u=round(SOURCE_WEIGHT_U[event.source] * event.weight),
        source=event.source,
        judge=_who(event),
        peer=event.peer,
        topic=None if event.suite is None or event.prompt is None else f"{event.suite}/{event.prompt}",
    )


def _who(event: QualityJudged) -> str | None:
    """Whose word it is: what says the same twice is told by it."""
    return {"thumb": event.client, "signal": event.signal}.get(event.source, event.judge)


def _failed(event: AttemptFailed, seq: int, at_us: int) -> Sample | None:
    if event.failure not in BACKEND_FAILURES or event.worker is None or event.model is None or event.domain is None:
        return None
    return Sample(
        seq=seq,
        at_us=at_us,
        kind="failure",
        task=event.task,
        attempt=event.attempt,
        model=event.model,
        domain=event.domain,
        worker=event.worker,
        digest=event.digest,
        ok=False,
        outcome=event.failure,
        total_us=_us(event.elapsed_s),
    )


_SAMPLE_OF: dict[type[Event], Callable[[Any, int, int], Sample | None]] = {
    TaskCompleted: _completed,
    QualityJudged: _judged,
    AttemptFailed: _failed,
}


def _us(seconds: float | None) -> int | None:
    return int(seconds * 1e6 + 0.5) if seconds is not None and 0.0 <= seconds < _LONGEST_S else None


def _share(fraction: float | None) -> int | None:
    return round(fraction * UNIT) if fraction is not None and 0.0 <= fraction <= 1.0 else None
