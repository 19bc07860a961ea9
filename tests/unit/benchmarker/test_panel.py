"""Who judges: never a candidate, never one that failed, a relative only in need; and why nobody does."""

from __future__ import annotations

from typing import Any

from schemas.bias import Judge, JudgeKey
from services.benchmarker.panel import Chair, NoJudge, Panel, Seat


def seat(model: str, **fields: Any) -> Seat:
    return Seat(model=model, worker=fields.pop("worker", "w1"), resident=fields.pop("resident", True), **fields)


QWEN, LLAMA = seat("qwen3:8b"), seat("llama3.2:3b")


def record(model: str, standing: str, **fields: Any) -> dict[JudgeKey, Judge]:
    return {(model, None): Judge(model=model, standing=standing, why=f"{model}: so it is", **fields)}  # type: ignore[arg-type]


def chosen(*seats: Seat, judges: dict[JudgeKey, Judge] | None = None) -> Chair:
    found = Panel(seats=seats, judges=judges or {}).choose(QWEN, LLAMA)
    assert isinstance(found, Chair)
    return found


def refused(*seats: Seat, judges: dict[JudgeKey, Judge] | None = None) -> str:
    found = Panel(seats=seats, judges=judges or {}).choose(QWEN, LLAMA)
    assert isinstance(found, NoJudge)
    return found.why


def test_case_60_no_candidate_judges_itself_under_any_name() -> None:
    copy = seat("my-copy", digest="sha256:aa")
    assert Panel(seats=(copy,)).choose(seat("qwen3:8b", digest="sha256:aa"), LLAMA) == NoJudge(
        "the fleet holds no third model that could judge between qwen3:8b and llama3.2:3b"
    )
    assert "no third model" in refused(QWEN, LLAMA, seat("qwen3:8b", worker="w2"))


def test_the_best_stranger_judges_before_a_better_relative() -> None:
    phi, gemma = seat("phi4:14b", quality=0.6), seat("gemma3:4b", quality=0.7)
    found = chosen(seat("qwen3:32b", quality=0.9), phi, gemma)
    assert (found.seat, found.kin) == (gemma, False)


def test_case_60_where_only_a_relative_is_left_it_is_recorded() -> None:
    found = chosen(QWEN, LLAMA, seat("qwen3:32b"))
    assert (found.seat.model, found.kin, found.why) == ("qwen3:32b", True, "a relative: nobody else can judge")


def test_a_tested_judge_goes_before_a_better_one_that_was_never_tested() -> None:
    found = chosen(seat("phi4:14b", quality=0.6), seat("gemma3:4b", quality=0.7), judges=record("phi4:14b", "sound"))
    assert (found.seat.model, found.judge is not None) == ("phi4:14b", True)


def test_a_stranger_that_can_be_tested_goes_before_a_tested_relative() -> None:
    assert chosen(seat("qwen3:32b"), seat("gemma3:4b"), judges=record("qwen3:32b", "sound")).seat.model == "gemma3:4b"


def test_who_failed_the_known_pairs_is_not_asked_and_that_is_said() -> None:
    judges = record("gemma3:4b", "unsound")
    assert refused(seat("gemma3:4b"), judges=judges) == "no other model can judge: gemma3:4b: gemma3:4b: so it is"
    assert chosen(seat("gemma3:4b", digest="sha256:new"), judges=judges).judge is None  # another file is another judge


def test_what_is_in_memory_goes_before_what_must_be_loaded() -> None:
    assert chosen(seat("phi4:14b", resident=None), seat("gemma3:4b")).seat.model == "gemma3:4b"


def test_an_empty_panel_says_so() -> None:
    assert refused() == "no machine may be given unasked work now"
