"""S4: a row with speed but no quality fell back as a whole row, and was punished for the half that it had.

What must hold instead: each field falls back on its own.
"""

from __future__ import annotations

from pathlib import Path

from support.choosing import candidate, route, winner
from support.fleets import cell, worker
from support.proving import MODEL
from support.stub_ollama import StubOllama
from support.stub_server import Pace
from support.told_fleets import Machine, candidate as row, chats, ids, judged, preview, ran, tell, told_fleet

FLEET = [worker("desk", "qwen3"), worker("laptop", "qwen3")]
JUDGED = cell("qwen3", "code", "laptop", decode=10, prefill=300, quality=0.8)


def test_a_machine_with_speed_but_no_judgement_keeps_its_speed_and_takes_its_models_quality() -> None:
    fast = cell("qwen3", "code", "desk", decode=70, prefill=2000)
    routed = route(FLEET, [JUDGED, fast])
    desk, laptop = candidate(routed, "qwen3", "desk"), candidate(routed, "qwen3", "laptop")
    assert (desk.decode.level, desk.decode.n) == ("cell", 10)
    assert (desk.quality.level, desk.quality.n) == ("model_domain", 10)
    assert desk.quality.value is not None and laptop.quality.value is not None
    assert abs(desk.quality.value - laptop.quality.value) < 0.05
    assert winner(routed) == ("qwen3", "desk")


def test_a_machine_with_quality_but_no_speed_keeps_its_quality() -> None:
    routed = route(FLEET, [JUDGED, cell("qwen3", "code", "desk", quality=0.8)])
    desk = candidate(routed, "qwen3", "desk")
    assert (desk.quality.level, desk.quality.n) == ("cell", 10)
    assert desk.decode.level == "model"


def test_decode_without_prefill_and_prefill_without_decode_fall_back_apart() -> None:
    cells = [cell("qwen3", "code", "desk", decode=70), cell("qwen3", "general", "desk", prefill=2000)]
    desk = candidate(route(FLEET, cells), "qwen3", "desk")
    assert (desk.decode.level, desk.prefill.level, desk.load.level) == ("cell", "model_worker", "prior")


async def test_s4_a_fast_machine_that_nobody_judged_is_used_for_its_speed(tmp_path: Path) -> None:
    """The laptop was judged, and is slow. The desk is fast, and no judgement was ever made of an answer of its own."""
    machines = {name: Machine(StubOllama({MODEL: Pace(token_s=0.01)}, loaded=[MODEL])) for name in ("desk", "laptop")}
    async with told_fleet(tmp_path, machines) as proof:
        known = await ids(proof)
        laptop = ran(known["laptop"], MODEL, 10.0, n=20) + judged(MODEL, 0.8, worker=known["laptop"], n=20)
        await tell(proof, *laptop, *ran(known["desk"], MODEL, 100.0, n=20))
        shown = await preview(proof)
        desk = row(shown, "desk")
        assert (desk["decode"]["level"], desk["decode"]["n"]) == ("cell", 20), "it keeps the half that it has"
        assert (desk["quality"]["level"], desk["quality"]["n"]) == ("model_domain", 20)
        assert shown["choice"]["worker_name"] == "desk"
        assert await chats(proof, 3, at_once=1, headrace={"domain": "code"}) == ["desk"] * 3
