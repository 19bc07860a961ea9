"""Cases 1, 2, 6, 19, 21 and 23: who gets how much of the work, on real sockets.

Reported: the server chosen at random or in turn, a fast machine and a slow one treated as equals, a busy one taken for a broken
one, a dead preferred one never left or never taken back, requests counted too late, and a cap that several passed at once.
Makespans are printed; what is asserted are counts.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from schemas.events import AttemptFailed, TaskCompleted, TaskReleased, TaskStarted
from services.router.dispatch.permits import Limit, Limits
from simulation.check import check_log
from support.eventually import eventually
from support.history import Entry
from support.proving import MODEL, check_promises
from support.stub_ollama import StubOllama
from support.stub_server import Pace, StubServer
from support.told_fleets import Machine, chat, chats, ids, told_fleet, warmed

SERIAL_S = {"quick": 0.1, "middle": 0.3, "slow": 0.9}
BURST, AT_ONCE, BEST_OF_OTHERS_S = 60, 6, 5.4
"""The best public router measured on the same work."""


async def test_case_01_three_unequal_machines_get_unequal_shares(tmp_path: Path) -> None:
    """60 requests over 100, 300 and 900 ms at concurrency 6. By the machines' own paces their shares need less than the best of
    others took, which is 1.3 times what the ideal shares need."""
    machines = {name: Machine(StubOllama({MODEL: Pace(first_s=s, token_s=0.0)})) for name, s in SERIAL_S.items()}
    async with told_fleet(tmp_path, machines) as proof:
        warm = await warmed(proof, *machines, each=2, max_tokens=1)
        began = time.monotonic()
        taken = Counter(await chats(proof, BURST, at_once=AT_ONCE, max_tokens=1))
        took_s = time.monotonic() - began
        busy_s = {name: taken[name] * s for name, s in SERIAL_S.items()}
        print(f"\ncase 1: {dict(taken)}, busy {busy_s}, makespan {took_s:.2f} s after a warm-up of {warm}")
        assert sum(taken.values()) == BURST
        assert max(busy_s.values()) < BEST_OF_OTHERS_S


async def test_case_02_a_killed_preferred_machine_is_left_and_taken_back(tmp_path: Path) -> None:
    """It is preferred because it is ten times as fast; it dies over a running answer, and comes back."""
    gpu = StubOllama({MODEL: Pace(token_s=0.005)})
    machines = {"gpu": Machine(gpu), "cpu": Machine(StubOllama({MODEL: Pace(token_s=0.05)}))}
    async with told_fleet(tmp_path, machines) as proof:
        ask = {"max_tokens": 10}
        await warmed(proof, *machines, each=2, **ask)
        assert await chats(proof, 2, at_once=1, **ask) == ["gpu"] * 2
        gpu.gate.clear()
        running = await proof.submit(**ask)
        await proof.until(running, "running")
        await proof.kill("worker gpu")
        gpu.gate.set()
        assert [(await chat(proof, **ask))[0] for _ in range(2)] == ["cpu"] * 2
        await proof.back("worker gpu")
        assert (await proof.ended(running))["status"]["state"] == "completed"
        await proof.quiet()
        assert await chats(proof, 2, at_once=1, **ask) == ["gpu"] * 2
        log = await proof.log()
        lost = [(e.event.task, e.event.failure) for e in log if isinstance(e.event, AttemptFailed)]
        assert (running, "lost") in lost
        check_promises(log, [running])


WEIGHTED = """\
[both]
targets = [{ model = "MODEL", worker = "gpu", weight = 10 }, { model = "MODEL", worker = "cpu", weight = 1 }]
"""


async def test_case_02_of_weights_10_to_1_the_preferred_machine_is_killed_mid_run_and_preferred_again(
    tmp_path: Path,
) -> None:
    """A preference is no load: both are equally fast. Killed over a running answer, everything goes to the other one, that answer
    too; back, it has its ten of eleven again."""
    gpu = StubOllama({MODEL: Pace(token_s=0.005)})
    machines = {"gpu": Machine(gpu), "cpu": Machine(StubOllama({MODEL: Pace(token_s=0.005)}))}
    (tmp_path / "routes.toml").write_text(WEIGHTED.replace("MODEL", MODEL))
    async with told_fleet(tmp_path, machines) as proof:
        ask = {"model": "both", "max_tokens": 5}
        assert Counter(await chats(proof, 11, at_once=1, **ask)) == {"gpu": 10, "cpu": 1}
        gpu.gate.clear()
        running = await proof.submit(**ask)
        await proof.until(running, "running")
        await proof.kill("worker gpu")
        gpu.gate.set()
        assert [(await chat(proof, **ask))[0] for _ in range(3)] == ["cpu"] * 3
        ended = await proof.ended(running)
        assert (ended["status"]["state"], ended["status"]["worker"]) == ("completed", (await ids(proof))["cpu"])
        await proof.back("worker gpu")
        await proof.quiet()
        assert Counter(await chats(proof, 11, at_once=1, **ask)) == {"gpu": 10, "cpu": 1}
        check_promises(await proof.log(), [running])


async def test_case_06_a_full_backend_is_passed_over_and_not_cast_out(tmp_path: Path) -> None:
    """The better machine answers 503 "maximum pending requests" for a while. Nobody is told an error, and it stays a machine."""
    full = StubOllama({MODEL: Pace(token_s=0.005)})
    machines = {"best": Machine(full), "other": Machine(StubOllama({MODEL: Pace(token_s=0.01)}))}
    async with told_fleet(tmp_path, machines) as proof:
        await warmed(proof, *machines, each=2)
        full.busy = True
        assert await chats(proof, 3, at_once=3) == ["other"] * 3
        assert full.refused > 0, "it was asked first, and said that it is full"
        state = (await proof.workers())["best"]["state"]
        assert state not in ("silent", "backend down")
        full.busy = False
        await proof.quiet()
        assert await chats(proof, 2, at_once=1) == ["best"] * 2
        failed = [e.event for e in await proof.log() if isinstance(e.event, AttemptFailed)]
        assert {(event.failure, event.retryable) for event in failed} == {("busy", True)}


async def test_case_19_equal_machines_have_equally_many_in_flight(tmp_path: Path) -> None:
    """Lengths differ a hundredfold and nobody can know them: each of three machines has at most one more than another.

    Of two slots each. With more, a machine of three that are nearly done may be better than one of two that have just begun."""
    machines = {name: Machine(StubOllama({MODEL: Pace(token_s=0.01)}), slots=2) for name in ("a", "b", "c")}
    tokens = [2, 200, 5, 90, 2, 150, 3, 4, 120, 2, 60, 3, 180, 2, 7, 30]
    async with told_fleet(tmp_path, machines) as proof:
        await warmed(proof, *machines, max_tokens=20)
        before = len(await proof.log())
        left = list(tokens)

        async def client() -> None:
            while left:
                await chat(proof, f"Write {left.pop()}", max_tokens=200)

        await asyncio.gather(*(client() for _ in range(4)))
        spreads = spread_at_releases((await proof.log())[before:], len(machines))
        print(f"\ncase 19: most in flight less fewest, at each release: {spreads}")
        assert len(spreads) == len(tokens)
        assert max(spreads) <= 1


async def test_case_21_of_fifty_at_once_a_cap_of_one_lets_one_through(tmp_path: Path) -> None:
    server = StubServer({MODEL: Pace(token_s=0.005)})
    async with told_fleet(tmp_path, {"box": Machine(server, slots=8)}, "[limits.model]\ndefault = 1\n") as proof:
        answers = await chats(proof, 50, at_once=50, max_tokens=2)
        assert answers == ["box"] * 50
        assert server.most == 1
        violations, counts = check_log([e.event for e in await proof.log()], Limits(model=Limit(1)))
        assert violations == []
        assert counts["task.completed"] == 50


async def test_case_23_what_has_not_answered_yet_counts_from_its_dispatch(tmp_path: Path) -> None:
    """Six at once, and no machine has said a word when the last one comes: three each all the same."""
    assert await six_that_wait(tmp_path, {"a": 0.2, "b": 0.2}) == {"a": 3, "b": 3}


async def test_case_23_a_big_machine_is_not_taken_for_a_small_one(tmp_path: Path) -> None:
    """Both have room for all six and have not said a word; one is four times as fast to its first byte."""
    taken = await six_that_wait(tmp_path, {"big": 0.1, "small": 0.4})
    assert taken["big"] > taken["small"]


async def six_that_wait(folder: Path, first_s: dict[str, float]) -> dict[str, int]:
    """How many each machine has in hand of six tasks before the first byte of any answer."""
    servers = {name: StubOllama({MODEL: Pace(first_s=s)}) for name, s in first_s.items()}
    machines = {name: Machine(server, slots=6) for name, server in servers.items()}
    async with told_fleet(folder, machines) as proof:
        await warmed(proof, *machines, each=2, max_tokens=8)
        for server in servers.values():
            server.gate.clear()
        tasks = [await proof.submit(max_tokens=8) for _ in range(6)]
        await eventually(lambda: sum(server.running for server in servers.values()) == 6)
        taken = {name: server.running for name, server in servers.items()}
        print(f"\ncase 23: {taken}")
        for server in servers.values():
            server.gate.set()
        await proof.all_ended(tasks)
        return taken


def spread_at_releases(log: Iterable[Entry], machines: int) -> list[int]:
    """After each release: how many more the machine that got it has in flight than the one with the fewest."""
    at: dict[str, str] = {}
    spreads = []
    for event in (entry.event for entry in log):
        if isinstance(event, TaskReleased):
            at[event.task] = event.expected_worker or ""
            counts = Counter(at.values())
            fewest = min(counts.values()) if len(counts) == machines else 0
            spreads.append(counts[at[event.task]] - fewest)
        elif isinstance(event, TaskStarted):
            at[event.task] = event.worker
        elif isinstance(event, TaskCompleted | AttemptFailed):
            at.pop(event.task, None)
    return spreads
