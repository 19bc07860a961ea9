"""A judge's record: which habits are found, how sure that is, and what its word counts then."""

from __future__ import annotations

import pytest

from schemas.bias import Judge, Judges, by_key, share, weigh
from schemas.events import BenchCompleted, Pick, QualityJudged
from schemas.judgements import KNOWN, Judgement, judgement_of
from schemas.judging import Side, combine, pair_events
from support.builders import AT, build

JUDGE = "phi4:14b"


def known(name: str, *picks: Pick, shorter: bool, judge: str = JUDGE) -> Judgement:
    chars = (10, 50) if shorter else (50, 10)
    return Judgement(kind="known", pair=name, judge=judge, value=combine(*picks)[0], picks=picks, chars=chars)


def known_all(*picks: Pick, n: int = 8, longer: tuple[Pick, Pick] | None = None) -> list[Judgement]:
    rows = [known(f"s{i}", *picks, shorter=True) for i in range(n)]
    return rows + [known(f"l{i}", *(longer or picks), shorter=False) for i in range(n)]


def pair(
    name: str,
    *picks: Pick,
    model: str = "qwen3:8b",
    peer: str = "llama3.2:3b",
    chars: tuple[int, int] = (100, 100),
    tasks: tuple[str, str] | None = None,
) -> Judgement:
    return Judgement(
        kind="pair",
        pair=name,
        judge=JUDGE,
        model=model,
        peer=peer,
        value=combine(*picks)[0],
        weight=1.0,
        picks=picks,
        chars=chars,
        tasks=tasks or (f"{name}1", f"{name}2"),
    )


def record(*rows: Judgement) -> Judge:
    (found,) = Judges(rows).records()
    return found


def weight(judge: Judge | None, value: float | None = 1.0, own: tuple[str, int] = ("qwen3:8b", 100)) -> float:
    return weigh(judge, own, ("llama3.2:3b", 100), value)[0]


def test_who_was_never_tested_counts_nothing() -> None:
    assert weigh(None, ("qwen3:8b", 1), ("llama3.2:3b", 1), 1.0) == (0.0, False, "never tested on known pairs")
    assert weight(record(pair("p", "own", "own"))) == 0.0


def test_a_judge_that_finds_the_right_answers_counts_fully() -> None:
    judge = record(*known_all("own", "own"))
    assert (judge.standing, judge.flags, judge.why) == ("sound", (), "it was right in 16 of 16 known pairs")
    assert weight(judge) == weight(judge, 0.5) == 1.0
    assert weight(judge, None) == 0.0


def test_one_miss_of_each_kind_is_forgiven_and_a_second_is_not() -> None:
    rows = known_all("own", "own")
    one = [known("s0", "tie", "tie", shorter=True), known("l0", "peer", "peer", shorter=False)]
    assert record(*rows, *one).standing == "sound"
    two = record(*rows, *one, known("s1", "own", "peer", shorter=True))
    assert two.standing == "unsound"
    assert "6 of 8 known pairs where that is the shorter" in two.why
    assert weight(two) == 0.0


def test_half_of_the_known_pairs_are_not_enough_to_be_trusted() -> None:
    assert record(*known_all("own", "own", n=7)).standing == "untried"


def test_a_known_pair_without_an_answer_is_asked_again() -> None:
    rows = [known("s0", "own", "missing", shorter=True), known("s1", "malformed", "own", shorter=True)]
    judges = Judges(rows)
    assert judges.known(JUDGE, None) == {"s1"}
    (found,) = judges.records()
    assert (found.missing.k, found.malformed.k, found.missing.n) == (1, 1, 4)
    assert found.shorter.n == 1


def test_case_57_always_first_is_found_by_the_known_pairs_and_named() -> None:
    judge = record(*known_all("own", "peer", n=3))
    assert (judge.standing, judge.flags) == ("unsound", ("position",))
    assert (judge.turned.k, judge.first.k, judge.first.n) == (6, 6, 6)


def test_case_57_always_longer_is_found_by_the_known_pairs_and_named() -> None:
    judge = record(*known_all("peer", "peer", longer=("own", "own"), n=3))
    assert (judge.standing, judge.flags) == ("unsound", ("length",))
    assert judge.lengthy.k == judge.lengthy.n == 6


def test_case_57_a_liking_for_length_is_taken_off_what_is_proven_of_it() -> None:
    rows = [pair(f"p{i}", "own", "own", chars=(300, 100)) for i in range(40)]
    judge = record(*known_all("own", "own"), *rows)
    assert (judge.standing, judge.flags) == ("sound", ("length",))
    longer = weigh(judge, ("qwen3:8b", 300), ("llama3.2:3b", 100), 1.0)[0]
    assert longer == pytest.approx((1 - judge.lengthy.low) / judge.lengthy.low)
    assert 0.0 < longer < 1.0
    assert weigh(judge, ("llama3.2:3b", 100), ("qwen3:8b", 300), 0.0)[0] == longer  # the same from the other side
    assert (
        weigh(judge, ("qwen3:8b", 100), ("llama3.2:3b", 300), 1.0)[0] == 1.0
    )  # the shorter won: no habit explains that
    assert weigh(judge, ("qwen3:8b", 300), ("llama3.2:3b", 100), 0.5)[0] == 1.0


