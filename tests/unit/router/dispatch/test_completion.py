"""C(t, w) part by part, by hand: 200 tokens of prompt are 2 s, an answer is 10 s, a load 4 s on a machine of its own."""

from __future__ import annotations

import pytest

from services.router.dispatch.completion import Machine, left_s, machine_of, parts_of, service_s, worker_input
from support.planning import SPEED


def machine(*ends: float, slots: int = 1, loaded: tuple[str, ...] = ("m",), use: float | None = 0.0) -> Machine:
    there = Machine("w1", "desk", slots, loaded=list(loaded), resident_known=True, others_use=use)
    there.busy_until(sorted(ends))
    return there


def test_a_free_machine_that_holds_the_model_in_memory_reads_and_answers() -> None:
    assert parts_of(SPEED, machine(), "m", 200, None) == (0.0, 0.0, 2.0, 10.0, 0.0)


def test_the_load_counts_only_where_the_model_is_not_in_memory() -> None:
    cold = parts_of(SPEED, machine(loaded=("n",)), "m", 200, None)
    assert cold.load_s == 4.0
    assert cold.total_s == 16.0


@pytest.mark.parametrize(("most", "decode_s"), [(20, 2.0), (100, 10.0), (500, 10.0), (None, 10.0)])
def test_an_answer_is_no_longer_than_asked_for(most: int | None, decode_s: float) -> None:
    assert parts_of(SPEED, machine(), "m", 200, most).decode_s == decode_s
    assert service_s(SPEED, machine(), 200, most) == 2.0 + decode_s


def test_one_busy_slot_is_waited_for_and_shared_with_nobody() -> None:
    parts = parts_of(SPEED, machine(7.0), "m", 200, None)
    assert (parts.wait_s, parts.sharing_s, parts.total_s) == (7.0, 0.0, 19.0)


@pytest.mark.parametrize(
    ("beta", "sharing_s"),
    [(0.0, 0.0), (0.85, 0.85 * (3.0 / 1.85 + 10.0)), (1.0, 1.5 + 10.0)],
)
def test_a_free_slot_beside_running_ones_costs_what_they_take(beta: float, sharing_s: float) -> None:
    """X = β · Σ min(rem / f(2), 10 s) over those with 3 s and 30 s left; f(2) = 1 + β."""
    parts = parts_of(SPEED._replace(slowdown=beta), machine(3.0, 30.0, slots=4), "m", 200, None)
    assert parts.wait_s == 0.0
    assert parts.sharing_s == pytest.approx(sharing_s)


@pytest.mark.parametrize(("beta", "sharing_s"), [(0.0, 0.0), (0.85, 5.95), (1.0, 7.0)])
def test_a_full_machine_is_waited_for_and_then_shared_with_who_is_left(beta: float, sharing_s: float) -> None:
    """3 s until the first of two ends; the other one has 7 s left then, alone."""
    parts = parts_of(SPEED._replace(slowdown=beta), machine(3.0, 10.0, slots=2), "m", 200, None)
    assert parts.wait_s == 3.0
    assert parts.sharing_s == pytest.approx(sharing_s)


def test_a_third_task_waits_for_the_second_end_when_one_is_queued_already() -> None:
    assert parts_of(SPEED, machine(3.0, 5.0, 9.0, slots=2), "m", 200, None).wait_s == 5.0


@pytest.mark.parametrize(("use", "share"), [(0.0, 1.0), (0.5, 0.5), (1.0, 0.25), (None, 0.25)])
def test_a_game_on_the_machine_takes_its_share_of_reading_and_answering_but_not_of_the_disk(
    use: float | None, share: float
) -> None:
    """Unknown use takes the most that a known one could."""
    parts = parts_of(SPEED, machine(use=use, loaded=()), "m", 200, None)
    assert (parts.load_s, parts.prefill_s, parts.decode_s) == (4.0, 2.0 / share, 10.0 / share)


@pytest.mark.parametrize(("weight", "known", "decode_s"), [(0.5, 1.0, 12.5), (1.0, 0.5, 12.5), (1.0, 0.0, 10.0)])
def test_use_counts_by_what_was_learned_of_it(weight: float, known: float, decode_s: float) -> None:
    """40 % use: half of it by the learned weight, or half of it because half of the samples hold it already."""
    speed = SPEED._replace(others_weight=weight, use_known=known)
    assert parts_of(speed, machine(use=0.4), "m", 200, None).decode_s == pytest.approx(decode_s)


@pytest.mark.parametrize(
    ("predicted", "elapsed", "left"), [(10.0, 4.0, 6.0), (10.0, 9.99, 1.4985), (10.0, 40.0, 6.0), (0.2, 0.15, 0.1)]
)
def test_what_outlived_its_prediction_has_a_share_of_its_age_left(
    predicted: float, elapsed: float, left: float
) -> None:
    assert left_s(predicted, elapsed) == pytest.approx(left)


def place(there: Machine, model: str = "m", beta: float = 1.0, sizes: dict[str, int | None] | None = None) -> None:
    parts = parts_of(SPEED._replace(slowdown=beta), there, model, 200, None)
    there.place(model, parts, beta, sizes or {})


def test_what_is_put_on_a_machine_of_one_slot_queues_behind() -> None:
    there = machine()
    place(there)
    assert (there.wait_s, there.ends) == (12.0, [12.0])
    place(there)
    assert there.wait_s == 24.0


def test_what_is_put_beside_others_moves_their_ends_by_its_share() -> None:
    """4 s left there; the new one takes 2 + 10 s and 4 s for sharing; the old one ends 4 s later."""
    there = machine(4.0, slots=2)
    place(there)
    assert there.ends == [8.0, 16.0]
    assert there.wait_s == 8.0
    alone = machine(4.0, slots=2)
    place(alone, beta=0.0)
    assert alone.ends == [4.0, 12.0]


def test_what_is_put_on_a_full_machine_begins_when_the_first_one_ends() -> None:
    there = machine(3.0, 30.0, slots=2)
    place(there, beta=0.0)
    assert there.ends == [15.0, 30.0]


def test_a_model_put_on_a_machine_is_in_memory_then_and_the_longest_unused_one_may_not_be() -> None:
    there = machine(loaded=("a", "b"))
    there.room = (10, 2)
    place(there, "c", sizes={"a": 5, "b": 5, "c": 5})
    assert there.loaded == ["b", "c"]
    place(there, "b", sizes={"a": 5, "b": 5, "c": 5})
    assert there.loaded == ["c", "b"]
    place(there, "a", sizes={"a": 10, "b": 5, "c": 5})
    assert there.loaded == ["a"]


def test_where_a_size_is_unknown_models_are_counted() -> None:
    there = machine(loaded=("a", "b"))
    there.room = (10, 2)
    place(there, "c", sizes={"a": 1, "b": None, "c": 1})
    assert there.loaded == ["b", "c"]


def test_a_model_larger_than_all_that_was_ever_loaded_is_loaded_alone() -> None:
    there = machine(loaded=("a",))
    place(there, "large", sizes={"a": 1, "large": 99})
    assert there.loaded == ["large"]


def test_a_machine_as_recorded_is_the_same_machine_again() -> None:
    there = machine(3.0, 10.0, slots=2, use=None)
    there.free, there.running, there.others_reason, there.credit_age_s = 1, 2, "no agent", 0.5
    given = worker_input(there)
    assert given.waiting_s == 3.0
    again = machine_of(given)
    assert worker_input(again) == given
    assert parts_of(SPEED, again, "m", 200, None) == parts_of(SPEED, there, "m", 200, None)
