"""services.router.compare: who takes part, who judges, what it cost."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.bias import Judge, by_key
from schemas.errors import UnknownModel
from schemas.events import Times, Tokens, Wants
from schemas.statistics import Statistics
from schemas.work import Answer
from services.router import compare
from services.router.compare import eligible, referee, sides, spent
from services.router.fleet import Fleet
from services.router.policy.request import RouteRequest
from services.router.port import TaskStatus
from support.fleets import fleet, model, worker

ASKED = RouteRequest(prompt_tokens=100, max_tokens=50)


def who(
    house: Fleet, asked: RouteRequest = ASKED, **only: Any
) -> tuple[set[tuple[str, str]], dict[tuple[str, str], str]]:
    found = eligible(asked, house, Statistics(), slider=1.0, now_us=0, **only)
    kept = {(c.model, c.worker) for c in found.candidates}
    return kept, {(r.model, r.worker or ""): r.reason.partition(":")[0] for r in found.removed}


def test_every_pair_that_could_answer_takes_part_however_slow_or_bad() -> None:
    kept, removed = who(fleet(worker("a", "m1", "m2"), worker("b", "m1", wait_s=900.0, free=0)))
    assert kept == {("m1", "a"), ("m2", "a"), ("m1", "b")} and removed == {}


def test_who_may_not_answer_now_is_named_with_the_reason_even_where_that_is_everybody() -> None:
    house = fleet(
        worker("paused", "m1", paused=True), worker("silent", "m1", alive=False), worker("leaving", "m1", draining=True),
        worker("small", model("m1", context=64)), worker("weak", model("m1", capability="gpu_inference")),
        worker("vectors", model("embed", capability="embedding")),
    )  # fmt: skip
    kept, removed = who(house)
    assert kept == set()
    assert {name: reason for (_, name), reason in removed.items()} == {
        "paused": "paused", "silent": "silent", "leaving": "draining", "small": "room", "weak": "capability",
        "vectors": "kind",
    }  # fmt: skip


def test_a_chosen_few_are_found_by_any_name_and_an_unknown_one_is_refused() -> None:
    house = fleet(worker("a", model("m1", aliases=("mistral:7b",)), "m2"), worker("b", "m1"))
    assert who(house, models=["mistral:7b"], workers=["a"]) == ({("m1", "a")}, {})
    with pytest.raises(UnknownModel):
        who(house, models=["m3"])


def test_another_file_under_the_name_takes_part_too_because_its_machine_is_named() -> None:
    house = fleet(
        *(worker(name, model("m1", digest=digest)) for name, digest in (("a", "d1"), ("b", "d1"), ("c", "d2")))
    )
    assert who(house)[0] == {("m1", "a"), ("m1", "b"), ("m1", "c")}


def test_what_the_client_insists_on_holds_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = RouteRequest(prompt_tokens=100, wants=Wants(context=4096))
    house = fleet(worker("a", model("m1", context=8192)), worker("b", model("m1", context=2048)))
    assert who(house, asked) == ({("m1", "a")}, {("m1", "b"): "context"})
    monkeypatch.setattr(compare, "ENTRIES_MOST", 1)
    kept, removed = who(fleet(worker("a", "m1"), worker("b", "m1")))
    assert len(kept) == 1 and list(removed.values()) == ["room"]


def judged_by(house: Fleet, *models: str, records: tuple[Judge, ...] = (), wanted: str | None = None) -> str | None:
    found = referee(house, Statistics(), by_key(records), models, "general", wanted=wanted, now_us=0)
    return found.model if found is not None else None


def test_the_judge_is_neither_of_the_two_and_a_stranger_before_a_relative_however_large() -> None:
    house = fleet(worker("a", "qwen3:8b", "llama3:8b", model("qwen3:70b", bytes=10**12), model("gemma3:4b", bytes=1)))
    assert judged_by(house, "qwen3:8b", "llama3:8b") == "gemma3:4b"
    assert judged_by(fleet(worker("a", "qwen3:8b", "llama3:8b", "qwen3:70b")), "qwen3:8b", "llama3:8b") == "qwen3:70b"
    assert judged_by(fleet(worker("a", "qwen3:8b", "llama3:8b")), "qwen3:8b", "llama3:8b") is None


def test_a_tested_judge_goes_before_an_untested_one_and_a_failed_one_never_sits_unless_it_is_named() -> None:
    house = fleet(worker("a", "qwen3", "llama3", model("gemma3", bytes=1), model("phi4", bytes=10**12)))
    sound, bad = (
        Judge(model="gemma3", digest=None, standing="sound"),
        Judge(model="phi4", digest=None, standing="unsound"),
    )
    assert judged_by(house, "qwen3", "llama3", records=(sound,)) == "gemma3"
    assert judged_by(house, "qwen3", "llama3", records=(bad,)) == "gemma3"
    assert judged_by(house, "qwen3", "llama3", records=(bad,), wanted="phi4") == "phi4"


def test_a_silent_or_paused_machine_lends_no_judge() -> None:
    house = fleet(worker("a", "qwen3", "llama3"), worker("b", "gemma3", paused=True), worker("c", "phi4", alive=False))
    assert judged_by(house, "qwen3", "llama3") is None


def test_of_each_two_models_one_answer_each_is_judged_and_an_empty_one_never() -> None:
    said = [("t1", "m1", " \n"), ("t2", "m1", "one"), ("t3", "m1", "uno"), ("t4", "m2", "two"), ("t5", "m3", "three")]
    answers = {task: Answer(task=task, attempt=1, model=name, worker="w", text=text) for task, name, text in said}
    pairs = sides(answers, {"t2": "d2"})
    assert [(own.task, peer.task) for own, peer in pairs] == [("t2", "t4"), ("t2", "t5"), ("t4", "t5")]
    assert (pairs[0][0].digest, pairs[0][0].chars) == ("d2", 3)


def test_what_an_answer_took_counts_its_wait_and_is_priced_at_the_predicted_quality() -> None:
    (candidate,) = eligible(ASKED, fleet(worker("a", "m1")), Statistics(), slider=1.0, now_us=0).candidates
    status = TaskStatus(
        task="t", state="completed", waited_s=2.0, tokens=Tokens(output=30), times=Times(decode_s=1.5, total_s=3.0)
    )
    found = spent(status, candidate)
    assert found is not None and candidate.predicted.total_s is not None
    assert (found.took_s, found.tokens_per_s, found.load_s) == (5.0, 20.0, None)
    assert found.cost_s == pytest.approx(candidate.cost_s + 5.0 - candidate.predicted.total_s)
    assert spent(TaskStatus(task="t", state="failed"), candidate) is None
    unknown = spent(TaskStatus(task="t", state="completed"), None)
    assert unknown is not None and (unknown.took_s, unknown.cost_s, unknown.tokens_per_s) == (None, None, None)
