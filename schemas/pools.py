"""What the finest cells add up to, level by level, kept up to date one cell at a time.

Answers "what is known of this model, this worker, all of them?" for ``schemas.statistics``, which turns it into expectations.
All totals are integers, so that taking a cell out leaves no trace and no order of arrival matters.

A worker's rates are those of one stream on the free machine. What several streams and others' use cost there is learned by
holding groups of samples against each other, cell by cell (ROUTING.md, B3.4), and applied to all its cells. What pairs of a
domain's models say is a number of each model only when all of them are seen together (``schemas.strengths``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from schemas.blends import Blends
from schemas.cells import Cell, CellKey, key_of
from schemas.samples import UNIT
from schemas.shares import (
    FREE_LEAST_PERCENT as FREE_LEAST_PERCENT,
    GB as GB,
    LEAN_LEARNED as LEAN_LEARNED,
    OTHERS_WEIGHT_MOST as OTHERS_WEIGHT_MOST,
    PRIOR_OTHERS_WEIGHT as PRIOR_OTHERS_WEIGHT,
    PRIOR_SLOWDOWN as PRIOR_SLOWDOWN,
    SLOWDOWN_MOST as SLOWDOWN_MOST,
    UNKNOWN,
    Field as Field,
    Learned as Learned,
    PoolKey,
    Share,
    others_weight as others_weight,
    quality_pools,
    shares,
    slowdown as slowdown,
    speeds,
)
from schemas.strengths import Standing, games, standings, worth
from schemas.weights import WEIGHT_ONE


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


Found = tuple[float, str, Pool]
"""A value, and the level and pool that it came from."""

EMPTY = Pool()


class Ranks:
    """One domain's pairs: the cells that hold them, the standings that follow, and what these give to the pools."""

    __slots__ = ("_cells", "_stale", "given", "standings")

    def __init__(self) -> None:
        self._cells: dict[CellKey, Cell] = {}
        self._stale = True
        self.standings: tuple[Standing, ...] = ()
        self.given: tuple[tuple[CellKey, Share], ...] = ()

    def put(self, key: CellKey, cell: Cell) -> None:
        before = self._cells.pop(key, None)
        self._stale |= before is None or before.pairs != cell.pairs
        if cell.pairs:
            self._cells[key] = cell

    def update(self) -> tuple[Standing, ...]:
        if self._stale:
            tallies = ((cell.model, tally) for cell in self._cells.values() for tally in cell.pairs)
            self.standings, self._stale = standings(games(tallies)), False
        return self.standings

    def give(self, domain: str, judged: dict[str, tuple[float, float]]) -> None:
        """``judged``: what is known of the models' answers, judged by themselves (``schemas.strengths.worth``)."""
        latest: dict[str, int] = {}
        for cell in self._cells.values():
            latest[cell.model] = max(latest.get(cell.model, 0), cell.quality_at_us or 0)
        worths = worth(self.standings, judged)
        self.given = tuple(
            (
                (s.model, domain, ""),  # no cell is of the worker ""
                Share(quality_pools(s.model, domain), s.n, s.w, s.w * worths[s.model], latest[s.model]),
            )
            for s in self.standings
            if s.w
        )


