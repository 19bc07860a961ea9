"""S4: a row with speed but no quality fell back as a whole row, and was punished for the half that it had.

What must hold instead: each field falls back on its own.
"""

from __future__ import annotations

from support.choosing import candidate, route, winner
from support.fleets import cell, worker

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
