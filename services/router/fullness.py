"""Is there a place in the queue for one task more, and if not, when will there be?

Answers with the numbers themselves. Pure: counts and predicted starts are handed in. It limits what may *wait*; how much may run
at once is ``dispatch.permits``. Pages and previews are never refused: only what would wait for inference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from services.router.port import Busy

UNKNOWN_S = 5.0
"""Nobody knows when the next one starts (nothing was measured, or nobody is there): a router that restarts is back by then."""
SOONEST_S = 1.0
"""HTTP knows whole seconds only, and 0 would invite a busy loop."""


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """How many tasks may wait: of all clients together, and of one."""

    total: int = 1000
    client: int = 200


class Crowd(msgspec.Struct, frozen=True, kw_only=True):
    """Who waits now, as (task, client), with what was accepted a moment ago; how many run, of all and of this client."""

    waiting: tuple[tuple[str, str], ...]
    running: int
    running_mine: int


def has_place(client: str, waiting: Sequence[tuple[str, str]], places: Places) -> bool:
    """Whether one task more of this client may wait: ``refusal`` without its words, and without knowing when the next starts."""
    return len(waiting) < places.total and sum([whose == client for _, whose in waiting]) < places.client


def refusal(client: str, crowd: Crowd, places: Places, starts: Mapping[str, float | None]) -> Busy | None:
    """429 where the client has too many itself, 503 where all together have; None where there is a place."""
    mine = [task for task, whose in crowd.waiting if whose == client]
    if len(mine) >= places.client:
        wait_s, words = _next_place(mine, starts)
        return Busy(
            f"{client} has {len(mine)} tasks waiting, its limit is {places.client} ([limits] queue_client), and "
            f"{crowd.running_mine} running; {words}",
            retry_after_s=wait_s,
            status=429,
            numbers={"waiting": len(mine), "limit": places.client, "running": crowd.running_mine},
        )
    if len(crowd.waiting) >= places.total:
        wait_s, words = _next_place((task for task, _ in crowd.waiting), starts)
        return Busy(
            f"{len(crowd.waiting)} tasks are waiting, the limit is {places.total} ([limits] queue_total), and "
            f"{crowd.running} are running; {words}",
            retry_after_s=wait_s,
            status=503,
            numbers={"waiting": len(crowd.waiting), "limit": places.total, "running": crowd.running},
        )
    return None


def _next_place(tasks: Iterable[str], starts: Mapping[str, float | None]) -> tuple[float, str]:
    """Seconds until the first of them starts, which gives its place free."""
    known = [start_s for task in tasks if (start_s := starts.get(task)) is not None]
    if not known:
        return UNKNOWN_S, "nobody can tell when the next of them starts"
    wait_s = max(SOONEST_S, min(known))
    return wait_s, f"the next of them starts in about {wait_s:.0f} s"
