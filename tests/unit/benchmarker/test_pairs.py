"""Which pair is worth most: the nearest strengths, the least met, and the same choice for the same seed."""

from __future__ import annotations

from services.benchmarker.pairs import Met, Pairing, Topic, met_key, ranked
from services.benchmarker.panel import Panel, Seat

TOPICS = [Topic(suite="writing", name=f"w{n}") for n in range(4)]
SEATS = (
    Seat(model="a", worker="w1", quality=0.6),
    Seat(model="b", worker="w1", quality=0.62),
    Seat(model="c", worker="w2", quality=0.95),
    Seat(model="d", worker="w2", quality=None),
)


def chosen(met: Met | None = None, seed: int = 1, seats: tuple[Seat, ...] = SEATS) -> Pairing:
    found = ranked("a", "w1", Panel(seats=seats), TOPICS, met or {}, seed)
    assert isinstance(found, tuple)
    return found[0]


def test_the_nearest_in_strength_teaches_most() -> None:
    assert (chosen().own.model, chosen().peer.model) == ("a", "b")


def test_who_was_met_often_gives_way_to_the_next() -> None:
    met = {met_key("a", "b", "w0"): 1}
    assert chosen(met).peer.model == "d"  # unknown is a half, and nearer than 0.95
    assert chosen({**met, met_key("d", "a", "w1"): 1}).peer.model == "b"


def test_they_meet_on_what_they_have_not_met_on() -> None:
    met = {met_key("a", "b", f"w{n}"): 1 for n in range(3)}
    alone = SEATS[:2]
    assert chosen(met, seats=alone).topic.name == "w3"
    met[met_key("a", "b", "w3")] = 1
    assert "has met every other model" in str(ranked("a", "w1", Panel(seats=alone), TOPICS, met, 1))


def test_a_model_s_verdicts_rest_on_different_answers_as_long_as_there_are_any() -> None:
    met = {met_key("a", "c", "w0"): 1, met_key("d", "b", "w1"): 1, met_key("a", "c", "w3"): 1}
    assert {chosen(met, seed, seats=SEATS[:2]).topic.name for seed in range(20)} == {"w2"}


def test_the_seed_settles_what_is_equal_and_nothing_else() -> None:
    topics = {chosen(seed=seed).topic.name for seed in range(40)}
    assert topics == {"w0", "w1", "w2", "w3"}
    assert {chosen(seed=seed).peer.model for seed in range(40)} == {"b"}
    assert chosen(seed=7) == chosen(seed=7)


def test_it_says_why_there_is_no_pair() -> None:
    panel = Panel(seats=SEATS[:1])
    assert ranked("a", "w1", panel, TOPICS, {}, 1) == "there is no other model to compare a with"
    assert ranked("x", "w1", panel, TOPICS, {}, 1) == "x cannot be asked now"
    assert ranked("a", "w1", Panel(seats=SEATS), [], {}, 1) == "there is no prompt that only a judge can weigh"
