"""What the router answers about statistics, as the command line gets it: JSON made by the router's own functions."""

from __future__ import annotations

from typing import Any

import msgspec

from schemas.pools import Statistics
from services.router.fleet import Fleet
from services.router.http.stats_explained import ExplainCell, explained, filter_of
from services.router.http.stats_filter import StatsFilter, resolved
from services.router.http.stats_maps import MapFilter, heat_map
from services.router.http.stats_rows import stats_page
from support.wide_stats import NOW_US

Known = tuple[Statistics, Fleet]
LATER_US = NOW_US + 40_000_000


def rows(known: Known, **wanted: Any) -> Any:
    stats, fleet = known
    page = stats_page(stats, fleet, resolved(msgspec.convert(wanted, StatsFilter), stats, fleet), LATER_US)
    return {"position": stats.position, **_sent(page)}


def maps(known: Known, **wanted: Any) -> list[Any]:
    stats, fleet = known
    asked = resolved(msgspec.convert(wanted, MapFilter), stats, fleet)
    return [_sent(heat_map(of, stats, fleet, asked)) for of in ("decode", "quality")]


def cell(known: Known, model: str, domain: str, worker: str | None = None) -> Any:
    stats, fleet = known
    asked = resolved(filter_of(ExplainCell(model=model, domain=domain, worker=worker)), stats, fleet)
    return _sent(explained(stats, fleet, asked, LATER_US))


def _sent(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))
