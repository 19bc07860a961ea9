"""What must hold of every verdict, whatever a judge says and whatever the answers hold."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, strategies as st

from schemas.bias import KNOWN_EACH, Judge, Judges, share, weigh
from schemas.events import Pick
from schemas.judgements import Judgement
from schemas.judging import Side, combine, pair_events, pick, question, verdict
from support.builders import AT
from support.judges import texts_of

PICKS = st.sampled_from(["own", "peer", "tie", "malformed", "missing"])
SHARES = st.builds(lambda k, more: share(k, k + more), st.integers(0, 60), st.integers(0, 60))
MODELS = st.sampled_from(["qwen3:8b", "qwen2.5:3b", "llama3.2:1b", "phi4:14b", "gemma3:4b"])
JUDGES = st.builds(
    Judge,
    model=MODELS,
    standing=st.sampled_from(["sound", "sound", "untried", "unsound"]),
    lengthy=st.builds(lambda k, more: share(k + more, k + 2 * more), st.integers(1, 60), st.integers(0, 60)),
    own=SHARES,
    flags=st.sets(st.sampled_from(["position", "length", "self"])).map(tuple),
)
SIDES = st.tuples(MODELS, st.integers(0, 3_000))
VALUES = st.sampled_from([0.0, 0.5, 1.0, None])
TEXTS = st.text(max_size=200)


@given(PICKS, PICKS)
def test_who_goes_by_the_order_alone_never_decides(one: Pick, other: Pick) -> None:
    value, words = combine(one, other)
    assert words
    if value in (0.0, 1.0):
        assert one == other


@given(st.sampled_from(["first", "second"]))
def test_a_place_is_a_tie(place: str) -> None:
    assert combine(pick(place, own_first=True), pick(place, own_first=False))[0] == 0.5


@given(JUDGES, SIDES, SIDES, VALUES)
def test_a_word_weighs_the_same_from_either_side_and_never_more_than_one(
    judge: Judge, own: tuple[str, int], peer: tuple[str, int], value: float | None
) -> None:
    weight, kin, _ = weigh(judge, own, peer, value)
    assert 0.0 <= weight <= 1.0
    assert (weight, kin) == weigh(judge, peer, own, None if value is None else 1.0 - value)[:2]
    if judge.model in (own[0], peer[0]) or judge.standing != "sound" or value is None:
        assert weight == 0.0
    if kin:
        assert weight <= 0.25


@given(PICKS, PICKS, st.floats(0.0, 1.0))
def test_both_sides_of_a_pair_say_the_same(one: Pick, other: Pick, weight: float) -> None:
    a, b = pair_events(
        Side(model="qwen3:8b", task="t1", chars=1), Side(model="phi4:14b", task="t2", chars=2), (one, other), pair="p",
        domain="d", judge="gemma3:4b", judge_digest=None, weight=weight, kin=False, at=AT, by="b",
    )  # fmt: skip
    assert a.value + b.value == 1.0
    assert a.weight == b.weight
    assert combine(*b.picks)[0] == (None if combine(one, other)[0] is None else b.value)


@given(TEXTS, TEXTS, TEXTS)
def test_what_a_judge_is_shown_can_be_taken_apart_again(prompt: str, first: str, second: str) -> None:
    """So no text can pretend to be the other one, or the end of its own."""
    body = question(prompt, first, second)
    shown = texts_of(list(body.messages))
    assert shown is not None
    assert [text.strip() for text in shown] == [text.strip() for text in (prompt, first, second)]


@given(TEXTS)
def test_reading_a_verdict_never_raises_and_never_invents(text: str) -> None:
    said = verdict(text)
    assert said is None or said in text.lower()


@given(st.integers(0, 8), st.integers(0, 8))
def test_a_judge_is_sound_only_if_it_finds_the_right_answers_of_both_lengths(shorter: int, longer: int) -> None:
    def rows(right: int, chars: tuple[int, int]) -> list[Judgement]:
        return [
            Judgement(
                kind="known",
                pair=f"{chars}{n}",
                judge="j",
                picks=("own", "own") if n < right else ("peer", "peer"),
                value=float(n < right),
                chars=chars,
            )
            for n in range(KNOWN_EACH)
        ]

    (record,) = Judges(rows(shorter, (5, 50)) + rows(longer, (50, 5))).records()
    assert (record.standing == "sound") == (min(shorter, longer) >= KNOWN_EACH - 1)


@given(st.integers(1, 400))
def test_an_interval_moves_with_its_share(n: int) -> None:
    found = [share(k, n) for k in range(n + 1)]
    assert all(a.low < b.low and a.high < b.high for a, b in pairwise(found))
