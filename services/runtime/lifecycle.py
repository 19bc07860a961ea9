"""A process's life: starting, ready, draining, stopped.

Answers "may I take new work, and when must I go?". The first SIGTERM or SIGINT asks to drain: finish what is in hand, take
nothing new. The second asks to stop at once. It never decides what draining means; the service does.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Literal

from schemas.errors import HeadraceError
from services.runtime.logs import configure, logger
from services.runtime.memory import settle

log = logger("lifecycle")

State = Literal["starting", "ready", "draining", "stopped"]
EXIT_FAILED = 1


class Lifecycle:
    """Made inside the event loop that it steers."""

    def __init__(self, on_ready: Callable[[], None] | None = None) -> None:
        self._on_ready = on_ready
        self.state: State = "starting"
        self.draining = asyncio.Event()
        """Set from the first request to go on."""
        self.stopped = asyncio.Event()
        """Set when it must end at once."""

    def ready(self) -> None:
        """Everything is connected; new work may come. Without effect once it has been asked to go."""
        if self.state == "starting":
            self.state = "ready"
            if self._on_ready is not None:
                self._on_ready()
            log.info("ready", action="ready")

    def drain(self, reason: str = "asked") -> None:
        """Take nothing new, finish what is in hand."""
        if self.state in ("starting", "ready"):
            self.state = "draining"
            log.info("draining", action="draining", reason=reason)
            self.draining.set()

    def stop(self, reason: str = "asked") -> None:
        """End now."""
        if self.state != "stopped":
            self.drain(reason)
            self.state = "stopped"
            log.info("stopping", action="stopping", reason=reason)
            self.stopped.set()

    async def until_draining(self) -> None:
        await self.draining.wait()

    async def unless_draining(self, work: Coroutine[Any, Any, object]) -> bool:
        """The work, to its end. False where the process must go before that: then it was cancelled."""
        doing, going = asyncio.create_task(work), asyncio.create_task(self.draining.wait())
        try:
            await asyncio.wait([doing, going], return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                doing.result()
            return doing.done()
        finally:
            for task in (doing, going):
                task.cancel()
            await asyncio.wait([doing, going])

    def signalled(self, number: signal.Signals) -> None:
        """The first signal drains, the second stops."""
        if self.draining.is_set():
            self.stop(number.name)
        else:
            self.drain(number.name)


async def supervise(main: Callable[[Lifecycle], Awaitable[None]], on_ready: Callable[[], None] | None = None) -> None:
    """Run ``main`` under signals; after a second signal it is cancelled. Its errors are raised."""
    life = Lifecycle(on_ready)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, life.signalled, number)
    work = asyncio.ensure_future(main(life))
    stop = asyncio.create_task(life.stopped.wait())
    try:
        await asyncio.wait([work, stop], return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            work.cancel()
            await asyncio.wait([work])
        if not work.cancelled():
            work.result()
    finally:
        stop.cancel()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        life.stop("ended")


def run_service(main: Callable[[Lifecycle], Awaitable[None]]) -> int:
    """The whole of a service's ``__main__``; returns the exit status. What we raise on purpose is one line, not a traceback."""
    configure()
    try:
        asyncio.run(supervise(main, settle))
    except HeadraceError as error:
        log.error("cannot go on", action="failed", error=str(error), kind=type(error).__name__)
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        return 130
    return 0
