"""When may a debt be looked at again that was paid, or that nobody could pay?

Answers it by debt. Statistics need a moment to follow a payment; what nobody could pay waits twice as long each time, or until
the fleet's models change: each try asks the projector for all judges' records, and a fleet without a third model has such debts
for ever. Pure.
"""

from __future__ import annotations

from services.benchmarker.state import Fleet

Key = tuple[str, str, str, str]
"""Kind, model, domain, worker."""

REST_S, REST_MOST_S = 30.0, 3600.0
KEPT_MOST = 10_000
US = 1_000_000


class Rests:
    def __init__(self, rest_s: float = REST_S) -> None:
        self._rest_s = rest_s
        self._until_us: dict[Key, int] = {}
        self._vain: dict[Key, int] = {}
        self._facts = -1
        self._held: frozenset[tuple[str, str, str | None]] = frozenset()

    def rests(self, key: Key, now_us: int) -> bool:
        return now_us < self._until_us.get(key, 0)

    def tried(self, key: Key, now_us: int, *, asked: bool) -> None:
        """``asked`` False: nobody could be asked at all."""
        times = 0 if asked else self._vain.pop(key, 0) + 1
        self._vain.pop(key, None)
        self._until_us.pop(key, None)
        if times:
            self._vain[key] = times
        rest_s = min(self._rest_s * 2 ** min(max(times - 1, 0), 10), max(REST_MOST_S, self._rest_s))
        self._until_us[key] = now_us + int(rest_s * US)
        for kept in (self._until_us, self._vain):
            while len(kept) > KEPT_MOST:
                del kept[next(iter(kept))]

    def look(self, fleet: Fleet) -> None:
        """Another model, or another file: what nobody could pay may be payable now."""
        facts = sum(machine.seq for machine in fleet.machines.values())
        if facts == self._facts:
            return
        held = frozenset(
            (worker, info.name, info.digest)
            for worker, machine in fleet.machines.items()
            if not machine.left
            for info in machine.report.models
        )
        if held != self._held:
            for key in self._vain:
                self._until_us.pop(key, None)
            self._vain.clear()
        self._facts, self._held = facts, held
