"""Where did an attempt's seconds go: queue, load, prefill, decode?

The backend's own fields stand first, because a worker's clock reads prefill 10 to 31 % low; where they are absent the worker's
monotonic clock is used as far as it can tell, and what nobody measured stays None. A load is never part of prefill or decode:
one cold start must not make a machine look slow for ever. Pure.
"""

from __future__ import annotations

import msgspec

from schemas.events import Times
from services.worker.backends.port import BackendTimings

US = 1e6


class Seen(msgspec.Struct, kw_only=True):
    """Instants of the worker's monotonic clock; None until they happen. ``taken`` is the first progress of the prompt."""

    sent: float
    taken: float | None = None
    first_token: float | None = None
    last_token: float | None = None
    ended: float | None = None


def times_of(backend: BackendTimings, seen: Seen, *, was_resident: bool | None) -> Times:
    """``was_resident``: the model was in memory before the request. ``decode_s`` is the span from the first to the last token
    (n tokens over it agree with a server's own figure within 0.5 %)."""
    prefill, prefill_by_worker = _seconds(backend.prefill_us), False
    if prefill is None:
        prefill = _prefill_seen(backend, seen, was_resident)
        prefill_by_worker = prefill is not None
    decode, decode_by_worker = _seconds(backend.decode_us), False
    if decode is None:
        decode = _span(seen.first_token, seen.last_token) or None
        decode_by_worker = decode is not None
    has_own = backend.prefill_us is not None or backend.decode_us is not None
    return Times(
        queue_s=_seconds(backend.queue_us) if backend.queue_us is not None else _span(seen.sent, seen.taken),
        load_s=_seconds(backend.load_us),
        prefill_s=prefill,
        decode_s=decode,
        first_token_s=_span(seen.sent, seen.first_token),
        total_s=_span(seen.sent, seen.ended),
        source="backend" if has_own else "worker" if prefill_by_worker or decode_by_worker else None,
    )


def _prefill_seen(backend: BackendTimings, seen: Seen, was_resident: bool | None) -> float | None:
    """The wait for the first token, only where nothing else can hide in it: no load, and no unknown queue."""
    if backend.load_us is not None:
        waited = _span(seen.sent, seen.first_token)
        return None if waited is None else max(0.0, waited - (backend.load_us + (backend.queue_us or 0)) / US)
    if was_resident is not True:
        return None
    return _span(seen.taken if seen.taken is not None else seen.sent, seen.first_token)


def _seconds(micros: int | None) -> float | None:
    return None if micros is None else micros / US


def _span(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else round(max(0.0, end - start), 6)
