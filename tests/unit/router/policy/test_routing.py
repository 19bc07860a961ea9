"""A decision on a task of a route: what it draws, whom the plugins prefer, and what the log keeps of it."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from schemas.events import TARGET_SHARE, Verdict, Wants
from services.router.fleet import Fleet, WorkerView
from services.router.policy.decide import Decision, decide
from services.router.policy.plugin import LastServed
from services.router.policy.request import RouteRequest
from services.router.policy.routes import Route
from services.router.policy.routes_file import parse_routes
from services.router.policy.routing import Routing, no_counts
from support.fleets import NOW_US, cell, fleet, measured, worker

SMALL, BIG = worker("w-small", "small"), worker("w-big", "big")
STATS = measured(
    [cell("small", "code", "w-small", decode=100, quality=0.5), cell("big", "code", "w-big", decode=20, quality=0.9)]
)
BOTH = 'targets = [{model = "small"}, {model = "big"}]\nfallback = [{model = "spare"}]\n'


def route(rest: str, targets: str = BOTH) -> Route:
    return parse_routes(f"[r]\n{targets}{rest}").routes["r"]


def ask(
    by: Route, *workers: WorkerView, seed: int = 3, wants: Wants | None = None, verdict: Verdict | None = None,
    session: str | None = None, **routing: object,
) -> Decision:  # fmt: skip
    there: Fleet = fleet(*(workers or (SMALL, BIG)))
    asks = RouteRequest(
        domain="code", prompt_tokens=200, wants=wants or Wants(route="r"), verdict=verdict, session=session
    )
    given = Routing(route=by, **routing)  # type: ignore[arg-type]
    return decide(asks, there, STATS, seed=seed, now_us=NOW_US, slider=1.0, routing=given)


def chosen(decision: Decision) -> str:
    assert decision.choice is not None
    return decision.choice.model


def test_a_drawn_target_stands_in_the_decision_with_the_shares_it_was_drawn_from() -> None:
    decision = ask(route("", BOTH.replace('"small"', '"small", weight = 95').replace('"big"', '"big", weight = 5')))
    assert (decision.target, decision.policy.name, decision.policy.route) == ("small", "target_weight", "r")
    shares = {name: n for name, n in decision.policy.weights.items() if name.startswith(TARGET_SHARE)}
    assert shares == {"target:small": 0.95, "target:big": 0.05}
    assert decision.choice is not None
    assert decision.choice.reason.startswith("it is the turn of small (95 % of r); ")
    assert [(r.model, r.reason) for r in decision.removed] == [("big", "target: route r goes to small")]


def test_the_votes_of_each_plugin_are_in_the_log_and_the_reason_has_their_words() -> None:
    decision = ask(route("route_by = {least_in_flight = 2, least_completion = 1}"), in_flight={"w-small": 3})
    assert chosen(decision) == "big"
    assert decision.candidates[0].votes["least_in_flight"] == pytest.approx(2 * 1 / 1.25)
    assert decision.policy.weights["least_in_flight"] == 2.0
    assert decision.choice is not None
    assert "least_in_flight 1.60: the least in flight is 0" in decision.choice.reason
    assert decision.target is None


def test_the_words_of_plugins_call_machines_by_their_names() -> None:
    named = [msgspec.structs.replace(SMALL, name="laptop"), msgspec.structs.replace(BIG, name="desktop")]
    choice = ask(route("route_by = {least_completion = 1}"), *named).choice
    assert choice is not None
    assert " on desktop costs the least" in choice.reason and choice.worker == "w-big" not in choice.reason


def test_where_all_abstain_least_completion_decides_and_says_so() -> None:
    decision = ask(route('route_by = "session_affinity"'))
    plain = decide(
        RouteRequest(domain="code", prompt_tokens=200), fleet(SMALL, BIG), STATS, seed=3, now_us=NOW_US, slider=1.0
    )
    assert decision.policy.name == "least_completion"
    assert [c.model for c in decision.candidates] == [c.model for c in plain.candidates]
    assert all(c.votes == {} for c in decision.candidates)


def test_the_sessions_last_worker_is_in_the_log() -> None:
    last = LastServed(model="big", worker="w-big", tokens=150)
    decision = ask(route('route_by = "saved_prefill"'), session="s", last=last)
    assert decision.policy.weights["cached:big on w-big"] == 150


def test_the_slider_is_the_requests_else_the_routes_else_the_routers() -> None:
    assert ask(route("slider = 0.25\nroute_by = 'least_completion'")).policy.weights["slider"] == 0.25
    assert ask(route("route_by = 'least_completion'")).policy.weights["slider"] == 1.0


def test_who_names_a_model_of_the_route_gets_that_and_nobody_gets_another() -> None:
    by = route('route_by = "least_completion"')
    assert chosen(ask(by, wants=Wants(route="r", model="big"))) == "big"
    outside = ask(by, SMALL, BIG, worker("w-x", "x"), wants=Wants(route="r", model="x"))
    assert outside.choice is None
    assert "target: route r goes to small, big" in {removal.reason for removal in outside.removed}


# -- case 26: a decider's verdict is a vote, not an order ---------------------------------------------------------------------

SURE = Verdict(by="s", probabilities={"big": 1.0, "small": 0.0}, confidence=1.0)
DECIDES = route("route_by = {decision_service = 10, least_completion = 1}")


def test_case_26_a_verdict_sways_the_choice_while_its_model_can_answer() -> None:
    assert chosen(ask(DECIDES, verdict=SURE)) == "big"
    assert chosen(ask(DECIDES, verdict=Verdict(by="s", probabilities={"small": 1.0}, confidence=1.0))) == "small"


@pytest.mark.parametrize("gone", [{"alive": False}, {"draining": True}, {"paused": True}])
def test_case_26_a_model_whose_only_worker_is_dead_is_not_chosen_whatever_the_verdict(gone: dict[str, bool]) -> None:
    decision = ask(DECIDES, SMALL, worker("w-big", "big", **gone), verdict=SURE)
    assert chosen(decision) == "small"
    assert decision.choice is not None
    assert "the decision service was for none of those who can answer" in decision.choice.reason


def test_case_26_a_model_that_nobody_holds_any_more_neither() -> None:
    assert chosen(ask(DECIDES, SMALL, verdict=SURE)) == "small"


def test_case_26_a_fallback_is_taken_where_no_target_can_answer_and_the_verdict_names_one() -> None:
    decision = ask(DECIDES, worker("w-big", "big", alive=False), worker("w-s", "spare"), verdict=SURE)
    assert chosen(decision) == "spare"
    assert decision.choice is not None
    assert "spare is its fallback" in decision.choice.reason


# -- ties ------------------------------------------------------------------------------------------------------------------


def test_case_16_idle_equals_spread_over_a_hundred_machines() -> None:
    machines = [worker(f"w{n}", "small") for n in range(100)]
    by = route('route_by = "least_in_flight"', 'targets = [{model = "small"}]\n')
    names = Counter(ask(by, *machines, seed=seed).choice.worker for seed in range(300))  # type: ignore[union-attr]
    assert len(names) > 85
    assert max(names.values()) <= 12


def test_a_machine_whose_load_is_unknown_comes_after_those_whose_load_is_known() -> None:
    by = route('route_by = "least_in_flight"')
    decision = ask(by, worker("w-small", "small", fresh=False), BIG, in_flight={"w-big": 5})
    assert chosen(decision) == "big"


def test_without_counts_every_target_is_at_nought() -> None:
    assert no_counts([]) == {}


def test_equal_votes_are_said_to_be_drawn_by_lot_and_with_whom() -> None:
    equal = ask(route("route_by = {least_in_flight = 1}"))
    assert equal.choice is not None and equal.candidates[0].votes == equal.candidates[1].votes
    assert equal.choice.reason.endswith("; drawn by lot") and "; as many as " in equal.choice.reason
    other = ask(route("route_by = {least_in_flight = 1}"), in_flight={"w-small": 3})
    assert other.choice is not None and "drawn by lot" not in other.choice.reason


def test_where_it_is_the_turn_of_one_target_nobody_says_that_the_others_cannot_answer() -> None:
    drawn = ask(route('route_by = "round_robin"'))
    assert drawn.choice is not None and "it is the turn of" in drawn.choice.reason
    assert "the only one that can answer" not in drawn.choice.reason
