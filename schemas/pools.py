"""What the finest cells add up to, level by level, kept up to date one cell at a time.

Answers "what is known of this model, this worker, all of them?" for ``schemas.statistics``, which turns it into expectations.
All totals are integers, so that taking a cell out leaves no trace and no order of arrival matters.

A worker's rates are those of one stream on the free machine. What several streams and others' use cost there is learned by
holding groups of samples against each other, cell by cell (ROUTING.md, B3.4), and applied to all its cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Literal

from schemas.cells import Cell, CellKey, Rates, key_of
from schemas.samples import UNIT
from schemas.weights import WEIGHT_ONE

Field = Literal["decode", "prefill", "load", "output", "quality"]
PoolKey = tuple[str, ...]
Learned = tuple[int, int]
"""In hundredths, because finer steps would be noise that moves all rates: slowdown by a further stream, weight of others' use."""

GB = 1e9

PRIOR_SLOWDOWN = 1.0
PRIOR_OTHERS_WEIGHT = 1.0
SLOWDOWN_MOST = 1.5
OTHERS_WEIGHT_MOST = 2.0
LEAN_LEARNED = 2.0
"""How many samples of the rarer kind the prior is worth."""

TELLING_USE = 0.5
"""Others' use at which a sample tells as much about it as one that ran alone: below, noise is divided by a small number."""

UNKNOWN: Learned = (round(100 * PRIOR_SLOWDOWN), round(100 * PRIOR_OTHERS_WEIGHT))
FREE_LEAST_PERCENT = 25
"""Of the measured time, whatever others took: as ``schemas.prediction.FREE_LEAST``."""


class Pool:
    """Totals of one field over the cells of one level.

    ``y`` is Σ weight · ln(rate) in millionths; ``zw`` and ``z`` the same over the cells whose model size is known, with the
    rate scaled to a model of 1 GB. For all others ``y`` is Σ weight · value.
    """

    __slots__ = ("_latest", "n", "times", "w", "y", "z", "zw")

    def __init__(self) -> None:
        self.n = self.w = self.y = self.zw = self.z = 0
        self.times: dict[CellKey, int] = {}
        self._latest: int | None = None

    def add(self, key: CellKey, share: Share) -> None:
        self._change(share, 1)
        self.times[key] = share.at_us
        self._latest = None

    def take(self, key: CellKey, share: Share) -> None:
        self._change(share, -1)
        del self.times[key]
        self._latest = None

    def _change(self, share: Share, sign: int) -> None:
        self.n += sign * share.n
        self.w += sign * share.w
        self.y += sign * share.y
        self.zw += sign * share.zw
        self.z += sign * share.z

    def weight(self) -> float:
        return self.w / WEIGHT_ONE

    def age_s(self, now_us: int) -> float | None:
        if not self.times:
            return None
        if self._latest is None:
            self._latest = max(self.times.values())
        return max(0.0, (now_us - self._latest) / UNIT)

    def snapshot(self) -> tuple[int, int, int, int, int, dict[CellKey, int]]:
        return self.n, self.w, self.y, self.zw, self.z, self.times


EMPTY = Pool()


class Share:
    """What one cell gives to each pool of one field."""

    __slots__ = ("at_us", "n", "pools", "w", "y", "z", "zw")

    def __init__(self, pools: tuple[PoolKey, ...], n: int, w: int, y: int, at_us: int | None) -> None:
        self.pools, self.n, self.w, self.y, self.at_us = pools, n, w, y, at_us or 0
        self.zw = self.z = 0


