"""What bench work took of each machine, and from whom: counted after the fact, without the benchmarker's own books.

Answers "did it keep to its budget, and whom did it disturb?". Moments come from the log, and what owners do with their machines
from the instance, so that a mistake in the benchmarker's view cannot hide here.
"""

from __future__ import annotations

from collections.abc import Iterator

from services.benchmarker.probing import PROMPT_TOKENS
from simulation.evidence.household import Errand, Household
from simulation.fleet.physics import MODELS, REFERENCE_GB, Machine, Span
from simulation.fleet.product import INTRODUCED_S

PROBE_TOKENS = 64
OTHERS_MOST = 0.10
EVICTS_AFTER_S = 600.0
Numbers = dict[str, float]


class Ledger:
    """Of one household that has run until ``end_s``."""

    def __init__(self, house: Household, end_s: float) -> None:
        self.house, self.end_s = house, end_s
        self.machines = {machine.name: machine for machine in house.instance.machines}
        self.errands = [errand for errand in house.errands.values() if errand.started is not None]
        self.real: dict[str, list[Span]] = {name: [] for name in self.machines}
        for done in house.done:
            self.real[done.machine].append((done.start, done.end))

    def on(self, machine: str) -> list[Errand]:
        return [errand for errand in self.errands if errand.worker == machine]

    def probes(self, machine: str) -> list[Errand]:
        return [errand for errand in self.on(machine) if errand.work.purpose == "probe"]

    def awake_s(self, machine: str) -> float:
        return self.end_s - sum(min(until, self.end_s) - since for since, until in self.naps(machine))

    def naps(self, machine: str) -> list[Span]:
        return [nap for nap in self.house.instance.naps.get(machine, ()) if nap[0] < self.end_s]

    def share(self, machine: str, *, free: bool) -> float:
        """Of its awake time, in per cent, that unasked work took. ``free`` are probes on join, wake and new model."""
        spent_s = sum(errand.busy_s for errand in self.on(machine) if errand.free == free)
        return 100.0 * spent_s / self.awake_s(machine)

    def beside_others(self, machine: str) -> Iterator[Errand]:
        """Begun while somebody else used a tenth of it or more, and the machine had told so."""
        spans = [span[:2] for span in self.house.instance.used.get(machine, ()) if span[2] >= OTHERS_MOST]
        return self._begun_in(machine, spans)

    def on_battery(self, machine: str) -> Iterator[Errand]:
        return self._begun_in(machine, list(self.house.instance.unplugged.get(machine, ())))

    def _begun_in(self, machine: str, spans: list[Span]) -> Iterator[Errand]:
        told_s = self.house.heartbeat_s + 1.0
        for errand in self.on(machine):
            at = (errand.started or 0.0) - INTRODUCED_S
            if any(since + told_s <= at < until for since, until in spans):
                yield errand

    def delays(self) -> Iterator[float]:
        """Of each real task: seconds in which it waited and bench work ran on the machine that then served it, in lengths of a
        64-token probe of the model that was there."""
        for done in self.house.done:
            for errand in self.on(done.machine):
                begun, ended = errand.started or 0.0, errand.ended or self.house.kernel.now
                waited_s = min(done.start, ended) - max(done.at, begun)
                if waited_s > 0.0:
                    yield waited_s / probe_s(self.machines[done.machine], errand.work.model)

    def driven_out(self) -> int:
        """Models that bench work drove out of the memory of a machine that a real task had used less than 10 minutes before."""
        count = 0
        for task, _ in self.house.evicted:
            errand = self.house.errands.get(task)
            if errand is not None and errand.started is not None:
                begun = errand.started
                count += any(0.0 <= begun - end < EVICTS_AFTER_S for _, end in self.real[errand.worker])
        return count

    def idle_until_probed(self, machine: str) -> Iterator[float]:
        """Of each time it woke: its seconds without a task until the first probe; all there were, where none came."""
        wakes = [until for _, until in self.naps(machine) if until < self.end_s]
        for woke, slept in zip(wakes, [*(since for since, _ in self.naps(machine)[1:]), self.end_s], strict=False):
            woke, slept = woke + INTRODUCED_S, slept + INTRODUCED_S
            starts = [e.started for e in self.probes(machine) if e.started is not None and woke <= e.started < slept]
            first = min(starts, default=slept)
            busy_s = sum(max(0.0, min(end, first) - max(begun, woke)) for begun, end in self.real[machine])
            yield first - woke - busy_s


def probe_s(machine: Machine, model: str) -> float:
    """The model loaded."""
    size = MODELS[model] / REFERENCE_GB
    return size * (PROMPT_TOKENS / machine.prefill + PROBE_TOKENS / machine.decode)
