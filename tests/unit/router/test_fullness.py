"""Full queues: who is refused, with which numbers, and when to come back."""

from __future__ import annotations

import pytest

from services.router.fullness import Crowd, Places, has_place, refusal

PLACES = Places(total=3, client=2)


def crowd(*clients: str, running: int = 1, running_mine: int = 1) -> Crowd:
    waiting = tuple((f"t{n}", client) for n, client in enumerate(clients))
    return Crowd(waiting=waiting, running=running, running_mine=running_mine)


def test_where_there_is_a_place_nobody_is_refused() -> None:
    assert refusal("me", crowd("me", "you"), PLACES, {}) is None


@pytest.mark.parametrize(
    "clients", [(), ("me",), ("me", "you"), ("me", "me"), ("you", "you"), ("me", "you", "you"), ("me",) * 4]
)
@pytest.mark.parametrize("client", ["me", "you", "she"])
def test_there_is_a_place_exactly_where_nobody_is_refused(client: str, clients: tuple[str, ...]) -> None:
    waiting = crowd(*clients)
    assert has_place(client, waiting.waiting, PLACES) is (refusal(client, waiting, PLACES, {}) is None)


def test_a_client_with_too_many_is_told_its_own_numbers_and_when_its_next_one_starts() -> None:
    busy = refusal("me", crowd("me", "you", "me"), PLACES, {"t0": 12.4, "t1": 2.0, "t2": None})
    assert busy is not None
    assert (busy.status, busy.retry_after_s, busy.numbers) == (429, 12.4, {"waiting": 2, "limit": 2, "running": 1})
    assert str(busy) == (
        "me has 2 tasks waiting, its limit is 2 ([limits] queue_client), and 1 running; the next of them starts in about 12 s"
    )


def test_a_queue_that_is_full_of_everybodys_is_the_fleets_fault() -> None:
    busy = refusal("she", crowd("me", "you", "me", running=4), PLACES, {"t0": 9.0, "t1": 2.0})
    assert busy is not None
    assert (busy.status, busy.retry_after_s, busy.numbers) == (503, 2.0, {"waiting": 3, "limit": 3, "running": 4})


@pytest.mark.parametrize(("starts", "after_s"), [({}, 5.0), ({"t0": None, "t1": None}, 5.0), ({"t0": 0.0}, 1.0)])
def test_an_unknown_start_is_said_to_be_unknown_and_none_is_at_once(
    starts: dict[str, float | None], after_s: float
) -> None:
    busy = refusal("me", crowd("me", "me"), PLACES, starts)
    assert busy is not None and busy.retry_after_s == after_s
    assert ("nobody can tell" in str(busy)) == (after_s == 5.0)
