"""Strengths from pairs: what a win says depends on whom it was against."""

from __future__ import annotations

import math
from collections.abc import Iterable

import choix
import pytest
from hypothesis import given, strategies as st

from schemas.cells import Cell, Tally
from schemas.samples import UNIT
from schemas.statistics import Statistics, effective, fold
from schemas.strengths import PRIOR_VARIANCE, games, standings, worth
from schemas.weights import WEIGHT_ONE
from support.samples import judged

Pairs = Iterable[tuple[str, str, float]]


def tallies(pairs: Pairs) -> list[tuple[str, Tally]]:
    """Both sides of each (model, peer, what the model won), undecayed."""
    weight = WEIGHT_ONE * UNIT
    found = []
    for one, other, won in pairs:
        for model, peer, value in ((one, other, round(won * UNIT)), (other, one, UNIT - round(won * UNIT))):
            found.append((model, Tally(peer=peer, n=1, x=value, w=weight, wx=weight * value)))
    return found


def strengths(pairs: Pairs) -> dict[str, float]:
    return {s.model: s.strength for s in standings(games(tallies(pairs)))}


def cells(pairs: Pairs, *others: Cell, start: int = 1) -> list[Cell]:
    """As the log would tell it: two samples a pair, folded for each model."""
    log: dict[str, list[object]] = {}
    seq = start
    for one, other, won in pairs:
        for model, peer, value in ((one, other, won), (other, one, 1.0 - won)):
            told = judged(seq, value, model=model, peer=peer, source="judge", worker="desk", digest=model)
            log.setdefault(model, []).append(told)
            seq += 1
    return [*(fold(samples) for samples in log.values()), *others]  # type: ignore[arg-type]


def quality(stats: Statistics, model: str) -> float:
    value = effective(stats, model, "code", "desk", model_bytes=None, now_us=10**12).quality.value
    assert value is not None
    return value


models = st.sampled_from("abcdef")
wins = st.lists(st.tuples(models, models).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=40)


@given(won=wins)
def test_they_are_those_of_choix(won: list[tuple[str, str]]) -> None:
    names = sorted({name for pair in won for name in pair})
    indices = [(names.index(winner), names.index(loser)) for winner, loser in won]
    alpha = 1.0 / (2.0 * PRIOR_VARIANCE)
    theirs = choix.opt_pairwise(len(names), indices, alpha=alpha, method="Newton-CG", tol=1e-10)
    ours = strengths((winner, loser, 1.0) for winner, loser in won)
    assert [ours[name] for name in names] == pytest.approx(list(theirs), abs=1e-5)


def test_a_pair_is_counted_once_though_both_models_cells_hold_it() -> None:
    (game,) = games(tallies([("b", "a", 1.0)] * 3))
    assert (game.one, game.other, game.n, game.w, game.won) == ("a", "b", 3, 3 * WEIGHT_ONE, 0.0)


def test_what_one_side_forgot_counts_no_more() -> None:
    """After b became another model, what a remembers of it is about somebody else."""
    remembered = [tally for tally in tallies([("a", "b", 1.0)] * 9) if tally[0] == "a"]
    assert games(remembered) == ()
    fading = Tally(peer="a", n=0, w=WEIGHT_ONE * UNIT, wx=0)
    (game,) = games([*remembered, ("b", fading)])
    assert (game.n, game.w) == (0, WEIGHT_ONE)


def test_a_win_against_a_strong_model_says_more_than_one_against_a_weak_one() -> None:
    found = strengths([("strong", "weak", 1.0)] * 10 + [("x", "strong", 1.0), ("y", "weak", 1.0)] * 3)
    assert found["x"] > found["y"]


def test_a_few_pairs_stay_near_the_mean_and_many_leave_it() -> None:
    few, many = (strengths([("a", "b", 1.0)] * n)["a"] for n in (1, 30))
    assert 0.0 < few < 0.6 < 1.2 < many


