"""Moments as people write them: ``2h``, ``15 min ago``, ``2026-01-31T12:00``.

Answers "which time is meant?". Pure; the present is handed in.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

UNITS = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_AGO = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|m|h|d|w)(?: ago)?")


def moment_us(text: str, now_us: int) -> int | None:
    """In microseconds since 1970; None for what is no time. A time without a zone is UTC, as all times shown are."""
    if found := _AGO.fullmatch(text.strip()):
        return now_us - round(float(found[1]) * UNITS[found[2]] * 1e6)
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return round((when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp() * 1e6)
