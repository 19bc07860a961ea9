"""Two models, one machine: changing only the quality or only the speed flips the choice, and the words say which did it."""

from __future__ import annotations

from schemas.cells import Cell
from schemas.events import TaskRouted
from services.router.explain import compare, decision_words
from support.choosing import candidate, route, winner
from support.fleets import cell, worker

DESK = [worker("desk", "llama", "qwen3")]


def measured(*, llama_quality: float = 0.8, qwen3_decode: float = 12.0) -> list[Cell]:
    """llama is fast; qwen3 is a little better and slow."""
    return [
        cell("llama", "code", "desk", n=60, decode=60, output=300, quality=llama_quality),
        cell("qwen3", "code", "desk", n=60, decode=qwen3_decode, output=300, quality=0.85),
    ]


def other_parts(routed: TaskRouted, model: str) -> tuple[float | None, ...]:
    predicted = candidate(routed, model, "desk").predicted
    return predicted.wait_s, predicted.load_s, predicted.prefill_s, predicted.sharing_s


BEFORE = route(DESK, measured())


def test_the_fast_model_is_chosen_while_quality_does_not_outweigh_its_speed() -> None:
    assert winner(BEFORE) == ("llama", "desk")
    words = decision_words(BEFORE)
    assert words[0].startswith("llama on desk was chosen: ")
    rival = next(line for line in words if line.startswith("qwen3 on desk: "))
    assert "decode +" in rival and "higher quality -" in rival


def test_changing_only_the_quality_flips_the_choice_and_the_words_name_the_quality() -> None:
    after = route(DESK, measured(llama_quality=0.5))
    assert winner(after) == ("qwen3", "desk")
    for model in ("llama", "qwen3"):
        assert candidate(after, model, "desk").predicted == candidate(BEFORE, model, "desk").predicted
    lines = compare(BEFORE, after)
    assert "from llama on desk to qwen3 on desk. What did it: llama on desk, quality 80 → 50 of 100" in lines[0]
    assert "decode" not in " ".join(lines)
    assert any(line.startswith("llama on desk costs ") for line in lines)


def test_changing_only_the_speed_flips_the_choice_and_the_words_name_the_speed() -> None:
    after = route(DESK, measured(qwen3_decode=50.0))
    assert winner(after) == ("qwen3", "desk")
    for model in ("llama", "qwen3"):
        assert candidate(after, model, "desk").quality == candidate(BEFORE, model, "desk").quality
        assert other_parts(after, model) == other_parts(BEFORE, model)
    lines = compare(BEFORE, after)
    assert "from llama on desk to qwen3 on desk. What did it: qwen3 on desk, decode 12" in lines[0]
    assert lines[0].endswith("alone.")
    assert "quality" not in " ".join(lines)


def test_changing_only_the_slider_flips_the_choice_and_the_words_name_the_slider() -> None:
    after = route(DESK, measured(), slider=20.0)
    assert winner(after) == ("qwen3", "desk")
    lines = compare(BEFORE, after)
    assert "The slider went from 1 to 20 seconds a point of quality." in lines


def test_nothing_changed_is_one_line() -> None:
    assert compare(BEFORE, route(DESK, measured())) == ["The choice is the same, llama on desk."]
