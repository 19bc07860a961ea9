"""The part of the router's port that has suites run, as plain values (``port``)."""

from __future__ import annotations

from typing import Protocol

from schemas.demands import Demand, Measuring, RunShown


class BenchPort(Protocol):
    """Each asks the benchmarker. Raises HeadraceError where none answers, CannotRun or UnknownRun where it refuses."""

    async def bench(self, demand: Demand) -> RunShown:
        """Begin a run."""
        ...

    async def bench_run(self, run: str) -> RunShown:
        """How far it is."""
        ...

    async def bench_cancel(self, run: str) -> RunShown:
        """Give up what is left of it."""
        ...

    async def bench_owed(self) -> Measuring:
        """What is measured unasked, and what waits to be, with the reason."""
        ...
