"""S2: the benchmark measured only the scorer's winner, so the fast machine never got data and never became the winner.

What must hold instead: every holder of a model is measured, whoever would win.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.bench_world import World
from support.eventually import eventually
from support.proving import MODEL
from support.stub_ollama import StubOllama
from support.stub_server import Pace
from support.told_fleets import (
    Machine,
    beats,
    candidate as row,
    chats,
    ids,
    known,
    measuring,
    preview,
    probed,
    ran,
    tell,
    told_fleet,
)

QUICK = "[benchmarker]\nidle_s = 0.5\nprobe_tokens = 16\n"


@pytest.mark.parametrize("winner_tokens_s", [1.0, 10.0, 100.0, 1000.0])
def test_a_holder_is_owed_its_probe_whatever_the_others_have_shown(winner_tokens_s: float) -> None:
    world = World()
    world.join("old", "m")
    world.ran("old", decode=winner_tokens_s, times=100)
    world.join("new", "m")
    world.join("newer", "m")
    assert [debt.worker for debt in world.debts() if debt.free] == ["new", "newer"]


def test_a_model_that_was_never_chosen_is_judged_where_people_ask() -> None:
    world = World()
    world.join("desk", "chosen", "other")
    world.ran("desk", "chosen", "code", times=20)
    world.judged("chosen", "code", 0.9, times=3)
    assert [model for model, _, _, reason in world.owed("quality") if reason == "unjudged"] == ["other"]


async def test_s2_the_fast_machine_is_measured_although_the_other_would_win_and_then_it_wins(tmp_path: Path) -> None:
    """The old one has a hundred answers that look better than what anybody would expect of an unknown machine."""
    machines = {
        "old": Machine(StubOllama({MODEL: Pace(token_s=0.02)}, loaded=[MODEL])),
        "new": Machine(StubOllama({MODEL: Pace(token_s=0.001)}, loaded=[MODEL])),
    }
    async with told_fleet(tmp_path, machines, QUICK) as proof:
        await tell(proof, *ran((await ids(proof))["old"], MODEL, 150.0, domain="general", n=100))
        assert row(await preview(proof, domain="general"), "new")["decode"]["n"] != 1
        await measuring(proof, tmp_path)
        assert len(await eventually(lambda: probed(proof, "new"), every_s=0.2)) == 1
        await known(proof)
        await beats(proof, 2)
        shown = await preview(proof, domain="general")
        new, old = row(shown, "new")["decode"], row(shown, "old")["decode"]
        assert (new["level"], new["n"]) == ("cell", 1)
        assert new["value"] > old["value"]
        assert await chats(proof, 3, at_once=1, max_tokens=60, headrace={"domain": "general"}) == ["new"] * 3
