"""S1: statistics were keyed (model, domain), so a slow laptop made its model look slow everywhere: 7.3 times.

What must hold instead: the worker is part of the key, from the fact to the choice.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas import events
from schemas.statistics import Sample, fold, key_of, sample_of
from support.builders import build
from support.choosing import candidate, route, winner
from support.fleets import NOW_US, cell, worker
from support.proving import MODEL
from support.stub_ollama import StubOllama
from support.stub_server import Pace
from support.told_fleets import Machine, candidate as row, chats, preview, told_fleet, warmed

FLEET = [worker("desk", "qwen3", "gemma"), worker("laptop", "qwen3", "gemma")]
DESK = cell("qwen3", "code", "desk", n=30, decode=66, prefill=1800)


def test_answers_of_two_machines_never_share_a_cell() -> None:
    samples = [sample(seq, name, decode_s) for seq, (name, decode_s) in enumerate([("desk", 1.0), ("laptop", 7.3)], 1)]
    assert len({key_of(each) for each in samples}) == 2
    routed = route(FLEET, [fold([each]) for each in samples])
    desk, laptop = candidate(routed, "qwen3", "desk").decode, candidate(routed, "qwen3", "laptop").decode
    assert (desk.level, desk.n, laptop.level, laptop.n) == ("cell", 1, "cell", 1)
    assert desk.value is not None and laptop.value is not None
    assert desk.value > 2 * laptop.value


def sample(seq: int, name: str, decode_s: float) -> Sample:
    tokens, times = events.Tokens(output=100), events.Times(decode_s=decode_s, source="backend")
    done = build(
        events.TaskCompleted, task=f"t{seq}", worker=name, model="qwen3", domain="code", tokens=tokens, times=times
    )
    found = sample_of(done, seq, NOW_US)
    assert found is not None
    return found


@pytest.mark.parametrize("n", [0, 3, 300])
def test_a_slow_laptop_takes_nothing_from_the_desk_or_from_their_model(n: int) -> None:
    other = [cell("gemma", "code", name, n=30, decode=30, prefill=900) for name in ("desk", "laptop")]
    laptop = [cell("qwen3", "code", "laptop", n=n, decode=9, prefill=250)] if n else []
    alone, both = route(FLEET, [DESK, *other]), route(FLEET, [DESK, *other, *laptop])
    before, after = candidate(alone, "qwen3", "desk"), candidate(both, "qwen3", "desk")
    assert (after.decode.level, after.decode.n) == ("cell", 30)
    assert after.decode.value == pytest.approx(66, rel=0.1)
    assert after.cost_s == pytest.approx(before.cost_s, rel=0.1)
    assert winner(both) == ("qwen3", "desk")


async def test_s1_the_laptops_history_does_not_slow_the_desk(tmp_path: Path) -> None:
    """Six answers by the laptop and one by the desk, of the same model and domain; then work that may go to either."""
    machines = {
        "desk": Machine(StubOllama({MODEL: Pace(token_s=0.002)})),
        "laptop": Machine(StubOllama({MODEL: Pace(token_s=0.02)})),
    }
    async with told_fleet(tmp_path, machines) as proof:
        ask = {"max_tokens": 20}
        await warmed(proof, "laptop", each=6, **ask)
        await warmed(proof, "desk", **ask)
        shown = await preview(proof, domain="general")
        desk, laptop = (row(shown, name)["decode"] for name in machines)
        assert (desk["level"], desk["n"], laptop["level"], laptop["n"]) == ("cell", 1, "cell", 6)
        assert desk["value"] > 3 * laptop["value"], "its own single answer counts, not its model's six slow ones"
        assert await chats(proof, 4, at_once=1, **ask) == ["desk"] * 4
