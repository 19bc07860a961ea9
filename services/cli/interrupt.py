"""Ctrl-C for something that has to be taken down in order.

Answers "what does the first, what does the second signal do?". The first cancels the work, whose own clean-up then runs whole;
the second kills this process's children, so that the clean-up has nothing left to wait for.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import psutil

T = TypeVar("T")


async def until_signal(work: Coroutine[Any, Any, T]) -> T | None:
    """The work's result, or None when SIGINT or SIGTERM ended it."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    signals: list[int] = []

    def on_signal(number: int) -> None:
        signals.append(number)
        if len(signals) == 1:
            task.cancel()
        else:
            kill_children()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
    try:
        return await task
    except asyncio.CancelledError:
        if signals:
            return None
        raise
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def kill_children() -> None:
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            child.kill()
