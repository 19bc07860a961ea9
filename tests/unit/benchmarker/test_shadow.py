"""Paying a debt of quality: the judge is tested first, both answers and both orders are asked, and only what was seen is said."""

from __future__ import annotations

import msgspec
import pytest

from schemas.events import BenchCompleted, QualityJudged
from services.benchmarker.panel import Panel
from services.benchmarker.suites import suites
from support.judges import GOOD, Texts, honest
from support.shadowing import Household, Models, suite_of

WEAK, STRONG, JUDGE = "llama3.2:1b", "qwen3:8b", "phi4:14b"


def weak(prompt: str) -> str:
    return f"Something about {prompt}"


def strong(prompt: str) -> str:
    return f"Something about {prompt}, {GOOD}"


def household(habit=honest, prompts: int = 3) -> Household:  # type: ignore[no-untyped-def]
    models = Models({WEAK: weak, STRONG: strong, JUDGE: weak}, {JUDGE: habit})
    return Household(models, (WEAK, STRONG, JUDGE), suite_of(prompts))


async def after_test(house: Household) -> Household:
    """The strongest is tested first, and cannot judge; then the judge is, and can."""
    for _ in range(11):
        assert "was tested" in (await house.pay(WEAK)).why
    return house


def known_of(house: Household, model: str) -> list[BenchCompleted]:
    return [event for event in house.log if isinstance(event, BenchCompleted) and event.model == model]


async def test_a_judge_is_tested_before_its_first_pair() -> None:
    house = await after_test(household())
    known = known_of(house, JUDGE)
    assert (len(known), {event.grade for event in known}, {event.suite for event in known}) == (
        16,
        {1.0},
        {"known-pairs"},
    )
    assert {work.purpose for work in house.models.asked} == {"judge"}
    assert not house.judged()


async def test_who_fails_the_test_is_asked_no_more_of_it_than_shows_why() -> None:
    house = await after_test(household())
    assert len(known_of(house, STRONG)) == 6
    standings = {record.model: record.standing for record in (await house.records()).judges}
    assert standings == {STRONG: "unsound", JUDGE: "sound"}


async def test_a_pair_is_two_answers_and_two_words() -> None:
    house = await after_test(household())
    house.models.asked.clear()
    assert (await house.pay(WEAK)).why == f"{WEAK} against {STRONG}: peer in both orders"
    assert [(work.purpose, work.model) for work in house.models.asked] == [
        ("shadow", WEAK),
        ("shadow", STRONG),
        ("judge", JUDGE),
        ("judge", JUDGE),
    ]
    a, b = house.judged()
    assert (a.model, a.value, a.weight, b.model, b.value, b.weight) == (WEAK, 0.0, 1.0, STRONG, 1.0, 1.0)
    assert (a.judge, a.kin, a.picks, a.suite) == (JUDGE, False, ("peer", "peer"), "writing")
    assert house.models.asked[2].of == a.tasks
    assert a.comment == "peer in both orders; drawn with seed 12"  # who has it can draw again


async def test_an_answer_to_a_suite_s_prompt_is_asked_for_once() -> None:
    house = await after_test(household(prompts=1))
    house.panel = type(house.panel)(
        seats=(*house.panel.seats, *Household(house.models, ("gemma3:4b",), {}).panel.seats)
    )
    house.models._voices["gemma3:4b"] = weak
    await house.pay_all(WEAK)
    shadows = [work.model for work in house.models.asked if work.purpose == "shadow"]
    assert len(shadows) == len(set(shadows))


async def test_each_prompt_is_met_on_once_and_then_it_says_why_not() -> None:
    house = household(prompts=2)
    await house.pay_all(WEAK)
    assert len({event.prompt for event in house.judged()}) == 2
    assert "no other model can judge" in (await house.pay(WEAK)).why


async def test_case_57_a_judge_that_babbles_is_counted_and_not_asked_again() -> None:
    house = household(lambda _: "The first one, I think.")
    await house.pay_all(WEAK)
    known = known_of(house, JUDGE)
    assert {event.grade for event in known} == {None}
    assert {event.picks for event in known} == {("malformed", "malformed")}
    record = (await house.records()).judges[0]
    assert (record.model, record.standing, record.malformed.share) == (JUDGE, "unsound", 1.0)
    assert not house.judged()
    assert "no other model can judge" in (await house.pay(WEAK)).why