class Statistics:
    """All finest cells, with their parents kept up to date; ``position`` is the EVENTS sequence that they reach.

    ``version`` rises with each change: what was looked up under the same one is still so, but for its age.
    """

    def __init__(self, cells: Iterable[Cell] = ()) -> None:
        self.position = 0
        self.version = 0
        self._cells: dict[CellKey, Cell] = {}
        self._pools: dict[PoolKey, Pool] = {}
        self._bytes: dict[str, dict[CellKey, int]] = {}
        self._bent: dict[str, set[CellKey]] = {}  # worker -> its cells whose rates depend on what was learned there
        self._applied: dict[str, Learned] = {}
        self._unsettled: set[str] = set()
        for cell in cells:
            self.put(cell)

    def put(self, cell: Cell) -> None:
        """Set a cell; an older state of it than the present one is ignored, so replays and reorderings are harmless."""
        key, before = key_of(cell), self._cells.get(key_of(cell))
        if before is not None:
            if before.last_seq > cell.last_seq:
                return
            self._take(key, _shares(before, self._applied.get(before.worker or "", UNKNOWN)))
        self._cells[key] = cell
        self._add(key, _shares(cell, self._applied.get(cell.worker or "", UNKNOWN)))
        self._note(key, cell, before)
        self.position = max(self.position, cell.last_seq)
        self.version += 1

    def cell(self, model: str, domain: str, worker: str | None) -> Cell | None:
        return self._cells.get((model, domain, worker))

    def cells(self) -> Iterator[Cell]:
        return iter(self._cells.values())

    def __len__(self) -> int:
        return len(self._cells)

    def pool(self, *key: str) -> Pool:
        return self._pools.get(key, EMPTY)

    def pools(self) -> dict[PoolKey, tuple[int, int, int, int, int, dict[CellKey, int]]]:
        """Every level's totals, for comparing two of these."""
        self.settle()
        return {key: pool.snapshot() for key, pool in self._pools.items()}

    def typical_bytes(self, model: str) -> int | None:
        """The mean size of ``model`` over the cells that know it."""
        sizes = self._bytes.get(model)
        return sum(sizes.values()) // len(sizes) if sizes else None

    def learned(self, worker: str) -> Learned:
        """What further streams and others' use cost on ``worker``, as of its present cells."""
        return (
            _hundredths(self.pool("slowdown", worker), PRIOR_SLOWDOWN),
            _hundredths(self.pool("others_weight", worker), PRIOR_OTHERS_WEIGHT),
        )

    def settle(self) -> None:
        """Let rates follow what was learned meanwhile. To be called before pools are read; once for many cells put."""
        while self._unsettled:
            worker = self._unsettled.pop()
            before, now = self._applied.get(worker, UNKNOWN), self.learned(worker)
            if now == before:
                continue
            self._applied[worker] = now
            for key in self._bent.get(worker, ()):
                self._take(key, _speeds(self._cells[key], worker, before))
                self._add(key, _speeds(self._cells[key], worker, now))

    def _note(self, key: CellKey, cell: Cell, before: Cell | None) -> None:
        """What else a new state of a cell changes."""
        if cell.model_bytes is not None:
            self._bytes.setdefault(cell.model, {})[key] = cell.model_bytes
        elif before is not None and before.model_bytes is not None:
            del self._bytes[cell.model][key]
        if cell.worker is None:
            return
        if cell.decode.wtok_more or any(rates.wus != rates.wfree_us for rates in (cell.decode, cell.prefill)):
            self._bent.setdefault(cell.worker, set()).add(key)
        elif cell.worker in self._bent:
            self._bent[cell.worker].discard(key)
        if any(state is not None and (state.shared.n or state.busy.n) for state in (cell, before)):
            self._unsettled.add(cell.worker)

    def _add(self, key: CellKey, shares: Iterable[Share]) -> None:
        for share in shares:
            for pool_key in share.pools:
                pool = self._pools.get(pool_key)
                if pool is None:
                    pool = self._pools[pool_key] = Pool()
                pool.add(key, share)

    def _take(self, key: CellKey, shares: Iterable[Share]) -> None:
        for share in shares:
            for pool_key in share.pools:
                pool = self._pools[pool_key]
                pool.take(key, share)
                if not pool.times:
                    del self._pools[pool_key]


def _hundredths(pool: Pool, prior: float) -> int:
    return round(100 * (pool.y / (WEIGHT_ONE * UNIT) + LEAN_LEARNED * prior) / (pool.weight() + LEAN_LEARNED))


