"""The whole decision: what it chooses, records and refuses."""

from __future__ import annotations

import msgspec
import pytest

from schemas import codec
from schemas.errors import UnknownModel
from schemas.events import TaskRouted, Wants
from schemas.statistics import Statistics
from services.router.fleet import WorkerView
from services.router.policy.decide import RECORDED_CANDIDATES, RECORDED_REMOVALS, Decision, decide
from services.router.policy.request import RouteRequest
from support.fleets import NOW_US, cell, fleet, measured, model, worker

STATS = measured(
    [
        cell("qwen3", "code", "desk", decode=60, prefill=2000, quality=0.8),
        cell("qwen3", "code", "laptop", decode=8, prefill=200, quality=0.8),
    ]
)
DESK, LAPTOP = worker("desk", "qwen3"), worker("laptop", "qwen3")
STATS.position = 4711


def ask(
    *workers: WorkerView, wants: Wants | None = None, stats: Statistics = STATS, slider: float | None = None
) -> Decision:
    asks = RouteRequest(domain="code", prompt_tokens=200, wants=wants or Wants(), slider=slider)
    return decide(asks, fleet(*workers), stats, seed=3, now_us=NOW_US, slider=1.0)


def chosen(decision: Decision) -> tuple[str, str | None]:
    assert decision.choice is not None
    return decision.choice.model, decision.choice.worker


def test_the_fast_machine_is_chosen_and_the_reason_names_the_difference() -> None:
    decision = ask(DESK, LAPTOP)
    assert chosen(decision) == ("qwen3", "desk")
    assert decision.choice is not None
    assert "the least; laptop would cost" in decision.choice.reason


def test_a_quality_that_nobody_judged_is_called_a_guess_and_no_difference_is_nought() -> None:
    decision = ask(worker("desk", "qwen3"), worker("laptop", "llama3", wait_s=0.004), stats=Statistics())
    assert decision.choice is not None
    guessed, rest = (
        "at a guessed quality of 50 of 100, the least cost",
        "llama3 on laptop would cost less than 0.01 s more",
    )
    assert decision.choice.reason.endswith(f"{guessed}; {rest}")
    decision = ask(DESK, worker("laptop", "llama3"))
    assert decision.choice is not None
    assert " predicted at quality 80 of 100, " in decision.choice.reason


def test_a_busy_fast_machine_loses_as_soon_as_the_slow_one_would_be_done_earlier() -> None:
    waits = [chosen(ask(worker("desk", "qwen3", wait_s=wait), LAPTOP))[1] for wait in (0.0, 20.0, 60.0)]
    assert waits == ["desk", "desk", "laptop"]


def test_an_unknown_model_is_refused_at_once_with_the_nearest_names() -> None:
    with pytest.raises(UnknownModel) as caught:
        ask(DESK, worker("x", "llama3", "mistral"), wants=Wants(model="qwen33"))
    assert caught.value.nearest[0] == "qwen3"
    with pytest.raises(UnknownModel, match="no model yet"):
        ask(wants=Wants(model="qwen3"))


def test_a_model_whose_holders_are_all_silent_is_known_and_waits() -> None:
    decision = ask(worker("desk", "qwen3", alive=False), worker("other", "llama3"), wants=Wants(model="qwen3"))
    assert chosen(decision) == ("qwen3", "desk")
    assert decision.choice is not None
    assert decision.choice.reason == "nobody who could answer was heard lately; waits for desk"


def test_a_backends_own_name_means_the_canonical_model() -> None:
    view = worker("desk", model("qwen3", backend_name="qwen3:8b-q4", aliases=("Qwen/Qwen3-8B",)))
    for name in ("qwen3", "qwen3:latest", "qwen3:8b-q4", "qwen/qwen3-8b"):
        assert chosen(ask(view, wants=Wants(model=name))) == ("qwen3", "desk")


