"""The order: fresh, then cheap, then by lot; and the lot is the seed's alone."""

from __future__ import annotations

from collections import Counter

import msgspec

from schemas.events import Candidate
from services.router.policy.picker import order, tie_break
from support.builders import DESK_CANDIDATE


def candidate(worker: str, cost_s: float, *, fresh: bool = True) -> Candidate:
    return msgspec.structs.replace(DESK_CANDIDATE, worker=worker, cost_s=cost_s, fresh=fresh)


def test_a_fresh_load_comes_before_a_lower_cost() -> None:
    ordered = order([candidate("stale", 1.0, fresh=False), candidate("dear", 9.0), candidate("cheap", 2.0)], 0)
    assert [c.worker for c in ordered] == ["cheap", "dear", "stale"]


def test_equals_are_drawn_by_the_seed_and_every_one_gets_its_share() -> None:
    equals = [candidate(name, 5.0) for name in ("a", "b", "c")]
    firsts = Counter(order(equals, seed)[0].worker for seed in range(600))
    assert set(firsts) == {"a", "b", "c"}
    assert min(firsts.values()) > 120
    assert order(equals, 7) == order(reversed(equals), 7)


def test_the_lot_can_be_drawn_again_on_any_machine() -> None:
    assert tie_break(7, "qwen3", "desk").hex() == "6dd0f74d6807b8f5"