class Statistics:
    """All finest cells, with their parents kept up to date; ``position`` is the EVENTS sequence that they reach.

    ``version`` rises with each change: what was looked up under the same one is still so, but for its age.
    """

    def __init__(self, cells: Iterable[Cell] = ()) -> None:
        self.position = 0
        self.version = 0
        self._cells: dict[CellKey, Cell] = {}
        self._pools: dict[PoolKey, Pool] = {}
        self.blends = Blends(lambda key: self._pools.get(key, EMPTY))
        self._bytes: dict[str, dict[CellKey, int]] = {}
        self._bent: dict[str, set[CellKey]] = {}  # worker -> its cells whose rates depend on what was learned there
        self._applied: dict[str, Learned] = {}
        self._unsettled: set[str] = set()
        self._ranks: dict[str, Ranks] = {}  # domain -> what its pairs say
        self._unranked: set[str] = set()
        self.found: dict[tuple[str, str, str, int | None], tuple[Found, ...]] = {}
        """What lookups came to; good until the next cell."""
        for cell in cells:
            self.put(cell)

    def put(self, cell: Cell) -> None:
        """Set a cell; an older state of it than the present one is ignored, so replays and reorderings are harmless."""
        key, before = key_of(cell), self._cells.get(key_of(cell))
        if before is not None:
            if before.last_seq > cell.last_seq:
                return
            self._take(key, shares(before, self._applied.get(before.worker or "", UNKNOWN)))
        self._cells[key] = cell
        self._add(key, shares(cell, self._applied.get(cell.worker or "", UNKNOWN)))
        self._note(key, cell, before)
        self.position = max(self.position, cell.last_seq)
        self.version += 1
        self.found.clear()

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

    def in_pairs(self, model: str, domain: str) -> Share | None:
        """What its judged pairs give to the model's quality in the domain; None without any."""
        self.settle()
        given = self._ranks[domain].given if domain in self._ranks else ()
        return next((share for (name, *_), share in given if name == model), None)

    def standings(self, domain: str) -> tuple[Standing, ...]:
        """The domain's models that were judged in pairs, by name."""
        self.settle()
        ranks = self._ranks.get(domain)
        return ranks.standings if ranks is not None else ()

    def settle(self) -> None:
        """Let rates and ranks follow what was learned meanwhile. To be called before pools are read; once for many cells put."""
        while self._unranked:
            self._rank(self._unranked.pop())
        while self._unsettled:
            worker = self._unsettled.pop()
            before, now = self._applied.get(worker, UNKNOWN), self.learned(worker)
            if now == before:
                continue
            self._applied[worker] = now
            for key in self._bent.get(worker, ()):
                self._take(key, speeds(self._cells[key], worker, before))
                self._add(key, speeds(self._cells[key], worker, now))

    def _note(self, key: CellKey, cell: Cell, before: Cell | None) -> None:
        """What else a new state of a cell changes."""
        if cell.model_bytes is not None:
            self._bytes.setdefault(cell.model, {})[key] = cell.model_bytes
        elif before is not None and before.model_bytes is not None:
            del self._bytes[cell.model][key]
        if cell.pairs or (before is not None and before.pairs):
            self._ranks.setdefault(cell.domain, Ranks()).put(key, cell)
        if cell.domain in self._ranks and (before is None or _of_quality(cell) != _of_quality(before)):
            self._unranked.add(cell.domain)
        if cell.worker is None:
            return
        if cell.decode.wtok_more or any(rates.wus != rates.wfree_us for rates in (cell.decode, cell.prefill)):
            self._bent.setdefault(cell.worker, set()).add(key)
        elif cell.worker in self._bent:
            self._bent[cell.worker].discard(key)
        if any(state is not None and (state.shared.n or state.busy.n) for state in (cell, before)):
            self._unsettled.add(cell.worker)

    def _rank(self, domain: str) -> None:
        """Exchange what the pairs of a domain gave its models; the pools hold the other judgements meanwhile."""
        ranks = self._ranks[domain]
        for key, share in ranks.given:
            self._take(key, (share,))
        judged = {s.model: self.pool("quality", "md", s.model, domain) for s in ranks.update()}
        ranks.give(
            domain, {model: (pool.weight(), pool.y / (pool.w * UNIT)) for model, pool in judged.items() if pool.w}
        )
        for key, share in ranks.given:
            self._add(key, (share,))

    def _add(self, key: CellKey, shares: Iterable[Share]) -> None:
        for share in shares:
            for pool_key in share.pools:
                pool = self._pools.get(pool_key)
                if pool is None:
                    pool = self._pools[pool_key] = Pool()
                pool.add(key, share)
            self._blend(share)

    def _take(self, key: CellKey, shares: Iterable[Share]) -> None:
        for share in shares:
            for pool_key in share.pools:
                pool = self._pools[pool_key]
                pool.take(key, share)
                if not pool.times:
                    del self._pools[pool_key]
            self._blend(share)

    def _blend(self, share: Share) -> None:
        """Which levels of quality a share moves: ``quality_pools`` are the pair's, the model's, the family's and all."""
        if share.pools[-1] == ("quality",):
            by_pair, by_model, by_family, everything = share.pools[-4:]
            self.blends.changed(by_model, by_pair)
            self.blends.changed(by_family, by_model)
            self.blends.changed(everything, by_model)


def _of_quality(cell: Cell) -> tuple[object, ...]:
    return cell.quality, cell.pairs, cell.quality_at_us


def _hundredths(pool: Pool, prior: float) -> int:
    return round(100 * (pool.y / (WEIGHT_ONE * UNIT) + LEAN_LEARNED * prior) / (pool.weight() + LEAN_LEARNED))
