"""What the fold remembers for routes."""

from __future__ import annotations

from typing import Any

import msgspec

from schemas.events import Policy, TaskCompleted, TaskRouted, Tokens
from services.router.dispatch import draws
from services.router.dispatch.draws import SESSIONS, Draws, Served, drawn, session_key
from services.router.dispatch.state import RouterState
from support.builders import DESK, QWEN, build

SHARES = {"a": 0.95, "b": 0.05}


def routed(target: str | None, shares: dict[str, float] = SHARES, route: str = "r", **fields: Any) -> TaskRouted:
    weights = {"slider": 1.0, **{f"target:{name}": share for name, share in shares.items()}}
    return build(TaskRouted, policy=Policy(name="target_weight", weights=weights, route=route), target=target, **fields)


def test_each_decision_that_drew_a_target_counts_once_and_by_its_route() -> None:
    state = RouterState()
    for seq, event in enumerate([routed("a"), routed("a"), routed("b"), routed("a", route="s"), routed(None)], 1):
        state.apply(event, seq, seq)
    state.apply(routed("a"), 5, 5)
    assert {name: found.counts for name, found in state.draws.items()} == {"r": {"a": 2, "b": 1}, "s": {"a": 1}}


def test_what_is_on_its_way_to_the_log_counts_too() -> None:
    known = {"r": Draws(shares=SHARES, counts={"a": 3})}
    assert drawn(known, "r", SHARES, [routed("a"), routed("b"), routed("b", route="s")]) == {"a": 4, "b": 1}


def test_other_targets_or_shares_begin_a_new_count() -> None:
    found: dict[str, Draws] = {}
    for event in [routed("a")] * 10 + [routed("a", {"a": 1.0})] * 3:
        draws.count(found, event)
    assert found["r"].counts == {"a": 3}
    assert drawn(found, "r", SHARES, []) == {}, "b comes back and does not catch up"


def test_the_counts_and_sessions_are_in_the_snapshot() -> None:
    state = RouterState()
    state.apply(routed("a"), 1, 1)
    state.apply(build(TaskCompleted, session="s"), 2, 2)
    again = msgspec.json.decode(msgspec.json.encode(state.without_recent()), type=RouterState)
    assert (again.draws, again.sessions) == (state.draws, state.sessions)
    assert again.sessions == {session_key("me", "s"): Served(model=QWEN, worker=DESK, tokens=196 + 240)}


def test_what_the_backend_did_not_count_is_not_known_to_be_read() -> None:
    sessions: dict[str, Served] = {}
    draws.serve(sessions, build(TaskCompleted, session="s"))
    draws.serve(sessions, build(TaskCompleted, session="s", tokens=Tokens()))
    draws.serve(sessions, build(TaskCompleted, session=None))
    assert sessions == {}


def test_only_the_latest_sessions_are_kept() -> None:
    sessions: dict[str, Served] = {}
    event = build(TaskCompleted)
    for n in range(SESSIONS + 2):
        draws.serve(sessions, msgspec.structs.replace(event, session=f"s{n}"))
    assert len(sessions) == SESSIONS
    assert session_key("me", "s0") not in sessions
