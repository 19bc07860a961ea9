"""The statistics as heat maps: which block stands where, how fast or good it is, and how that is known?

Pure. Speed belongs to the machine: a row for each (model, domain), a column for each machine. Quality belongs to the model: a row
for each model, a column for each domain. A block that nobody measured is null, never a 0; one that was worked out from its
parents says so by its level.
"""

from __future__ import annotations

import msgspec

from schemas.cells import Cell
from schemas.events import Level, Measure
from schemas.pools import Statistics
from schemas.scales import Of
from schemas.statistics import effective
from services.router.fleet import Fleet
from services.router.http.stats_filter import Count, Start, StatsFilter, held, matching, size_of

TITLES: dict[Of, str] = {
    "decode": "Speed: tokens/s that one stream gets on the free machine",
    "quality": "Quality: points of 100, on any machine",
}
NOT_HELD = "the machine does not hold the model"
NOTHING = "nothing like it was measured"
MOST_ROWS, MOST_COLUMNS = 400, 200
"""Of one answer: 80 000 blocks would keep the router from its work for a second; what is seen at a time is far less."""


class MapFilter(StatsFilter, frozen=True, kw_only=True):
    """``row`` and ``column`` are the first that are shown, ``rows`` and ``columns`` how many."""

    row: Start = 0
    column: Start = 0
    rows: Count = 40
    columns: Count = 20


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """``level`` ``cell`` is measured, any other worked out from its parents. ``reason`` says why ``value`` is null."""

    value: float | None
    level: Level = "prior"
    n: int = 0
    reason: str | None = None


class MapRow(msgspec.Struct, frozen=True, kw_only=True):
    """``domain`` None: of any."""

    model: str
    domain: str | None
    blocks: tuple[Block, ...]


class HeatMap(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the whole: from ``row`` and ``column`` on, of ``rows_total`` by ``columns_total``."""

    of: Of
    title: str
    columns: tuple[str, ...]
    rows: tuple[MapRow, ...]
    row: int
    column: int
    rows_total: int
    columns_total: int


def heat_map(of: Of, stats: Statistics, fleet: Fleet, wanted: MapFilter) -> HeatMap:
    """``wanted`` is resolved."""
    return (_speed if of == "decode" else _quality)(stats, fleet, wanted)


def _speed(stats: Statistics, fleet: Fleet, wanted: MapFilter) -> HeatMap:
    names = fleet.names()
    cells = [cell for cell in matching(stats, wanted) if cell.worker is not None and cell.decode.n]
    pairs = {(cell.model, cell.worker or "") for cell in cells} | set(held(fleet, wanted))
    workers = sorted({worker for _, worker in pairs}, key=lambda worker: (names.get(worker, worker), worker))
    keys = _with_the_unmeasured({(cell.model, cell.domain) for cell in cells}, {model for model, _ in pairs}, wanted)
    shown = workers[wanted.column : wanted.column + min(wanted.columns, MOST_COLUMNS)]

    def block(model: str, domain: str | None, worker: str) -> Block:
        if (model, worker) not in pairs:
            return Block(value=None, reason=NOT_HELD)
        size = size_of(fleet, model, worker)
        return _block(effective(stats, model, domain or "", worker, model_bytes=size, now_us=0).decode)

    rows = tuple(
        MapRow(model=model, domain=domain, blocks=tuple(block(model, domain, worker) for worker in shown))
        for model, domain in keys[wanted.row : wanted.row + min(wanted.rows, MOST_ROWS)]
    )
    columns = tuple(names.get(worker, worker) for worker in shown)
    return _map("decode", columns, rows, wanted, len(keys), len(workers))


def _quality(stats: Statistics, fleet: Fleet, wanted: MapFilter) -> HeatMap:
    anywhere = wanted.worker is None
    cells = list(matching(stats, msgspec.structs.replace(wanted, worker=None)))
    here = {model for model, _ in held(fleet, wanted)} | {
        c.model for c in cells if anywhere or c.worker == wanted.worker
    }
    models, domains = sorted(here), sorted({cell.domain for cell in cells if _tells(cell)})
    shown = domains[wanted.column : wanted.column + min(wanted.columns, MOST_COLUMNS)]

    def block(model: str, domain: str) -> Block:
        known = effective(stats, model, domain, wanted.worker or "", model_bytes=None, now_us=0).quality
        return _block(known, own="model_domain" if anywhere else "cell")

    rows = tuple(
        MapRow(model=model, domain=None, blocks=tuple(block(model, domain) for domain in shown))
        for model in models[wanted.row : wanted.row + min(wanted.rows, MOST_ROWS)]
    )
    found = _map("quality", tuple(shown), rows, wanted, len(models), len(domains))
    if anywhere:
        return found
    name = fleet.names().get(wanted.worker or "", wanted.worker)
    return msgspec.structs.replace(found, title=f"Quality: points of 100, on {name}")


def _tells(cell: Cell) -> bool:
    return bool(cell.ok_n or cell.fail_n or cell.quality.n)


def _block(measure: Measure, own: str = "cell") -> Block:
    """A level that is the block's own counts as ``cell``: it was measured, not worked out."""
    if measure.level == "prior":
        return Block(value=None, reason=NOTHING)
    return Block(value=measure.value, level="cell" if measure.level == own else measure.level, n=measure.n)


def _with_the_unmeasured(
    measured: set[tuple[str, str]], models: set[str], wanted: MapFilter
) -> list[tuple[str, str | None]]:
    """Models that are held but were never measured have one row."""
    keys: list[tuple[str, str | None]] = sorted(measured)
    keys += [(model, wanted.domain) for model in models - {model for model, _ in measured}]
    return sorted(keys, key=lambda key: (key[0], key[1] or ""))


def _map(
    of: Of, columns: tuple[str, ...], rows: tuple[MapRow, ...], wanted: MapFilter, rows_total: int, columns_total: int
) -> HeatMap:
    return HeatMap(
        of=of,
        title=TITLES[of],
        columns=columns,
        rows=rows,
        row=wanted.row,
        column=wanted.column,
        rows_total=rows_total,
        columns_total=columns_total,
    )
