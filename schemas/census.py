"""Which state of which cells is somebody holding?

Answers "are these all the cells, each as of the same position?" with two numbers. A cell's content is a function of its key and
of the last sample in it, so whoever holds the same keys at the same sequences holds the same statistics. The projector counts
what it published; a reader that counts the same has missed nothing, however late it came and whatever was overwritten meanwhile.
"""

from __future__ import annotations

import hashlib

import msgspec

from schemas.cells import CellKey

_MASK = (1 << 64) - 1


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """What the projector says after each batch of cells: they are the fold of the log up to ``position``."""

    position: int
    cells: int
    total: str


class Census:
    """``put`` each accepted state of a cell; the order changes nothing, a newer state replaces the older one."""

    def __init__(self) -> None:
        self._last: dict[CellKey, int] = {}
        self._total = 0

    def put(self, key: CellKey, last_seq: int) -> None:
        before = self._last.get(key)
        if before is not None:
            if before >= last_seq:
                return
            self._total -= _hash(key, before)
        self._last[key] = last_seq
        self._total += _hash(key, last_seq)

    def marker(self, position: int) -> Marker:
        return Marker(position=position, cells=len(self._last), total=f"{self._total & _MASK:016x}")


def _hash(key: CellKey, last_seq: int) -> int:
    model, domain, worker = key
    text = msgspec.json.encode((model, domain, worker, last_seq))
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
