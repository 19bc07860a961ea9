"""Where a task of a route may go: its targets, then its fallback, and what was drawn stays drawn while it can."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from services.router.fleet import Fleet
from services.router.policy.request import RouteRequest
from services.router.policy.routes import Route, RouteBy, Target
from services.router.policy.settle import Settled, pool_of, settle, settle_again
from support.fleets import fleet, model, worker

ASKS = RouteRequest(prompt_tokens=100)
A, B, SPARE = Target(model="a"), Target(model="b"), Target(model="spare")


def route(by: RouteBy = "round_robin", **fields: object) -> Route:
    return Route(name="r", by=by, targets=(A, B), fallback=(SPARE,), **fields)  # type: ignore[arg-type]


def machines(**alive: bool) -> Fleet:
    return fleet(*(worker(f"w-{name}", name, alive=is_alive) for name, is_alive in alive.items()))


def once(counts: dict[str, int]) -> object:
    def of(targets: Sequence[Target]) -> dict[str, int]:
        return counts

    return of


def settled(there: Fleet, by: RouteBy = "round_robin", **counts: int) -> Settled:
    return settle(route(by), ASKS, there, once(counts))  # type: ignore[arg-type]


def test_the_next_in_turn_is_drawn_from_those_that_somebody_answers_for() -> None:
    everybody = machines(a=True, b=True, spare=True)
    assert settled(everybody).drawn == A
    assert settled(everybody, a=1).drawn == B
    assert settled(everybody, a=1).allowed == (B,)
    assert settled(everybody).among == (A, B)


@pytest.mark.parametrize("gone", [{"alive": False}, {"draining": True}, {"paused": True}])
def test_a_target_whose_holders_are_all_gone_falls_to_the_others(gone: dict[str, bool]) -> None:
    there = fleet(worker("w-a", "a", **gone), worker("w-b", "b"), worker("w-s", "spare"))
    result = settle(route(), ASKS, there, once({}))  # type: ignore[arg-type]
    assert (result.drawn, result.among) == (B, (B,))
    assert result.reason == "nobody can answer for a"


def test_then_to_the_fallback_which_is_never_a_candidate_before() -> None:
    result = settled(machines(a=False, b=False, spare=True))
    assert (result.allowed, result.drawn) == ((SPARE,), None), "and is not counted"
    assert result.reason == "nobody can answer for a target of r; spare is its fallback"
    for by in ("policy", "round_robin"):
        assert SPARE not in settled(machines(a=True, b=False, spare=True), by).allowed  # type: ignore[arg-type]


def test_then_it_waits_for_its_own_targets() -> None:
    assert settled(machines(a=False, b=False, spare=False), "policy").allowed == (A, B)
    assert settled(machines(other=True), "policy").allowed == (A, B)


def test_a_policy_route_allows_all_that_can_answer() -> None:
    assert settled(machines(a=True, b=True, spare=True), "policy").allowed == (A, B)
    assert settled(machines(a=True, b=True), "policy").drawn is None


def test_what_was_drawn_stays_drawn_while_somebody_answers_for_it() -> None:
    everybody, only_a = machines(a=True, b=True, spare=True), machines(a=True, b=False, spare=True)
    assert settle_again(route(), pool_of(route(), ASKS, everybody), "b", 1).allowed == (B,)
    assert settle_again(route(), pool_of(route(), ASKS, only_a), "b", 1).allowed == (A,)
    assert settle_again(route(), pool_of(route(), ASKS, machines(a=False, b=False, spare=True)), "b", 1).allowed == (
        SPARE,
    )
    assert settle_again(route("policy"), pool_of(route("policy"), ASKS, everybody), None, 1).allowed == (A, B)


def test_a_target_may_be_called_by_an_alias_and_by_a_workers_shown_name() -> None:
    there = fleet(
        worker("w-1", model("qwen3:8b", aliases=("qwen3",)), name="desk"),
        worker("w-2", model("qwen3:8b"), name="laptop"),
    )
    named = Route(name="r", by="round_robin", targets=(Target(model="qwen3", worker="desk"),))
    result = settle(named, ASKS, there, once({}))  # type: ignore[arg-type]
    assert (result.drawn, result.reason) == (named.targets[0], None)
    assert settle(named, ASKS, fleet(there.workers["w-2"]), once({})).reason is not None  # type: ignore[arg-type]
