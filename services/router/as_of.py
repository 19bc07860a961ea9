"""How things stood earlier: the statistics and the machines of the log up to a position, asked of the projector.

Answers "what could a decision know then?". It reads; it decides nothing. The projector folds ``samples`` up to the position;
the reports in force are read from the log by their sequences.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from schemas.codec import UnknownEvent, decode
from schemas.errors import BusError, HeadraceError
from schemas.statistics import Cell, Statistics
from schemas.subjects import PROJECTOR_AS_OF
from services.router.dispatch.state import RouterState
from services.router.recompute import Workers
from services.runtime.bus import Bus

ANSWER_S = 30.0
"""A page of cells over a million samples takes ten seconds; the projector answers between two batches."""


class Then(NamedTuple):
    """``stats.position`` is the position itself."""

    stats: Statistics
    workers: Workers


class _Page(msgspec.Struct):
    position: int = 0
    cells: list[Cell] = []
    reports: list[int] = []
    after: int = 0
    more: bool = False
    error: str | None = None


async def as_of(bus: Bus, *, position: int | None = None, at_us: int | None = None, folded: int | None = None) -> Then:
    """By position, or by time. Raises HeadraceError where the projector cannot say: it does not answer, has not folded so far,
    or the log begins later."""
    asked: dict[str, Any] = {"position": position, "at_us": at_us, "folded": folded}
    page = await _ask(bus, asked)
    stats, reports = Statistics(page.cells), page.reports
    while page.more:
        page = await _ask(bus, {"position": page.position, "after": page.after})
        for cell in page.cells:
            stats.put(cell)
    stats.position = page.position
    return Then(stats, await _workers(bus, reports))


async def _ask(bus: Bus, asked: dict[str, Any]) -> _Page:
    try:
        page = msgspec.json.decode(
            await bus.request(PROJECTOR_AS_OF, msgspec.json.encode(asked), timeout_s=ANSWER_S), type=_Page
        )
    except (BusError, msgspec.DecodeError) as error:
        raise HeadraceError(
            f"the projector does not say how things stood then ({error}); see with `headrace doctor` whether one runs"
        ) from error
    if page.error is not None:
        raise HeadraceError(f"how things stood then cannot be said: {page.error}")
    return page


async def _workers(bus: Bus, reports: list[int]) -> Workers:
    state = RouterState()
    for seq in sorted(reports):
        stored = await bus.stored("EVENTS", seq)
        event = decode(stored.data) if stored is not None else None
        if stored is None or event is None or isinstance(event, UnknownEvent):
            raise HeadraceError(f"the report at {seq} cannot be read from EVENTS any more; was it archived?")
        state.apply(event, seq, stored.at_us)
    return state.workers
