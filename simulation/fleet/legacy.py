"""The formula that this project was asked to leave behind: 0.4·speed + 0.4·domain + 0.2·load.

As published, its evidence is keyed by (model, domain) alone, so a slow machine's answers count for a fast one; a machine that
reports no load scores 1.0 for it; and it looks at what machines say of themselves, not at what was sent there. Mended, evidence
belongs to the machine, silence earns nothing, and load is what was sent and has not come back.
"""

from __future__ import annotations

from services.router.policy.legacy import legacy_score
from simulation.fleet.outcome import Done
from simulation.fleet.physics import Job
from simulation.fleet.rival_world import Rule, Seat, World

FAST_TOKENS_S = 100.0
"""Decode rates are scaled to this bound and cut off there."""
IDLE_USE, BUSY_USE = 0.05, 0.9
"""What a machine that reports its use reports, idle and at work."""
UNKNOWN = 0.5


class LegacyAsPublished(Rule):
    name = "legacy_as_published"

    def __init__(self) -> None:
        self._rates: dict[tuple[str, ...], list[float]] = {}

    def place(self, job: Job, world: World) -> str | None:
        return max(world.alive(), key=lambda seat: (self._score(job, seat), seat.machine.name)).machine.name

    def ended(self, job: Job, done: Done, world: World) -> None:
        rate = job.output / (done.end - done.start)
        self._rates.setdefault(self.key(done.model, done.domain, done.machine), []).append(rate)

    def key(self, model: str, domain: str, machine: str) -> tuple[str, ...]:
        return model, domain

    def load(self, seat: Seat) -> float:
        if not seat.machine.reports:
            return 1.0
        return 1.0 - (IDLE_USE if seat.job is None else BUSY_USE)

    def _score(self, job: Job, seat: Seat) -> float:
        seen = self._rates.get(self.key(job.model or "", job.domain, seat.machine.name), [])
        speed = min(sum(seen) / len(seen) / FAST_TOKENS_S, 1.0) if seen else UNKNOWN
        success = 1.0 if seen else UNKNOWN
        return legacy_score(speed, success, self.load(seat))


class LegacyMended(LegacyAsPublished):
    """An unmeasured machine gets the fleet's mean instead of a penalty, so that the loop can open."""

    name = "legacy_mended"

    def key(self, model: str, domain: str, machine: str) -> tuple[str, ...]:
        return model, machine

    def load(self, seat: Seat) -> float:
        return 1.0 / (1 + seat.in_flight)

    def _score(self, job: Job, seat: Seat) -> float:
        seen = self._rates.get(self.key(job.model or "", job.domain, seat.machine.name), [])
        everything = [rate for rates in self._rates.values() for rate in rates]
        evidence = seen or everything
        speed = min(sum(evidence) / len(evidence) / FAST_TOKENS_S, 1.0) if evidence else UNKNOWN
        return legacy_score(speed, 1.0, self.load(seat))
