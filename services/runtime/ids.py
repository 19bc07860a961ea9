"""New ids: 26 lower-case characters of Crockford's base 32, in the order of their making.

Answers "what shall this be called?". 48 bits of milliseconds, then 80 random bits (the ULID layout), legal in subjects,
URLs and KV keys without encoding. Two ids of one process made in the same millisecond still sort by their making.
"""

from __future__ import annotations

import os
import threading
import time

ID_CHARS = "0123456789abcdefghjkmnpqrstvwxyz"
ID_LENGTH = 26
_RANDOM_BITS = 80
_PAIRS = [first + second for first in ID_CHARS for second in ID_CHARS]
"""Two characters at once: an id for each event is as much work as writing some of them."""
_SHIFTS = range(5 * (ID_LENGTH - 2), -1, -10)

_lock = threading.Lock()
_last = 0


def new_id() -> str:
    global _last
    with _lock:
        number = (time.time_ns() // 1_000_000) << _RANDOM_BITS | int.from_bytes(os.urandom(10))
        if number >> _RANDOM_BITS <= _last >> _RANDOM_BITS:
            number = _last + 1  # the same millisecond, or a clock that was set back
        _last = number
    return encode_id(number)


def encode_id(number: int) -> str:
    """A 128-bit number as 26 characters; greater numbers sort later."""
    return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])
