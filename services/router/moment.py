"""Moments as people write them: ``2h``, ``15 min ago``, ``2026-01-31T12:00``.

Answers "which time is meant?". Pure; the present is handed in.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

UNITS = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
LATEST_US = round(datetime(9999, 12, 31, tzinfo=UTC).timestamp() * 1e6)
_AGO = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|m|h|d|w)(?: ago)?")


def moment_us(text: str, now_us: int) -> int | None:
    """In microseconds since 1970; None for what is no time, or no time since then. A time without a zone is UTC, as all times
    shown are."""
    if found := _AGO.fullmatch(text.strip()):
        ago_us = float(found[1]) * UNITS[found[2]] * 1e6
        return now_us - round(ago_us) if ago_us <= now_us else None
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    at_us = round((when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp() * 1e6)
    return at_us if 0 <= at_us <= LATEST_US else None