def test_everybody_who_cannot_answer_is_recorded_with_a_reason() -> None:
    decision = ask(
        DESK,
        worker("sleeping", "qwen3", alive=False),
        worker("other", "llama3"),
        wants=Wants(model="qwen3"),
    )
    assert [(r.worker, r.reason) for r in decision.removed] == [
        ("other", "model: does not hold it"),
        ("sleeping", "silent: was not heard lately"),
    ]


def test_a_worker_that_does_not_exist_leaves_nobody_and_says_so() -> None:
    decision = ask(DESK, wants=Wants(worker="dekstop"))
    assert decision.choice is None
    assert decision.removed[0].reason == "worker: nobody is called dekstop; nearest: desk"
    assert not ask().candidates


def test_the_requests_slider_goes_before_the_routers() -> None:
    stats = measured(
        [
            cell("small", "code", "desk", decode=100, quality=0.5),
            cell("large", "code", "desk", decode=10, quality=0.9),
        ]
    )
    view = worker("desk", "small", "large")
    assert chosen(ask(view, stats=stats, slider=0.0))[0] == "small"
    assert chosen(ask(view, stats=stats, slider=2.0))[0] == "large"
    assert ask(view, stats=stats, slider=2.0).policy.weights["slider"] == 2.0


def test_a_decision_records_all_that_it_depended_on() -> None:
    gamer = worker("laptop", "qwen3", others_use=None, others_reason="no_agent", resident=None, free=None)
    decision = ask(DESK, gamer)
    routed = decision.routed("t", id="e1", at=1.0, by="router-1", epoch=5, cause="e0")
    again = codec.decode(codec.encode(routed))
    assert isinstance(again, TaskRouted)
    assert again == routed
    assert (again.position, again.seed, again.epoch, again.policy.name) == (4711, 3, 5, "least_completion")
    assert [(i.worker, i.free, i.others_use, i.others_reason, i.resident) for i in again.inputs] == [
        ("desk", 1, 0.0, None, ("qwen3",)),
        ("laptop", None, None, "no_agent", None),
    ]
    for candidate in again.candidates:
        p = candidate.predicted
        parts = (p.wait_s, p.load_s, p.prefill_s, p.decode_s)
        assert all(part is not None for part in parts)
        assert p.total_s == pytest.approx(sum(part or 0.0 for part in parts))
        assert candidate.quality.value is not None and p.total_s is not None
        assert candidate.cost_s == pytest.approx(p.total_s - 100.0 * candidate.quality.value)


def test_the_best_32_are_recorded_the_others_counted_and_the_event_stays_small() -> None:
    many = [worker(f"w{i:03}", "qwen3", "llama3") for i in range(60)]
    gone = [worker(f"z{i:03}", "qwen3", alive=False) for i in range(100)]
    decision = ask(*many, *gone)
    assert len(decision.candidates) == RECORDED_CANDIDATES
    assert decision.omitted == 120 - RECORDED_CANDIDATES
    assert len(decision.removed) == RECORDED_REMOVALS
    assert decision.removed[-1].reason == "and 37 more pairs"
    routed = decision.routed("t", id="e", at=0.0, by="r", epoch=1)
    assert len(msgspec.json.encode(routed)) < 64 * 1024


def test_where_nobody_declares_what_is_needed_the_reason_says_so() -> None:
    asks = RouteRequest(domain="code", prompt_tokens=200, needs=("tools", "vision"))
    decision = decide(asks, fleet(DESK, LAPTOP), STATS, seed=3, now_us=NOW_US, slider=1.0)
    assert decision.choice is not None
    assert decision.choice.reason.endswith("; nobody says whether it takes tools and images")
    able = worker("able", model("b", capabilities=("completion", "tools", "vision")))
    decision = decide(asks, fleet(DESK, able), STATS, seed=3, now_us=NOW_US, slider=1.0)
    assert chosen(decision) == ("b", "able")
    assert decision.choice is not None and "nobody says" not in decision.choice.reason
    assert [removal.reason for removal in decision.removed] == [
        "undeclared: does not say whether it takes tools and images, others do"
    ]
