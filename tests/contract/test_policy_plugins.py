"""What every policy plugin must keep, whatever it thinks of: one suite, and each row of the table goes through it."""

from __future__ import annotations

import math
import random
import re

import msgspec
import pytest
from hypothesis import given, strategies as st

from services.router.policy.plugin import Case, Contender, Pairing, Vote
from services.router.policy.plugins import PLUGINS
from services.router.policy.votes import best_of, tally
from support.contending import cases, pairings
from support.source import ROOT

EVERY = pytest.mark.parametrize("name", sorted(PLUGINS))


def scores_of(vote: Vote, contenders: list[Pairing]) -> dict[tuple[str, str], float]:
    return dict(zip([(c.model, c.worker) for c in contenders], vote.scores or (), strict=vote.scores is not None))


@EVERY
@given(case=cases, contenders=pairings())
def test_scores_are_one_for_each_contender_in_0_to_1_and_never_all_0(
    name: str, case: Case, contenders: list[Pairing]
) -> None:
    vote = PLUGINS[name].vote(case, contenders)
    assert 0.0 <= vote.strength <= 1.0
    if vote.scores is not None:
        assert len(vote.scores) == len(contenders) > 0
        assert all(0.0 <= score <= 1.0 and math.isfinite(score) for score in vote.scores)
        assert max(vote.scores) > 0.0, "a plugin that is for nobody abstains"


@EVERY
@given(case=cases, contenders=pairings())
def test_the_same_question_has_the_same_answer(name: str, case: Case, contenders: list[Pairing]) -> None:
    vote = PLUGINS[name].vote
    assert vote(case, contenders) == vote(case, list(contenders))


@EVERY
@given(case=cases, contenders=pairings(), rng=st.randoms(use_true_random=False))
def test_the_order_of_the_contenders_changes_nothing(
    name: str, case: Case, contenders: list[Pairing], rng: random.Random
) -> None:
    shuffled = list(contenders)
    rng.shuffle(shuffled)
    one, other = (PLUGINS[name].vote(case, each) for each in (contenders, shuffled))
    assert scores_of(one, contenders) == scores_of(other, shuffled)
    assert (one.words, one.strength) == (other.words, other.strength)


@EVERY
@given(case=cases, contenders=pairings(), data=st.data())
def test_what_is_not_known_is_never_good(name: str, case: Case, contenders: list[Pairing], data: st.DataObject) -> None:
    """A wait or a load that nobody knows any more raises nobody's score, nor his share of the votes."""
    if not contenders:
        return
    at = data.draw(st.integers(0, len(contenders) - 1))
    quieter = list(contenders)
    # What is unknown is in the cost as its worst case already (test_policy.py).
    worse = max(contenders[at].cost_s, contenders[at].cost_s + 3_600.0 - (contenders[at].wait_s or 0.0))
    quieter[at] = msgspec.structs.replace(contenders[at], wait_s=None, fresh=False, cost_s=worse)
    before, after = (tally(case, each, {name: 1.0}) for each in (contenders, quieter))
    if not before.is_silent and not after.is_silent:
        assert after.totals[at] <= before.totals[at] + 1e-9


@EVERY
@given(case=cases, contenders=pairings())
def test_a_vote_says_why(name: str, case: Case, contenders: list[Pairing]) -> None:
    assert len(PLUGINS[name].vote(case, contenders).words) > 10


@EVERY
def test_abstaining_is_allowed_and_leaves_the_others_votes_alone(name: str) -> None:
    nobody: list[Contender] = []
    assert PLUGINS[name].vote(Case(), nobody).scores is None
    one = [Pairing(model="m", worker="a"), Pairing(model="m", worker="b", in_flight=3)]
    alone = tally(Case(), one, {"least_in_flight": 1.0})
    silent = tally(Case(), one, {"least_in_flight": 1.0, "session_affinity": 5.0})
    assert silent.totals == alone.totals


@given(
    case=cases,
    contenders=pairings(),
    weights=st.dictionaries(st.sampled_from(sorted(PLUGINS)), st.floats(0.1, 10.0), min_size=1),
    seed=st.integers(0, 2**32 - 1),
    rng=st.randoms(use_true_random=False),
)
def test_who_wins_depends_on_the_set_the_weights_and_the_seed_alone(
    case: Case, contenders: list[Pairing], weights: dict[str, float], seed: int, rng: random.Random
) -> None:
    shuffled = list(contenders)
    rng.shuffle(shuffled)
    one = best_of(tally(case, contenders, weights), contenders, seed)
    other = best_of(tally(case, shuffled, dict(reversed(weights.items()))), shuffled, seed)
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert contenders[one] == shuffled[other]
        assert contenders[one].fresh or not any(c.fresh for c in contenders)


@given(
    case=cases, contenders=pairings(), weights=st.dictionaries(st.sampled_from(sorted(PLUGINS)), st.floats(0.1, 10.0))
)
def test_a_plugins_votes_add_up_to_its_weight(case: Case, contenders: list[Pairing], weights: dict[str, float]) -> None:
    counted = tally(case, contenders, weights)
    for name, weight in weights.items():
        vote = PLUGINS[name].vote(case, contenders)
        cast = sum(votes.get(name, 0.0) for votes in counted.votes)
        assert cast == pytest.approx(0.0 if vote.scores is None else weight * vote.strength)


def test_every_plugin_has_a_row_and_a_line() -> None:
    files = {path.stem for path in (ROOT / "services/router/policy").glob("*.py")}
    readme = (ROOT / "services/router/policy/README.md").read_text(encoding="utf-8")
    routes = (ROOT / "docs/routes.md").read_text(encoding="utf-8")
    for name, plugin in PLUGINS.items():
        assert plugin.weight > 0.0
        home = plugin.vote.__module__.rpartition(".")[2]
        assert home in files
        assert re.search(rf"(?m)^\| `{home}\.py` \|", readme), f"README.md has no line for {home}.py"
        assert f"`{name}`" in routes, f"docs/routes.md does not explain {name}"
