"""Cases 9, 10, 11 and 15: several models on machines that can keep one of them in memory.

Reported: models that push each other out by turns, a model in use that is pushed out, limits that were passed together, and a
cold fast machine taken for a fast one.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from schemas.events import AttemptFailed, TaskReleased
from services.router.dispatch.permits import Limit, Limits
from services.router.dispatch.state import RouterState
from simulation.check import check_log
from support.eventually import eventually
from support.proving import Proof
from support.stub_ollama import StubOllama
from support.stub_server import Pace
from support.told_fleets import Machine, beats, chat, chats, ids, ran, tell, told_fleet

GB = 1_000_000_000
SEVEN, SEVENTY = "seven:7b", "seventy:70b"


async def test_case_09_the_large_model_goes_where_it_fits_and_warm_is_weighed_against_fast(tmp_path: Path) -> None:
    """7B on three boxes, 70B on one, which is the fastest and must load the 7B first: worth it for a long answer only."""
    sizes = {SEVEN: 5 * GB, SEVENTY: 10 * GB}
    tower = StubOllama({SEVEN: Pace(token_s=0.002), SEVENTY: Pace(token_s=0.01)}, load_s=0.6, sizes=sizes)
    boxes = {name: StubOllama({SEVEN: Pace(token_s=0.02)}, load_s=0.6, sizes=sizes) for name in ("box", "cube")}
    machines = {"tower": Machine(tower)} | {name: Machine(box) for name, box in boxes.items()}
    async with told_fleet(tmp_path, machines) as proof:
        known = await ids(proof)
        for name, speed in (("tower", 500.0), ("box", 50.0), ("cube", 50.0)):
            await tell(proof, *ran(known[name], SEVEN, speed, domain="general", n=10, tokens=200))
        assert set(await chats(proof, 3, at_once=3, model=SEVENTY, max_tokens=5)) == {"tower"}
        for name in boxes:
            await chat(proof, model=SEVEN, max_tokens=2, headrace={"worker": name})
        await settled(proof)
        assert tower.resident == [SEVENTY]
        short, _ = await chat(proof, model=SEVEN, max_tokens=10)
        assert short in boxes, "a warm slow one is done before the cold fast one has loaded"
        await settled(proof)
        long, _ = await chat(proof, model=SEVEN, max_tokens=200)
        assert long == "tower", "four seconds on a slow one are more than a load and a fast answer"
        assert (tower.loads, tower.resident) == ([SEVENTY, SEVEN], [SEVEN])


async def test_case_10_by_turns_asked_models_are_not_loaded_by_turns(tmp_path: Path) -> None:
    """A B A B A B on one machine with one slot: what is loaded is used by whoever wants it, within bounds."""
    box = StubOllama(dict.fromkeys("ab", Pace(token_s=0.02)), load_s=0.5)
    async with told_fleet(tmp_path, {"box": Machine(box)}) as proof:
        for model in "ab":
            await chat(proof, model=model, max_tokens=5)
        await settled(proof)
        box.loads.clear()
        box.gate.clear()
        tasks = [await proof.submit(f"Part {n}", model="ab"[n % 2], max_tokens=10) for n in range(6)]
        box.gate.set()
        await proof.all_ended(tasks)
        print(f"\ncase 10: loaded {box.loads} for {box.asked[-6:]}")
        assert len(box.loads) <= 2, "one swap for the first that came, one back"
        bypasses = [e.event.bypasses for e in await proof.log() if isinstance(e.event, TaskReleased)]
        assert max(bypasses) <= 4


@pytest.mark.parametrize("boxes", [2, 3])
async def test_case_11_three_limits_together_are_never_passed_and_leave_nothing_behind(
    tmp_path: Path, boxes: int
) -> None:
    """Model 2, client 1, backend 1, and three clients that ask for six each at once. On two machines the backends are what is
    short, on three the model."""
    servers = {f"box{n}": StubOllama(dict.fromkeys("ab", Pace(token_s=0.01)), room=2) for n in range(boxes)}
    settings = "[limits.model]\ndefault = 2\n[limits.client]\ndefault = 1\n[limits.backend]\ndefault = 1\n"
    machines = {name: Machine(server, slots=3) for name, server in servers.items()}
    async with told_fleet(tmp_path, machines, settings) as proof:
        tasks = [
            await proof.submit(f"Part {n}", client=f"client-{n // 6}", model="aab"[n % 3], max_tokens=10)
            for n in range(18)
        ]
        await proof.all_ended(tasks)
        log = await proof.log()
        limits = Limits(model=Limit(2), client=Limit(1), backend=Limit(1))
        violations, counts = check_log([e.event for e in log], limits)
        assert violations == []
        assert counts["task.completed"] == 18
        most = sorted(server.most for server in servers.values())
        assert most[-2:] == [1, 1], "two at least were at work; a third may have to load what another has warm"
        state = RouterState()
        for entry in log:
            state.apply(entry.event, entry.seq, entry.at_us)
        assert state.held == {}


async def test_case_15_a_model_in_use_is_not_pushed_out_of_its_slot(tmp_path: Path) -> None:
    """Two models and one slot: the second waits in the router's queue until the first has answered."""
    box = StubOllama(dict.fromkeys("ab", Pace(token_s=0.02)), load_s=0.2)
    async with told_fleet(tmp_path, {"box": Machine(box)}) as proof:
        box.gate.clear()
        first = await proof.submit(model="a", max_tokens=5)
        await proof.until(first, "running")
        others = [await proof.submit(f"Part {n}", model="b", max_tokens=5) for n in range(3)]

        async def held() -> bool:
            rows = (await proof.http.get("/queue")).json()["tasks"]
            waiting = [row for row in rows if row["state"] == "waiting"]
            return [row["task"] for row in waiting] == others and all(row["reason"] for row in waiting)

        await eventually(held)
        box.gate.set()
        await proof.all_ended([first, *others])
        assert (box.torn, box.most) == ([], 1)
        assert [model for model, _ in groupby(box.asked)] == ["a", "b"]
        assert [e.event for e in await proof.log() if isinstance(e.event, AttemptFailed)] == []


async def settled(proof: Proof) -> None:
    """Everybody is free, and has said since then what it has in memory."""
    await proof.quiet()
    await beats(proof, 2)
