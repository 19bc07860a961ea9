"""The part of the router's port that has suites run: it passes the demand on to the benchmarker and brings back what that says.

Answers "how far is the run?" by asking; the router itself knows of no run.
"""

from __future__ import annotations

from schemas.demands import Demand, Measuring, RunNamed, RunReply, RunShown
from schemas.errors import BusError, CannotRun, HeadraceError, UnknownRun
from schemas.subjects import BENCH_CANCEL, BENCH_OWED, BENCH_RUN, BENCH_SHOW
from schemas.work import Wire, decode_wire, encode_wire
from services.runtime.bus import Bus

ANSWER_S = 5.0
"""Answered from memory, but for a cancellation, which waits until the benchmarker has let go of its tasks."""


class Benching:
    _bus: Bus

    async def bench(self, demand: Demand) -> RunShown:
        return await ask(self._bus, BENCH_RUN, demand)

    async def bench_run(self, run: str) -> RunShown:
        return await ask(self._bus, BENCH_SHOW, RunNamed(run=run))

    async def bench_cancel(self, run: str) -> RunShown:
        return await ask(self._bus, BENCH_CANCEL, RunNamed(run=run))

    async def bench_owed(self) -> Measuring:
        return decode_wire(await _answer(self._bus, BENCH_OWED, b""), Measuring)


async def ask(bus: Bus, subject: str, message: Wire) -> RunShown:
    """Raises HeadraceError where no benchmarker answers, CannotRun or UnknownRun where one refuses."""
    reply = decode_wire(await _answer(bus, subject, encode_wire(message)), RunReply)
    if reply.shown is not None:
        return reply.shown
    if reply.code == "unknown_run":
        raise UnknownRun(reply.message)
    raise CannotRun(reply.message, reply.field)


async def _answer(bus: Bus, subject: str, data: bytes) -> bytes:
    try:
        return await bus.request(subject, data, timeout_s=ANSWER_S)
    except BusError as error:
        raise HeadraceError(
            f"no benchmarker answers ({error}); start one with `headrace benchmarker`: `headrace up` brings its own"
        ) from error
