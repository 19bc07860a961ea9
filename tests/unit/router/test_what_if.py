from __future__ import annotations

import msgspec
import pytest

from schemas.events import Wants
from services.router.comparison import compare
from services.router.policy.request import RouteRequest
from services.router.policy.routes import Route, Routes, Target
from services.router.what_if import Case, decided, names, under, with_numbers
from support.fleets import NOW_US, cell, fleet, measured, worker

ROUTES = Routes(routes={"cheap": Route(name="cheap", by="policy", targets=(Target(model="small"),), slider=0.0)})
CASE = Case(
    request=RouteRequest(domain="code", prompt_tokens=100),
    fleet=fleet(worker("desk", "small", "large"), worker("laptop", "small")),
    stats=measured([cell("large", "code", "desk", decode=20, quality=0.9), cell("small", "code", "desk", quality=0.2)]),
    seed=1,
    now_us=NOW_US,
    slider=1.0,
    in_flight={"desk": 3},
)


def chosen(case: Case | None) -> tuple[str, str | None]:
    assert case is not None
    choice = decided(case).choice
    assert choice is not None
    return choice.model, choice.worker


def test_the_slider_decides_between_speed_and_quality() -> None:
    assert chosen(CASE) == ("large", "desk")
    assert chosen(under(CASE, "slider=0", ROUTES))[0] == "small"
    assert chosen(under(CASE, "slider=1.0", ROUTES)) == chosen(CASE)


def test_a_policy_by_name_decides_alone() -> None:
    for name in ("least_in_flight", "least-in-flight", "least_inflight"):
        other = under(CASE, name, ROUTES)
        assert chosen(other) == ("small", "laptop")
        assert decided(other).policy.weights["least_in_flight"] == 1.0  # type: ignore[arg-type]


def test_a_route_by_name_brings_its_targets_and_its_slider() -> None:
    decision = decided(under(CASE, "cheap", ROUTES))  # type: ignore[arg-type]
    assert {candidate.model for candidate in decision.candidates} == {"small"}
    assert decision.policy.weights["slider"] == 0.0
    assert decision.policy.route == "cheap"


def test_the_plain_policy_undoes_a_route() -> None:
    routed = under(CASE, "cheap", ROUTES)
    assert routed is not None
    for name in ("least_completion", "auto"):
        assert chosen(under(routed, name, ROUTES)) == chosen(CASE)


def test_a_model_that_the_client_fixed_stays_fixed() -> None:
    fixed = msgspec.structs.replace(CASE, request=msgspec.structs.replace(CASE.request, wants=Wants(model="large")))
    assert chosen(under(fixed, "least_in_flight", ROUTES)) == ("large", "desk")


def test_other_numbers_leave_everything_else_as_it_is() -> None:
    known = measured([cell("small", "code", "laptop", decode=500, quality=0.9)])
    assert chosen(with_numbers(CASE, known)) == ("small", "laptop")


@pytest.mark.parametrize("name", ["leest_completion", "slider=", "slider=-1", "slider=a", "slider=1" + "0" * 400, ""])
def test_what_is_none_of_these_is_none(name: str) -> None:
    assert under(CASE, name, ROUTES) is None


def test_every_name_that_is_offered_can_be_decided_under() -> None:
    for name in names(ROUTES):
        assert decided(under(CASE, name, ROUTES)).candidates  # type: ignore[arg-type]


def test_another_policy_is_called_the_reason_and_no_part_of_the_cost() -> None:
    before, after = (
        decided(case).routed("t", id="e", at=1.0, by="r", epoch=1)
        for case in (under(CASE, "least_in_flight", ROUTES), CASE)
        if case is not None
    )
    lines = compare(before, after)
    assert lines[0] == "The choice went from small on laptop to large on desk. What did it: another policy."
    assert lines[1] == "The policy went from least_in_flight to least_completion."
    assert lines[2].startswith("Their words: small on laptop (")
