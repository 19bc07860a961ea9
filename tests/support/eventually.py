"""Wait until something holds: the only place in the tests that may sleep.

Tests wait on signals (an event, a future, a message). Where a part outside this process gives none, they ask again until the
answer holds. A deadline that passes fails with the last thing that was seen, so that a slow machine reads as a slow machine.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

T = TypeVar("T")

EVERY_S = 0.02
"""Well below what a person notices, well above what a busy two-core machine needs for one look."""
PATIENCE_S = 60.0
"""What is there comes in a second or two; on two cores with a load of 16 some of it took 20 s. Only what never comes is waited
for this long, so nothing that passes is slower for it."""


@overload
async def eventually(look: Callable[[], Awaitable[T]], *, within_s: float = ..., every_s: float = ...) -> T: ...
@overload
async def eventually(look: Callable[[], T], *, within_s: float = ..., every_s: float = ...) -> T: ...
async def eventually(
    look: Callable[[], Awaitable[T] | T], *, within_s: float = PATIENCE_S, every_s: float = EVERY_S
) -> T:
    """The first truthy answer of ``look``. An AssertionError inside ``look`` means "not yet"; other errors are raised."""
    deadline = time.monotonic() + within_s
    while True:
        seen, problem = await _look_once(look)
        if problem is None and seen:
            return seen
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {within_s:g} s; last seen: {seen!r}") from problem
        await asyncio.sleep(every_s)


def eventually_now(look: Callable[[], T], *, within_s: float = PATIENCE_S, every_s: float = EVERY_S) -> T:
    """``eventually`` for tests without an event loop."""
    deadline = time.monotonic() + within_s
    while True:
        problem: AssertionError | None = None
        seen: T | None = None
        try:
            seen = look()
        except AssertionError as error:
            problem = error
        if problem is None and seen:
            return seen
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {within_s:g} s; last seen: {seen!r}") from problem
        time.sleep(every_s)


async def _look_once(look: Callable[[], Awaitable[T] | T]) -> tuple[T | None, AssertionError | None]:
    try:
        seen = look()
        return (await seen if inspect.isawaitable(seen) else seen), None
    except AssertionError as error:
        return None, error