@pytest.mark.parametrize(
    "pairs",
    [
        [("a", "b", 1.0), ("b", "c", 1.0), ("c", "a", 1.0)] * 7,
        [("a", "b", 1.0)] * 5000,
        [("a", "b", 1.0)] * 3 + [("c", "d", 0.0)] * 3,
        [(f"m{n:02}", f"m{n + 1:02}", 1.0) for n in range(30)] * 20,
        [("a", "b", 0.5)],
    ],
    ids=["a circle", "always", "two groups that never met", "a long chain", "one tie"],
)
def test_every_history_has_finite_strengths_around_zero(pairs: list[tuple[str, str, float]]) -> None:
    found = strengths(pairs)
    assert all(math.isfinite(value) for value in found.values())
    assert sum(found.values()) == pytest.approx(0.0, abs=1e-9)


def test_a_circle_and_a_tie_leave_all_equal_and_a_chain_keeps_its_order() -> None:
    assert set(strengths([("a", "b", 1.0), ("b", "c", 1.0), ("c", "a", 1.0)]).values()) == {0.0}
    chain = strengths([(f"m{n}", f"m{n + 1}", 1.0) for n in range(6)] * 5)
    assert sorted(chain, key=lambda model: -chain[model]) == [f"m{n}" for n in range(7)]


def test_a_model_held_against_itself_says_nothing_about_it() -> None:
    assert games(tallies([("a", "a", 1.0)])) == ()


@given(won=wins, data=st.data())
def test_the_order_of_pairs_and_cells_changes_no_bit(won: list[tuple[str, str]], data: st.DataObject) -> None:
    told = tallies((winner, loser, 1.0) for winner, loser in won)
    assert standings(games(data.draw(st.permutations(told)))) == standings(games(told))


def test_worth_is_a_rate_of_wins_at_the_level_that_answers_judged_by_themselves_show() -> None:
    ranked = standings(games(tallies([("a", "b", 1.0)] * 8)))
    alone, high = worth(ranked, {}), worth(ranked, {"a": (40.0, 0.95), "b": (40.0, 0.8)})
    assert alone["a"] + alone["b"] == pytest.approx(UNIT, abs=2)
    assert alone["a"] > UNIT // 2 > alone["b"]
    assert high["a"] > high["b"] > 0.7 * UNIT


def test_a_bad_model_that_joins_does_not_lift_the_others() -> None:
    """A score must not change because a bad candidate was added: the level is that of answers judged by themselves."""
    known = {"a": (30.0, 0.8), "b": (30.0, 0.6)}
    before = worth(standings(games(tallies([("a", "b", 0.75)] * 20))), known)
    lost = [("a", "c", 1.0), ("b", "c", 1.0)] * 20
    after = worth(standings(games(tallies([("a", "b", 0.75)] * 20 + lost))), known)
    assert after["a"] == pytest.approx(before["a"], abs=0.03 * UNIT)
    assert after["c"] < 0.3 * UNIT


def test_a_judged_pair_moves_both_expectations_and_says_where_from() -> None:
    stats = Statistics(cells([("good", "poor", 1.0)] * 3))
    found = effective(stats, "good", "code", "desk", model_bytes=None, now_us=10**12).quality
    assert (found.level, found.n) == ("model_domain", 3)
    assert quality(stats, "good") > 0.5 > quality(stats, "poor")
    assert quality(stats, "never judged") == pytest.approx(0.5, abs=0.01)


def test_wins_over_weak_models_do_not_add_up_to_a_good_one() -> None:
    """As plain averages, x with eight wins of eight would lead the strong model, which lost a few against its equals."""
    met = [("strong", "equal", 0.5)] * 12 + [("strong", "weak", 1.0)] * 12 + [("x", "weak", 0.75)] * 12
    stats = Statistics(cells(met))
    assert quality(stats, "strong") > quality(stats, "x") > quality(stats, "weak")


def test_ranks_follow_new_pairs_new_judgements_and_their_end() -> None:
    stats = Statistics(cells([("a", "b", 1.0)] * 4))
    first = quality(stats, "a")
    assert [s.model for s in stats.standings("code")] == ["a", "b"]
    for cell in cells([("a", "b", 1.0)] * 4 + [("b", "a", 1.0)] * 8):
        stats.put(cell)
    assert quality(stats, "a") < first
    stats.put(fold([judged(900 + n, 1.0, model="a", worker=None, digest="a") for n in range(40)]))
    assert quality(stats, "a") > first
    for model in "ab":
        stats.put(fold([judged(2000, 1.0, model=model, digest="new", source="check")]))
    assert stats.standings("code") == ()
