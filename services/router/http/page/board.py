"""Everything the page shows in one language, kept up to date: HTML for whoever comes, and what changed for whoever is there.

Answers "what does the page say now?" from the router's memory. Each row is rendered once, however many look; a look costs what
changed. It keeps no clock: whoever looks says when it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import msgspec
from markupsafe import Markup

from schemas.scales import BOUNDS, Of, step
from services.router.domains import UNKNOWN
from services.router.http.page.regions import Region
from services.router.http.page.rendering import template
from services.router.http.page.rows import Row, seen
from services.router.http.page.words import Language, words_of
from services.router.http.stats_maps import NOT_HELD, Block, HeatMap, MapFilter, heat_map
from services.router.http.stats_svg import written
from services.router.port import RouterPort

DECISIONS_MOST = 40
"""A screen or two; older ones are ``headrace explain``'s and the projector's."""
MAP_EVERY_S = 5.0
"""A cell changes with each answer, and nobody reads 600 numbers faster."""
MAP = MapFilter(rows=40, columns=16)
LISTS = ("fleet", "waiting", "running", "decisions")


class Board:
    def __init__(self, router: RouterPort, language: Language) -> None:
        self.language = language
        self.words = words_of(language)
        self.regions = {name: Region(self._rendered(name)) for name in (*LISTS, "map")}
        self.counts: dict[str, Any] = {}
        self.now = 0.0
        self._router = router
        self._map: tuple[float, Row] | None = None

    def look(self, now: float) -> dict[str, Any]:
        """What changed since the last look, by region; empty where nothing did."""
        self.now = now
        router, fleet = self._router, self._router.fleet()
        found = seen(fleet, router.queue(), router.recent(DECISIONS_MOST), now)
        changed = {name: self.regions[name].step(getattr(found, name), now) for name in LISTS}
        changed["map"] = self.regions["map"].step([self._maps(now)], now)
        alive = sum(machine.alive for machine in fleet.workers.values())
        readiness = router.readiness()
        counts = {
            "waiting": str(len(found.waiting)),
            "running": str(len(found.running)),
            "machines": f"{alive}/{len(fleet.workers)}",
            "starting": "" if readiness.ready else f"{self.words['starting']}: {readiness.reason or '…'}",
        }
        told = {name: value for name, value in counts.items() if value != self.counts.get(name)}
        self.counts = counts
        steps = {name: region for name, region in changed.items() if region}
        return {**({"regions": steps} if steps else {}), **({"counts": told} if told else {})}

    def whole(self) -> dict[str, Any]:
        """For who has nothing, or something too old."""
        regions = {name: region.whole() for name, region in self.regions.items()}
        return {"regions": regions, "counts": self.counts}

    def html(self, name: str) -> Markup:
        return Markup(self.regions[name].html)  # rendered by templates that escape

    def _rendered(self, name: str) -> Any:
        row = template(f"row_{name}.html")
        return lambda view: row.render(row=view, w=self.words, now=self.now, language=self.language)

    def _maps(self, now: float) -> Row:
        """At most so often, and only where something was measured or a machine came or went."""
        stats, fleet = self._router.statistics(), self._router.fleet()
        known_by = stats.position, tuple((w.name, tuple(w.models)) for w in fleet.workers.values())
        if self._map is not None:
            made_at, row = self._map
            if row.known_by == known_by or now - made_at < MAP_EVERY_S:
                return row
        view = tuple(shown(heat_map(of, stats, fleet, MAP), self.words) for of in BOUNDS)
        row = Row(id="map", known_by=known_by, view=view)
        self._map = now, row
        return row


class ShownBlock(msgspec.Struct, frozen=True):
    """``step`` None: no colour."""

    text: str
    step: int | None


class ShownMap(msgspec.Struct, frozen=True, kw_only=True):
    of: Of
    columns: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[ShownBlock, ...]], ...]
    more: int
    bounds: tuple[str, ...]


def shown(found: HeatMap, words: Mapping[str, str]) -> ShownMap:
    rows = tuple(
        (row.model, _domain(row.domain or "", words), tuple(_block(found, block) for block in row.blocks))
        for row in found.rows
    )
    columns = found.columns
    if found.of == "quality":
        columns = tuple(_domain(name, words) for name in columns)
    more = found.rows_total - len(found.rows) + found.columns_total - len(found.columns)
    return ShownMap(of=found.of, columns=columns, rows=rows, more=more, bounds=_bounds(found.of, words))


def _domain(label: str, words: Mapping[str, str]) -> str:
    return words["unknown"] if label == UNKNOWN.label else label


def _bounds(of: Of, words: Mapping[str, str]) -> tuple[str, ...]:
    names = [f"{bound * 100 if of == 'quality' else bound:.0f}" for bound in BOUNDS[of]]
    middle = (words["from_to"].format(low, high) for low, high in pairwise(names))
    return (words["below"].format(names[0]), *middle, words["and_more"].format(names[-1]))


def _block(found: HeatMap, block: Block) -> ShownBlock:
    if block.value is None:
        return ShownBlock("–" if block.reason == NOT_HELD else "?", None)
    return ShownBlock(written(found, block), step(found.of, block.value))