def _shares(cell: Cell, learned: Learned) -> Iterator[Share]:
    model, domain, worker = key_of(cell)
    if worker is not None:
        yield from _speeds(cell, worker, learned)
        for name, n, w, value in (("slowdown", *slowdown(cell)), ("others_weight", *others_weight(cell))):
            if w:
                yield Share(((name, worker),), n, w, w * round(value * UNIT), cell.speed_at_us)
        if cell.decode.w:
            told = cell.decode.w_told * UNIT
            yield Share((("use_known", worker),), cell.decode.n, cell.decode.w, told, cell.speed_at_us)
    pools: tuple[PoolKey, ...]
    if cell.output.w:
        pools = (("output", "md", model, domain), ("output", "d", domain))
        yield Share(pools, cell.output.n, cell.output.w, cell.output.wx, cell.speed_at_us)
    if cell.quality.w:
        by_cell = ("quality", "c", model, domain, worker or "")
        pools = (by_cell, ("quality", "md", model, domain), ("quality", "m", model), ("quality",))
        yield Share(pools, cell.quality.n, cell.quality.w // UNIT, cell.quality.wx // UNIT, cell.quality_at_us)


def _speeds(cell: Cell, worker: str, learned: Learned) -> Iterator[Share]:
    speeds: tuple[tuple[Field, int, int, float | None], ...] = (
        ("decode", cell.decode.n, cell.decode.w, _log_rate(cell.decode, learned)),
        ("prefill", cell.prefill.n, cell.prefill.w, _log_rate(cell.prefill, learned)),
        ("load", cell.load.n, cell.load.w, _log(cell.load.w * UNIT, cell.load.wx)),
    )
    for field, n, w, y in speeds:
        if y is not None:
            yield _speed_share(cell, worker, field, n, w, y)


def _speed_share(cell: Cell, worker: str, field: Field, n: int, w: int, y: float) -> Share:
    model, domain = cell.model, cell.domain
    pools = (
        (field, "c", model, domain, worker),
        (field, "mw", model, worker),
        (field, "w", worker),
        (field, "m", model),
        (field,),
    )
    share = Share(pools, n, w, w * round(y * UNIT), cell.speed_at_us)
    if cell.model_bytes:
        share.zw, share.z = w, w * round((y + math.log(cell.model_bytes / GB)) * UNIT)
    return share


def _log_rate(rates: Rates, learned: Learned) -> float | None:
    """ln(tokens per second) of one stream on the free machine.

    Time is taken to be t1 · tokens · (1 + β · further streams) / (1 − γ · others' use), so t1 is a ratio of sums that are
    linear in both. Samples that all ran in eight streams give a rate that is right in eight, whatever β is.
    """
    beta, gamma = learned
    tokens = 100 * rates.wtok + beta * rates.wtok_more
    free_us = 100 * rates.wus - gamma * (rates.wus - rates.wfree_us)
    return _log(tokens * UNIT, max(free_us, FREE_LEAST_PERCENT * rates.wus))


def slowdown(cell: Cell) -> tuple[int, int, float]:
    """(n, weight, β): how much each further stream adds to a token's time, by the time of those that ran alone."""
    alone, shared = cell.alone, cell.shared
    if not (alone.wtok and alone.wus and shared.wx):
        return 0, 0, PRIOR_SLOWDOWN
    value = (shared.wus * alone.wtok - shared.wtok * alone.wus) / (shared.wx * alone.wus)
    return shared.n, min(alone.w, shared.w), min(max(value, 0.0), SLOWDOWN_MOST)


def others_weight(cell: Cell) -> tuple[int, int, float]:
    """(n, weight, γ): how much of others' use comes off our speed, by the speed beside nobody known."""
    alone, busy = cell.alone, cell.busy
    if not (alone.wtok and alone.wus and busy.wx):
        return 0, 0, PRIOR_OTHERS_WEIGHT
    value = (busy.wus * alone.wtok - busy.wtok * alone.wus) / (busy.wx * alone.wtok)
    telling = min(1.0, (busy.wx / busy.wus / TELLING_USE) ** 2)
    return busy.n, int(min(alone.w, busy.w) * telling), min(max(value, 0.0), OTHERS_WEIGHT_MOST)


def _log(numerator: int, denominator: int) -> float | None:
    """ln of a ratio of sums, None where either is missing."""
    return math.log(numerator / denominator) if numerator > 0 and denominator > 0 else None
