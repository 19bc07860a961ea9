"""Numbers as people read them, with the unknown said aloud.

Answers "how is this value written?". Pure. ``None`` is never shown as 0: it reads "unknown", with its reason where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

UNKNOWN = "unknown"


def known(value: float | None, write: Callable[[float], str], reason: str | None = None) -> str:
    """``write(value)``, or "unknown (reason)"."""
    if value is not None:
        return write(value)
    return f"{UNKNOWN} ({reason})" if reason else UNKNOWN


def seconds(value: float) -> str:
    """0.0042 -> "4.2 ms", 1.3 -> "1.30 s", 95 -> "1 min 35 s", 7400 -> "2 h 3 min", 200000 -> "2 d 7 h"."""
    if value < 0:
        return f"-{seconds(-value)}"
    if value == 0:
        return "0 s"
    if value < 0.1:
        return f"{plain(value * 1000)} ms"
    if value < 60:
        return f"{plain(value)} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def seconds_to_go(value: float) -> str:
    """A prediction of less than a second says no more than that."""
    return seconds(value) if value >= 1 else "less than 1 s"


def duration(text: str) -> float:
    """Seconds: ``90s``, ``45m``, ``2h``, ``1d``, ``1h30m``. Raises ValueError for anything else, and for nothing at all."""
    found = re.fullmatch(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", text.strip().lower())
    parts = [int(part or 0) for part in found.groups()] if found else []
    if not any(parts):
        raise ValueError("expected a time such as 90s, 45m, 2h, 1d or 1h30m")
    days, hours, minutes, seconds = parts
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def rate(value: float) -> str:
    return f"{plain(value)} tok/s"


def share(value: float) -> str:
    return f"{100 * value:.0f} %"


def size(value: float) -> str:
    """Bytes in decimal units, as disks and model cards count them."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{plain(value) if unit != 'B' else round(value)} {unit}"
        value /= 1000
    return f"{plain(value)} TB"


def count(value: float) -> str:
    return f"{round(value):,}".replace(",", "\u202f") if abs(value) >= 10_000 else str(round(value))


def ago(value: float) -> str:
    return "now" if value < 1 else f"{seconds(round(value))} ago"


def ago_roughly(value: float) -> str:
    """In its largest unit: ``3 min ago``."""
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if value >= size:
            return f"{value / size:.0f} {unit} ago"
    return "now" if value < 1 else f"{value:.0f} s ago"


def clock(unix: float) -> str:
    """A producer's time of day in UTC; for display only."""
    return datetime.fromtimestamp(unix, UTC).strftime("%H:%M:%S")


def plain(value: float) -> str:
    """Three significant digits, without an exponent."""
    size = abs(value)
    return f"{value:.2f}" if size < 10 else f"{value:.1f}" if size < 100 else f"{value:.0f}"