async def test_case_57_a_missing_verdict_is_counted_with_no_weight() -> None:
    house = await after_test(household())
    asked: list[Texts] = []

    def silent_once(texts: Texts) -> str | None:
        asked.append(texts)
        return honest(texts) if len(asked) > 1 else None

    house.models._habits[JUDGE] = silent_once  # type: ignore[assignment]
    await house.pay(WEAK)
    a, b = house.judged()
    assert (a.picks, a.weight, b.weight, a.value) == (("missing", "peer"), 0.0, 0.0, 0.5)
    record = (await house.records()).judges[0]
    assert (record.missing.k, record.pairs, record.counted) == (1, 1, 0)


async def test_a_judge_that_does_not_answer_is_left_alone_for_a_while() -> None:
    house = household()
    house.models.fails[STRONG] = "stall: it stopped"
    assert (await house.pay(WEAK)).worked
    before = len(house.models.asked)
    assert not (await house.pay(WEAK)).worked
    assert len(house.models.asked) == before


@pytest.mark.parametrize("model", [WEAK, STRONG])
async def test_without_an_answer_nothing_is_said(model: str) -> None:
    house = await after_test(household())
    house.models.fails[model] = "oom: no memory"
    assert "gave no answer" in (await house.pay(WEAK)).why
    assert not house.judged()


async def test_work_that_was_taken_back_is_no_missing_verdict() -> None:
    house = await after_test(household())
    house.models.fails[JUDGE] = "cancelled: a task waits"
    assert (await house.pay(WEAK)).why == "cancelled: a task waits"
    assert not house.judged()
    assert not any(isinstance(event, QualityJudged) for event in house.log)


async def test_where_a_check_can_tell_no_judge_is_asked() -> None:
    maths = suites()["maths"]
    models = Models({WEAK: lambda _: "I do not know.", STRONG: strong}, {})
    house = Household(models, (WEAK, STRONG), {"maths": maths})
    outcome = await house.pay(WEAK, "maths")
    assert outcome.worked
    done, judged = house.log
    assert isinstance(done, BenchCompleted)
    assert isinstance(judged, QualityJudged)
    assert (judged.source, judged.value, judged.weight, judged.peer) == ("check", done.grade, 1.0, None)
    assert (judged.judge, judged.tasks) == (done.check, (done.task,))
    assert {work.purpose for work in models.asked} == {"shadow"}


async def test_a_domain_without_a_suite_is_not_payable() -> None:
    assert await household().pay(WEAK, "cooking") == (False, "no suite asks about cooking")


async def test_a_model_that_was_exchanged_meets_the_others_again() -> None:
    house = await after_test(household(prompts=1))
    await house.pay_all(WEAK)
    assert len(house.judged()) == 2
    seats = house.panel.seats
    exchanged = [msgspec.structs.replace(seat, digest="new") if seat.model == STRONG else seat for seat in seats]
    house.panel = Panel(seats=tuple(exchanged))
    await house.pay_all(WEAK)
    assert [(event.model, event.peer_digest) for event in house.judged()[2:]] == [(WEAK, "new"), (STRONG, None)]


async def test_two_that_lost_to_the_third_meet_each_other_too() -> None:
    def fair(prompt: str) -> str:
        return f"Rather {GOOD} about {prompt}"

    def better(prompt: str) -> str:
        return f"{GOOD}, very {GOOD} about {prompt}"

    models = Models({WEAK: weak, JUDGE: fair, STRONG: better}, dict.fromkeys((WEAK, STRONG, JUDGE), honest))
    house = Household(models, (WEAK, STRONG, JUDGE), suite_of(6))
    for model in (WEAK, JUDGE, STRONG):
        while sum(event.model == model for event in house.judged()) < 3:
            assert (await house.pay(model)).worked
    met = {frozenset((a.model, b.model)) for a, b in zip(*[iter(house.judged())] * 2, strict=True)}
    assert met == {frozenset(pair) for pair in ((WEAK, JUDGE), (WEAK, STRONG), (JUDGE, STRONG))}
