"""Case 48: heartbeats that jitter, a machine that pauses and comes back, twenty machines. Nothing flaps, nothing runs twice.

Reported: machines silent for ever, machines that flap, and each flap rescheduling everything. Here three clocks stand between a
late word and a task: 6 s without one and a machine gets no new work, 15 s and it is shown as silent, 30 s and what it *runs* is
given up. Its waiting neighbours' tasks are nobody's lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import simulation.world
from schemas.events import AttemptFailed, Credit, TaskStarted
from schemas.statistics import Statistics
from services.router.dispatch.heard import PULSE_S
from services.router.dispatch.live import FRESH_S, LEASE_S
from services.router.dispatch.permits import UNLIMITED
from services.router.view import fleet_of
from simulation.router import Router
from simulation.worker import Worker
from simulation.world import World
from support.eventually import eventually
from support.proving import Proof, check_promises, losses, passed, stub_fleet
from support.stub_server import Pace

MACHINES = 20
LATE_S = 4.0
"""How late a credit may come: nearly a heartbeat's interval, so that words of one machine overtake each other all the time."""


class Jittery(World):
    """Twenty machines with long runs, whose words come late or not at all. ``naps``: machine -> (from, seconds).

    ``turns`` are the moments at which a machine's ``alive`` changed after its first word, ``gaps`` its longest silence,
    ``silences`` those long enough to be shown. A machine that did not start what was meant for it is passed over until its
    next word; that is no silence."""

    def __init__(self, seed: int, naps: dict[str, tuple[float, float]]) -> None:
        super().__init__(seed, tasks=60)
        self.naps = naps
        self.router = Router(self, "r1", UNLIMITED)
        self.routers = [self.router]
        self.workers = {f"w{n:02d}": Worker(self, f"w{n:02d}", ("m1", "m2", "m3"), 1, 30.0) for n in range(MACHINES)}
        self.last: dict[str, float] = {}
        self.gaps: dict[str, float] = {}
        self.silences: dict[str, list[float]] = {name: [] for name in self.workers}
        self.turns: dict[str, list[float]] = {name: [] for name in self.workers}
        self.alive: dict[str, bool] = {}

    def broadcast_credit(self, credit: Credit) -> None:
        if not self.kernel.lost(0.05):
            self.kernel.after(self.random.random() * LATE_S, None, self._arrive, credit)

    def _arrive(self, credit: Credit) -> None:
        silence = self._silence(credit.worker)
        self.gaps[credit.worker] = max(self.gaps.get(credit.worker, 0.0), silence)
        if silence > FRESH_S:
            self.silences[credit.worker].append(silence)
        self.last[credit.worker] = self.kernel.now
        self.router.hear(credit)

    def _silence(self, worker: str) -> float:
        return self.kernel.now - self.last.get(worker, self.kernel.now)

    def _plan_faults(self) -> None:
        for name, (start, seconds) in self.naps.items():
            self.kernel.after(start, None, self.kernel.pause, self.workers[name].process)
            self.kernel.after(start + seconds, None, self.kernel.resume, self.workers[name].process)
        self.kernel.after(PULSE_S, None, self._look)

    def _look(self) -> None:
        router = self.router
        for name, view in fleet_of(router.state, router.live, Statistics(), router.clock.seconds, 0).workers.items():
            if name in self.last:
                alive = view.alive or router.live.workers[name].suspect
                if self.alive.setdefault(name, alive) != alive:
                    self.alive[name] = alive
                    self.turns[name].append(self.kernel.now)
        self.kernel.after(4 * PULSE_S, None, self._look)

    def lost(self) -> set[str]:
        """The machines that something running was taken from."""
        events = [event for _, event, _ in self.server.events]
        started = {(e.task, e.attempt) for e in events if isinstance(e, TaskStarted)}
        failed = [e for e in events if isinstance(e, AttemptFailed) and (e.task, e.attempt) in started]
        return {str(event.worker) for event in failed if event.failure == "lost"}


