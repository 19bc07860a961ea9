from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from schemas.errors import BackendError
from services.runtime.clock import SystemClock
from services.worker.backends.port import Chunk, Finish, Progress
from services.worker.watchdogs import Limits, Watch, watched

TOKEN = Chunk(text="a")
THINKING = Chunk(thinking="hm")


def failure(watch: Watch, now: float) -> str | None:
    error = watch.expired(now)
    return error.failure if error else None


def test_case_31_a_gap_of_4_s_passes_and_a_gap_of_60_s_is_a_stall() -> None:
    watch = Watch(Limits(), 0.0)
    watch.saw(TOKEN, 1.0)
    assert failure(watch, 5.0) is None
    watch.saw(TOKEN, 5.0)
    assert failure(watch, 64.9) is None
    assert failure(watch, 65.0) == "stall"


def test_case_33_ninety_seconds_of_thinking_are_progress() -> None:
    watch = Watch(Limits(), 0.0)
    for second in range(1, 91):
        assert failure(watch, float(second)) is None
        watch.saw(THINKING, float(second))
    assert failure(watch, 149.0) is None
    assert failure(watch, 150.0) == "stall"


def test_case_29_the_first_token_has_a_limit_of_its_own() -> None:
    watch = Watch(Limits(first_byte_s=300.0, stall_s=60.0), 0.0)
    assert failure(watch, 299.0) is None
    assert failure(watch, 300.0) == "timeout"


def test_progress_of_the_prompt_extends_the_wait_only_while_it_progresses() -> None:
    watch = Watch(Limits(first_byte_s=10.0), 0.0)
    watch.saw(Chunk(progress=Progress(processed=512, total=4096)), 9.0)
    assert failure(watch, 18.0) is None
    watch.saw(Chunk(progress=Progress(processed=512, total=4096)), 18.0)
    assert failure(watch, 19.0) == "timeout"


def test_a_steady_stream_ends_at_the_total_limit() -> None:
    watch = Watch(Limits(total_s=10.0), 0.0)
    watch.saw(TOKEN, 9.9)
    error = watch.expired(10.0)
    assert error is not None
    assert (error.failure, "total" in error.detail) == ("timeout", True)


async def stream(closed: list[bool], *pieces: Chunk | Finish) -> AsyncGenerator[Chunk | Finish]:
    try:
        for piece in pieces:
            yield piece
    finally:
        closed.append(True)


async def test_a_limit_that_passed_closes_the_stream_before_it_is_told() -> None:
    closed: list[bool] = []

    async def silent() -> AsyncGenerator[Chunk | Finish]:
        try:
            yield TOKEN
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    with pytest.raises(BackendError, match="stall"):
        async with aclosing(watched(silent(), Limits(stall_s=0.01), SystemClock())) as limited:
            async for piece in limited:
                assert piece == TOKEN
    assert closed == [True]


async def test_a_whole_stream_passes_unchanged() -> None:
    closed: list[bool] = []
    pieces = (TOKEN, THINKING, Finish(finish_reason="stop"))
    async with aclosing(watched(stream(closed, *pieces), Limits(), SystemClock())) as limited:
        assert tuple([piece async for piece in limited]) == pieces
    assert closed == [True]
