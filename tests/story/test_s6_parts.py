"""S6: a rank moved and was read as success; the winner had not risen, the loser had been pushed down.

What must hold instead: each score ships its parts, and before and after are compared part by part.
"""

from __future__ import annotations

from pathlib import Path

from schemas.cells import Cell
from schemas.events import TaskRouted
from services.router.explain import compare
from services.router.fleet import WorkerView
from support.choosing import candidate, route, winner
from support.fleets import cell, worker
from support.proving import MODEL, Proof
from support.stub_ollama import StubOllama
from support.stub_server import Pace
from support.told_fleets import Machine, beats, ids, ran, say_use, tell, told_fleet


def fleet(**laptop: object) -> list[WorkerView]:
    return [worker("desk", "qwen3"), worker("laptop", "qwen3", **laptop)]


def speeds(desk: float, laptop: float) -> list[Cell]:
    return [cell("qwen3", "code", "desk", n=60, decode=desk), cell("qwen3", "code", "laptop", n=60, decode=laptop)]


def test_the_winner_rose_and_the_loser_was_pushed_down_look_different() -> None:
    before = route(fleet(), speeds(20, 30))
    rose = route(fleet(), speeds(60, 30))
    pushed = route(fleet(others_use=0.6), speeds(20, 30))
    assert winner(before) == ("qwen3", "laptop")
    assert winner(rose) == winner(pushed) == ("qwen3", "desk")

    first = compare(before, rose)
    assert "What did it: qwen3 on desk, decode 20 → 60 tokens/s" in first[0]
    assert any(line.startswith("qwen3 on desk costs ") and " less: " in line for line in first)

    second = compare(before, pushed)
    assert "What did it: qwen3 on laptop, others' use 0 % → 60 %" in second[0]
    assert any(line.startswith("qwen3 on laptop costs ") and " more: " in line for line in second)
    assert not any(line.startswith("qwen3 on desk") for line in second), "its cost did not change at all"


def test_a_cost_never_moves_because_of_another_candidate() -> None:
    before = route(fleet(), speeds(20, 30))
    bad = worker("ancient", "qwen3", wait_s=3000.0)
    after = route([*fleet(), bad], speeds(20, 30))
    for name in ("desk", "laptop"):
        assert candidate(before, "qwen3", name) == candidate(after, "qwen3", name)
    lines = compare(before, after)
    assert lines[0] == "The choice is the same, qwen3 on laptop."
    assert len(lines) == 2 and lines[1].startswith("qwen3 on ancient is in, at a cost of")


def test_who_dropped_out_is_told_with_the_reason() -> None:
    before = route(fleet(), speeds(20, 30))
    after = route(fleet(draining=True), speeds(20, 30))
    assert compare(before, after) == [
        "The choice went from qwen3 on laptop to qwen3 on desk.",
        "qwen3 on laptop is out: draining: takes no new work.",
    ]


async def decided(proof: Proof, what: str) -> TaskRouted:
    """A real task's decision. Each asks for something else: the same again would be a word against the answer before."""
    task = await proof.submit(f"Sort a {what}.", domain="code")
    await proof.ended(task)
    return (await proof.said(TaskRouted, task))[0][1]


async def test_s6_two_moves_of_one_rank_read_differently(tmp_path: Path) -> None:
    """The desk comes first twice: once because somebody plays on the laptop, and once because it became faster itself."""
    machines = {name: Machine(StubOllama({MODEL: Pace()}, loaded=[MODEL])) for name in ("desk", "laptop")}
    async with told_fleet(tmp_path, machines) as proof:
        known = await ids(proof)
        names = {worker: name for name, worker in known.items()}
        await tell(proof, *ran(known["desk"], MODEL, 40.0, n=60), *ran(known["laptop"], MODEL, 60.0, n=60))
        before = await decided(proof, "list")
        say_use(tmp_path, "laptop", 0.6)
        await beats(proof, 2)
        pushed = await decided(proof, "heap")
        say_use(tmp_path, "laptop", 0.0)
        await tell(proof, *ran(known["desk"], MODEL, 200.0, n=60))
        rose = await decided(proof, "deck")

        assert [names[w] for w in (winner(before)[1], winner(pushed)[1], winner(rose)[1]) if w] == [
            "laptop",
            "desk",
            "desk",
        ]
        by_push, by_rise = compare(before, pushed, names), compare(before, rose, names)
        assert "What did it: stub on laptop" in by_push[0] and "others' use 0 % → 60 %" in by_push[0]
        assert any(line.startswith("stub on laptop costs ") and " more: " in line for line in by_push)
        assert not any(line.startswith("stub on desk costs") for line in by_push)
        assert "What did it: stub on desk" in by_rise[0] and "decode" in by_rise[0]
        assert any(line.startswith("stub on desk costs ") and " less: " in line for line in by_rise)
        assert not any(line.startswith("stub on laptop costs") for line in by_rise)
