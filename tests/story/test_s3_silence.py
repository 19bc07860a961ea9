"""S3: load averaged over the reported metrics only, so the machine that reports nothing scored best of all.

What must hold instead: silence never beats honesty.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from services.router.explain import decision_words
from support.choosing import candidate, route, winner
from support.fleets import cell, worker
from support.proving import MODEL
from support.stub_ollama import StubOllama
from support.stub_server import Pace
from support.told_fleets import Machine, candidate as row, chats, ids, preview, ran, tell, told_fleet

SPEEDS = [cell("qwen3", "code", name, decode=40, prefill=1000) for name in ("honest", "silent")]
SILENT = worker("silent", "qwen3", others_use=None, others_reason="no_agent", resident=None)


@pytest.mark.parametrize("use", [0.0, 0.3, 0.7])
def test_of_two_equal_machines_the_one_that_reports_its_load_is_chosen(use: float) -> None:
    routed = route([worker("honest", "qwen3", others_use=use), SILENT], SPEEDS)
    assert winner(routed) == ("qwen3", "honest")


def test_a_machine_that_admits_to_be_fully_used_is_not_worse_than_a_silent_one() -> None:
    routed = route([worker("honest", "qwen3", others_use=1.0), SILENT], SPEEDS)
    assert candidate(routed, "qwen3", "honest").cost_s <= candidate(routed, "qwen3", "silent").cost_s


def test_silence_is_recorded_as_unknown_and_said_in_words() -> None:
    routed = route([worker("honest", "qwen3"), SILENT], SPEEDS)
    silent = candidate(routed, "qwen3", "silent")
    assert (silent.others_use, silent.resident) == (None, None)
    assert (
        "Unknown of silent: others' use of it (no_agent), which models are loaded. Each counts as its worst case."
        in decision_words(routed)
    )


def test_a_silent_machine_still_serves_when_it_is_the_only_one_or_much_faster() -> None:
    assert winner(route([SILENT], SPEEDS)) == ("qwen3", "silent")
    fast = cell("qwen3", "code", "silent", n=200, decode=400, prefill=9000, load_s=1)
    slow = cell("qwen3", "code", "honest", n=200, decode=5, prefill=100)
    assert winner(route([worker("honest", "qwen3"), SILENT], [fast, slow])) == ("qwen3", "silent")


async def test_s3_work_goes_to_the_machine_that_admits_its_load(tmp_path: Path) -> None:
    """Both did the same at the same speed. Somebody plays a game on one and it says so; of the other nothing is known."""
    machines = {
        "honest": Machine(StubOllama({MODEL: Pace()}, loaded=[MODEL]), use=0.4),
        "mute": Machine(StubOllama({MODEL: Pace()}, loaded=[MODEL]), use=None),
    }
    async with told_fleet(tmp_path, machines) as proof:
        for worker in (await ids(proof)).values():
            await tell(proof, *ran(worker, MODEL, 100.0, domain="general", n=10))
        shown = await preview(proof, domain="general")
        honest, mute = (row(shown, name) for name in machines)
        assert (honest["others_use"], mute["others_use"]) == (0.4, None)
        assert honest["cost_s"] < mute["cost_s"], "what is unknown counts as its worst case"
        assert any("Unknown of mute" in line for line in shown["words"])
        assert await chats(proof, 4, at_once=1) == ["honest"] * 4