@pytest.fixture(autouse=True)
def no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report checks permits by the simulator's own limits; here there are none."""
    monkeypatch.setattr(simulation.world, "LIMITS", (UNLIMITED,))


def ran(world: Jittery) -> None:
    report = world.run()
    assert report.violations == []
    assert len(world.acked) == world.tasks
    assert set(world.runs.values()) == {1}


@pytest.mark.parametrize("seed", range(3))
def test_case_48_jittered_beats_of_twenty_machines_make_nobody_flap(seed: int) -> None:
    world = Jittery(seed, {})
    ran(world)
    assert max(world.gaps.values()) > 6.0, "there were words that came too late to release on"
    steady = [name for name, gap in world.gaps.items() if gap <= FRESH_S]
    assert len(steady) >= MACHINES - 2
    assert {name: world.turns[name] for name in steady} == {name: [] for name in steady}
    assert world.lost() == set()


@pytest.mark.parametrize("seed", range(3))
def test_case_48_a_pause_takes_nothing_from_a_machine_and_nothing_from_the_others(seed: int) -> None:
    """Shorter than its lease: what ran goes on. It is shown as silent and back once for each silence, and the others never
    notice."""
    naps = {"w00": (15.0, 12.0), "w01": (15.0, 18.0), "w02": (20.0, 18.0)}
    world = Jittery(seed, naps)
    ran(world)
    assert world.lost() == set()
    assert all(world.gaps[name] < LEASE_S for name in naps)
    for name in ("w01", "w02"):
        sure = sum(silence > FRESH_S + 4 * PULSE_S for silence in world.silences[name])
        assert sure >= 1 and 2 * sure <= len(world.turns[name]) <= 2 * len(world.silences[name])
    assert len(world.turns["w00"]) <= 2
    calm = [name for name, gap in world.gaps.items() if name not in naps and gap <= FRESH_S]
    assert len(calm) >= MACHINES - len(naps) - 2
    assert not any(world.turns[name] for name in calm)


@pytest.mark.parametrize("seed", range(3))
def test_case_48_a_machine_silent_for_longer_than_its_lease_loses_its_own_run_only(seed: int) -> None:
    world = Jittery(seed, {"w00": (12.0, 50.0)})
    ran(world)
    assert world.lost() == {"w00"}
    assert len(world.turns["w00"]) == 2, "silent for as long as it is, and not for ever"


# -- real processes --------------------------------------------------------------------------------------------------------


@contextmanager
def stuttering(proof: Proof, part: str, *, stopped_s: float, running_s: float) -> Iterator[None]:
    """The process stands still again and again: its words come late and in heaps."""

    async def stutter() -> None:
        while True:
            with proof.frozen(part):
                await passed(stopped_s)
            await passed(running_s)

    task = asyncio.create_task(stutter())
    try:
        yield
    finally:
        task.cancel()


async def test_case_48_a_real_worker_that_stutters_and_pauses_keeps_its_run_and_its_place(tmp_path: Path) -> None:
    """Stopped for 0.9 s of each 1.1 s, then for 7 s at a stretch, with a run of its own and tasks that go elsewhere."""
    async with stub_fleet(tmp_path, {"calm": Pace(token_s=0.01), "jumpy": Pace(token_s=0.1)}) as (proof, servers):
        states: list[str] = []
        long = await proof.submit(max_tokens=80, worker="jumpy")
        await proof.until(long, "running")
        others: list[str] = []

        async def look() -> bool:
            states.append((await proof.workers())["jumpy"]["state"])
            others.append(await proof.submit(max_tokens=8))
            await proof.ended(others[-1])
            return len(states) >= 8

        with stuttering(proof, "worker jumpy", stopped_s=0.9, running_s=0.2):
            await eventually(look, every_s=0.25)
        with proof.frozen("worker jumpy"):
            await passed(7.0)
            states.append((await proof.workers())["jumpy"]["state"])
        assert (await proof.ended(long))["worker_name"] == "jumpy"
        assert set(states) == {"ready"}
        log = await proof.log()
        assert losses(log) == []
        check_promises(log, [long, *others])
        assert servers["jumpy"].most == 1
