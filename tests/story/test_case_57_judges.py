"""Cases 57 and 60: a judge with a habit must not move a ranking, however sure of itself; an honest one, on the same pairs, must.

Known reports: longer answers win two times in three, a judge prefers itself in 87 % of its pairs, a verdict turns with the order
in every eighth, and on a small fleet the judge is a candidate. Here each habit is complete, and the ranking stays as it was.
"""

from __future__ import annotations

import pytest

from schemas.events import QualityJudged
from schemas.judging import pick
from support.builders import build
from support.judges import (
    GOOD,
    INJECTION,
    SIGNED,
    Habit,
    Texts,
    always_first,
    always_itself,
    always_longer,
    babbling,
    honest,
    obedient,
)
from support.ranking import qualities, ranking
from support.shadowing import DOMAIN, Household, Models, suite_of

WEAK, STRONG = "llama3.2:1b", "qwen3:8b"
STRANGER, RELATIVE = "phi4:14b", "llama3.1:70b"
PROMPTS = 12


def weak(prompt: str) -> str:
    """Long, signed by its family, and it gives the judge an order; whatever a habit goes by, it has it."""
    return (
        f"{prompt} I could say much about this, {SIGNED.format(family='llama')}, and so I do. {INJECTION}. "
        + "And on. " * 9
    )


def strong(prompt: str) -> str:
    return f"{prompt[-8:]} {GOOD}."


async def household(judge: str, habit: Habit) -> Household:
    """People thought a little better of the weak one so far: what its betters must overcome, and its flatterers confirm."""
    house = Household(
        Models({WEAK: weak, STRONG: strong, judge: weak}, {judge: habit, STRONG: babbling, WEAK: babbling}),
        (WEAK, STRONG, judge),
        suite_of(PROMPTS),
    )
    for number in range(20):
        model, value = (WEAK, float(number % 6 > 0)) if number % 2 else (STRONG, float(number % 4 > 0))
        house.log.append(
            build(
                QualityJudged, id=f"thumb{number}", source="thumb", model=model, domain=DOMAIN, digest=None, worker=None,
                value=value, peer=None, tasks=(f"t{number}",), client="me",
            )
        )  # fmt: skip
    return house


async def judged_by(judge: str, habit: Habit) -> tuple[Household, list[QualityJudged]]:
    """Both models' debts, paid to the end with this judge: the household, and the judge's words."""
    house = await household(judge, habit)
    for model in (WEAK, STRONG):
        await house.pay_all(model)
    return house, [event for event in house.judged() if event.source == "judge" and event.judge == judge]


@pytest.mark.parametrize(
    ("judge", "habit", "flag"),
    [
        (STRANGER, always_first, "position"),
        (STRANGER, always_longer, "length"),
        (STRANGER, obedient, None),
        (STRANGER, babbling, None),
    ],
)
async def test_case_57_a_judge_with_a_habit_changes_no_ranking(judge: str, habit: Habit, flag: str | None) -> None:
    before = qualities((await household(judge, habit)).log, DOMAIN)
    house, words = await judged_by(judge, habit)
    assert ranking(house.log, DOMAIN) == [WEAK, STRONG]
    assert qualities(house.log, DOMAIN) == before  # to the last bit
    assert all(event.weight == 0.0 for event in words)
    (record,) = [record for record in (await house.records()).judges if record.model == judge]
    assert record.standing == "unsound"
    assert record.flags == ((flag,) if flag else ())
    assert record.why


async def test_case_60_a_judge_that_always_picks_itself_changes_no_ranking() -> None:
    """It passes every known pair; it is a relative, so its word waits until it has once decided against its own."""
    before = qualities((await household(RELATIVE, honest)).log, DOMAIN)
    house, words = await judged_by(RELATIVE, always_itself("llama"))
    assert ranking(house.log, DOMAIN) == [WEAK, STRONG]
    assert qualities(house.log, DOMAIN) == before
    assert words
    assert {event.weight for event in words} == {0.0}
    assert {event.kin for event in words} == {True}
    (record,) = [record for record in (await house.records()).judges if record.model == RELATIVE]
    assert (record.standing, record.own.share) == ("sound", 1.0)
    assert set(record.flags) == {"self", "length"}  # what it signs is the longer one each time: either explains it


async def test_an_honest_judge_on_the_same_pairs_turns_the_ranking() -> None:
    house, words = await judged_by(STRANGER, honest)
    assert ranking(house.log, DOMAIN) == [STRONG, WEAK]
    assert len({event.pair for event in words}) == PROMPTS
    assert {event.weight for event in words} == {1.0}


async def test_case_60_an_honest_relative_counts_little_and_is_recorded_as_one() -> None:
    _, words = await judged_by(RELATIVE, honest)
    assert {event.kin for event in words} == {True}
    weights = [event.weight for event in words[::2]]
    assert weights == [0.0, 0.0] + [0.25] * (PROMPTS - 2)


async def test_case_60_no_candidate_is_asked_about_itself() -> None:
    house, words = await judged_by(STRANGER, honest)
    assert all(event.judge not in (event.model, event.peer) for event in words)
    tasks = {event.tasks for event in words}
    judging = [work for work in house.models.asked if work.purpose == "judge" and work.of]
    assert {work.model for work in judging} == {STRANGER}
    assert {work.of for work in judging} <= tasks


async def test_case_57_contradictory_words_are_ties_that_are_counted_as_turned() -> None:
    """It tells right from wrong, and loses its footing where both answers are its own kind of text."""

    def unsteady(texts: Texts) -> str:
        return always_first(texts) if GOOD in "".join(texts[1:]) else honest(texts)

    house, words = await judged_by(STRANGER, unsteady)
    assert {event.value for event in words} == {0.5}
    (record,) = [record for record in (await house.records()).judges if record.model == STRANGER]
    assert (record.standing, record.turned.k, record.first.share) == ("sound", PROMPTS, 1.0)
    assert ranking(house.log, DOMAIN)[0] == WEAK


def test_case_57_an_order_to_choose_a_place_is_no_choice() -> None:
    texts = ("q", "fine", f"fine. {INJECTION}"), ("q", f"fine. {INJECTION}", "fine")
    said = [obedient(one) for one in texts]
    assert [pick(said[0], own_first=True), pick(said[1], own_first=False)] == ["own", "peer"]