def test_case_60_a_judge_never_counts_about_itself() -> None:
    judge = record(*known_all("own", "own"))
    assert weigh(judge, (JUDGE, 1), ("qwen3:8b", 1), 1.0) == (0.0, True, "it would judge itself")
    assert weigh(judge, ("qwen3:8b", 1), (JUDGE, 1), 0.0)[:2] == (0.0, True)


def test_case_60_a_relative_counts_little_and_only_once_it_has_decided_against_its_own() -> None:
    mine, kin_of = ("phi3:mini", 100), ("llama3.2:3b", 100)
    rows = known_all("own", "own")
    assert weigh(record(*rows), mine, kin_of, 0.0)[:2] == (0.0, True)
    rows += [pair(f"p{i}", "peer", "peer", model="phi3:mini") for i in range(2)]
    assert weigh(record(*rows), mine, kin_of, 1.0) == (0.25, True, "related")


def test_case_60_who_favours_its_own_family_is_flagged_and_not_believed_about_it() -> None:
    rows = [pair(f"p{i}", "own", "own", model="phi3:mini") for i in range(20)]
    rows += [pair(f"q{i}", "peer", "peer", model="phi3:mini") for i in range(2)]
    judge = record(*known_all("own", "own"), *rows)
    assert judge.flags == ("self",)
    assert weigh(judge, ("phi3:mini", 1), ("llama3.2:3b", 1), 1.0)[0] == 0.0
    assert weight(judge) == 1.0  # about strangers its word counts as before


def test_of_two_relatives_it_favours_neither() -> None:
    judge = record(*known_all("own", "own"), pair("p", "own", "own", model="phi3:mini", peer="phi4-mini"))
    assert judge.own.n == 0
    assert weigh(judge, ("phi3:mini", 1), ("phi4-mini", 1), 1.0)[:2] == (0.25, True)


def test_another_digest_is_another_judge() -> None:
    rows = known_all("own", "own")
    other = Judgement(kind="pair", pair="p", judge=JUDGE, judge_digest="sha256:bb", picks=("own", "own"), value=1.0)
    records = by_key(Judges([*rows, other]).records())
    assert records[JUDGE, None].standing == "sound"
    assert records[JUDGE, "sha256:bb"].standing == "untried"


def test_people_s_picks_and_thumbs_are_held_against_the_verdicts() -> None:
    rows = [
        pair("a", "own", "own", tasks=("t1", "t2")),
        pair("b", "own", "own", tasks=("t3", "t4")),
        pair("c", "own", "own", tasks=("t5", "t6")),
        pair("d", "own", "tie", tasks=("t7", "t8")),
        Judgement(kind="human", model="llama3.2:3b", peer="qwen3:8b", value=0.0, tasks=("t2", "t1")),
        Judgement(kind="human", value=1.0, tasks=("t3",), client="me"),
        Judgement(kind="human", value=0.0, tasks=("t3",), client="me"),  # the latest thumb counts
        Judgement(kind="human", value=1.0, tasks=("t4",), client="me"),
        Judgement(kind="human", value=1.0, tasks=("t5",), client="me"),
    ]
    judge = record(*rows)
    assert (judge.human.k, judge.human.n) == (1, 2)


def test_what_came_twice_counts_once() -> None:
    rows = [*known_all("own", "own"), pair("p", "own", "peer")]
    assert record(*rows, *rows) == record(*rows)


def test_an_interval_holds_its_share_and_narrows() -> None:
    for n in (1, 6, 50, 5_000):
        for k in (0, n // 3, n):
            found = share(k, n)
            assert found.share is not None
            assert 0.0 <= found.low <= found.share <= found.high <= 1.0
    assert share(0, 0).share is None
    assert share(600, 1000).low > share(6, 10).low


def test_rows_are_made_of_facts_and_of_one_side_of_a_pair_only() -> None:
    side = Side(model="qwen3:8b", task="t1", chars=120)
    a, b = pair_events(
        side,
        Side(model="llama3.2:3b", task="t2", chars=80),
        ("own", "malformed"),
        pair="p1",
        domain="code",
        judge=JUDGE,
        judge_digest="sha256:aa",
        weight=1.0,
        kin=False,
        at=AT,
        by="b",
    )
    row = judgement_of(a)
    assert row is not None
    assert (row.kind, row.pair, row.judge, row.value, row.chars) == ("pair", "p1", JUDGE, None, (120, 80))
    assert judgement_of(b) is None
    done = build(
        BenchCompleted, suite=KNOWN, prompt="sum-en", model=JUDGE, picks=("own", "own"), chars=(2, 9), grade=1.0
    )
    assert judgement_of(done) == Judgement(
        kind="known",
        pair="sum-en",
        judge=JUDGE,
        judge_digest=done.digest,
        domain=done.domain,
        value=1.0,
        picks=("own", "own"),
        chars=(2, 9),
    )
    assert judgement_of(build(BenchCompleted, suite="code", model=JUDGE)) is None
    assert judgement_of(build(QualityJudged, source="signal")) is None
