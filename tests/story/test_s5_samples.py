"""S5: a finer key began with no samples, and a "thickness of evidence" term punished the new machine for it.

What must hold instead: samples set the uncertainty, never the score; a new key starts from its parent's estimate.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.choosing import candidate, route, winner
from support.fleets import cell, worker
from support.proving import MODEL
from support.stub_ollama import StubOllama
from support.stub_server import Pace
from support.told_fleets import Machine, candidate as row, chats, ids, preview, ran, tell, told_fleet

FLEET = [worker("desk", "qwen3"), worker("laptop", "qwen3")]


def test_a_new_machine_is_not_punished_for_having_no_samples() -> None:
    """The laptop has a hundred samples and is slow. Nothing is known of the desk: it is not assumed to be slower."""
    routed = route(FLEET, [cell("qwen3", "code", "laptop", n=100, decode=9, prefill=250)])
    assert winner(routed) == ("qwen3", "desk")
    desk, laptop = candidate(routed, "qwen3", "desk"), candidate(routed, "qwen3", "laptop")
    assert (desk.decode.level, laptop.decode.n) == ("model", 100)
    assert desk.uncertainty is not None and laptop.uncertainty is not None
    assert desk.uncertainty > 4 * laptop.uncertainty


def test_three_fast_samples_beat_a_hundred_slow_ones() -> None:
    cells = [
        cell("qwen3", "code", "laptop", n=100, decode=9, prefill=250),
        cell("qwen3", "code", "desk", n=3, decode=66, prefill=1800),
    ]
    assert winner(route(FLEET, cells)) == ("qwen3", "desk")


def test_a_new_domain_starts_from_what_the_machine_does_with_the_model() -> None:
    known = [
        cell("qwen3", "code", "desk", n=30, decode=66, prefill=1800, quality=0.8),
        cell("qwen3", "code", "laptop", n=30, decode=9, prefill=250),
    ]
    routed = route(FLEET, known, domain="law")
    desk = candidate(routed, "qwen3", "desk")
    assert (desk.decode.level, desk.quality.level) == ("model_worker", "model")
    assert desk.decode.value == pytest.approx(66, rel=0.15)
    assert winner(routed) == ("qwen3", "desk")


def test_a_new_model_starts_from_the_machines_bandwidth() -> None:
    known = [
        cell("qwen3", "code", "desk", n=30, decode=66, prefill=1800),
        cell("qwen3", "code", "laptop", n=30, decode=9, prefill=250),
    ]
    routed = route([worker("desk", "qwen3", "new"), worker("laptop", "qwen3", "new")], known)
    desk, laptop = candidate(routed, "new", "desk"), candidate(routed, "new", "laptop")
    assert desk.decode.level == laptop.decode.level == "worker"
    assert desk.decode.value is not None and laptop.decode.value is not None
    assert desk.decode.value > 5 * laptop.decode.value


async def test_s5_a_new_machine_with_three_answers_is_chosen_before_an_old_slow_one(tmp_path: Path) -> None:
    """And in a domain that nobody has seen yet, where both have no sample at all."""
    machines = {name: Machine(StubOllama({MODEL: Pace(token_s=0.01)}, loaded=[MODEL])) for name in ("new", "old")}
    async with told_fleet(tmp_path, machines) as proof:
        known = await ids(proof)
        await tell(proof, *ran(known["old"], MODEL, 20.0, n=100), *ran(known["new"], MODEL, 100.0, n=3))
        shown = await preview(proof)
        new, old = row(shown, "new"), row(shown, "old")
        assert (new["decode"]["n"], old["decode"]["n"]) == (3, 100)
        assert new["uncertainty"] > old["uncertainty"], "what few samples do is shown"
        assert shown["choice"]["worker_name"] == "new"
        fresh = await preview(proof, domain="law")
        assert row(fresh, "new")["decode"]["level"] == "model_worker"
        assert row(fresh, "new")["decode"]["value"] > 2 * row(fresh, "old")["decode"]["value"]
        assert await chats(proof, 3, at_once=1, headrace={"domain": "law"}) == ["new"] * 3
