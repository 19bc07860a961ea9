"""What the fold remembers for routes: how often each target was drawn, and where each session was answered last.

Answers "whose turn is it?" and "who has this conversation in memory?" from the log alone, so that a restart goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from schemas.events import TARGET_SHARE, TaskCompleted, TaskRouted

SESSIONS = 5_000
"""The latest ones; a conversation older than 5,000 others is in no machine's cache any more."""


class Draws(msgspec.Struct, kw_only=True):
    """The draws of one route among just these targets with just these shares. Others begin a new count: a target that comes
    back, or gets more weight, does not catch up on what it missed."""

    shares: dict[str, float]
    counts: dict[str, int] = {}


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """``tokens``: prompt and answer of a session's last task, which the worker has read."""

    model: str
    worker: str
    tokens: int


def count(draws: dict[str, Draws], event: TaskRouted) -> None:
    """A decision that drew a target; a retry is no decision."""
    route, target = event.policy.route, event.target
    if route is None or target is None:
        return
    shares = shares_of(event)
    known = draws.get(route)
    if known is None or known.shares != shares:
        known = draws[route] = Draws(shares=shares)
    known.counts[target] = known.counts.get(target, 0) + 1


def drawn(
    draws: Mapping[str, Draws], route: str, shares: Mapping[str, float], on_their_way: Iterable[TaskRouted]
) -> dict[str, int]:
    """The counts so far among these targets, with the decisions that the fold has not seen yet."""
    known = draws.get(route)
    counts = dict(known.counts) if known is not None and known.shares == shares else {}
    for event in on_their_way:
        if event.policy.route == route and event.target is not None and shares_of(event) == shares:
            counts[event.target] = counts.get(event.target, 0) + 1
    return counts


def shares_of(event: TaskRouted) -> dict[str, float]:
    weights = event.policy.weights.items()
    return {name.removeprefix(TARGET_SHARE): share for name, share in weights if name.startswith(TARGET_SHARE)}


def serve(sessions: dict[str, Served], event: TaskCompleted) -> None:
    """Nothing is known of a cache where the backend did not count its prompt."""
    if event.session is None:
        return
    key = session_key(event.client, event.session)
    sessions.pop(key, None)
    if event.tokens.prompt is not None:
        tokens = event.tokens.prompt + (event.tokens.output or 0)
        sessions[key] = Served(model=event.model, worker=event.worker, tokens=tokens)
    while len(sessions) > SESSIONS:
        del sessions[next(iter(sessions))]


def session_key(client: str, session: str) -> str:
    """Sessions of two clients are two, whatever they call them."""
    return f"{client}\n{session}"
