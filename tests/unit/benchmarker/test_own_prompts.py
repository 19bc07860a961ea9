"""Which of the users' prompts may be compared on: one message, answered whole, and only where somebody switched it on."""

from __future__ import annotations

import msgspec

from schemas.events import PayloadRef, Sizes, TaskCompleted, TaskSubmitted
from schemas.judging import Side
from schemas.work import Body
from services.benchmarker.errand import Material, Told
from services.benchmarker.own_prompts import CHARS_MAX, KEPT, OwnPrompts
from support.builders import build
from support.judges import GOOD, honest
from support.shadowing import Household, Models

ONE = {"messages": 1, "chars": 40, "prompt_tokens": 10, "body_bytes": 90}


def after(
    task: str = "t1", *, sizes: dict[str, int] | None = None, outcome: str = "ok", kept: OwnPrompts | None = None
) -> OwnPrompts:  # fmt: skip
    prompts = kept or OwnPrompts()
    submitted = build(TaskSubmitted, task=task, sizes=Sizes(**{**ONE, **(sizes or {})}))
    answer = PayloadRef(subject=f"task.out.{task}", bytes=3)
    prompts.ran(submitted, build(TaskCompleted, task=task, domain="code", outcome=outcome, answer=answer))
    return prompts


def test_a_prompt_of_one_message_is_known_by_where_its_texts_lie() -> None:
    (asked,) = after().of("code")
    assert (asked.task, asked.answer) == ("t1", "task.out.t1")
    assert asked.body
    assert after().of("maths") == ()


def test_what_a_judge_would_see_only_in_part_is_left_out() -> None:
    for sizes in ({"messages": 3}, {"images": 1}, {"tools": 2}, {"chars": CHARS_MAX + 1}):
        assert after(sizes=sizes).of("code") == ()
    assert after(outcome="truncated").of("code") == ()
    embedded = OwnPrompts()
    done = build(TaskCompleted, domain="code", answer=PayloadRef(subject="task.out.t1", bytes=3))
    embedded.ran(msgspec.structs.replace(build(TaskSubmitted), kind="embedding"), done)
    assert embedded.of("code") == ()


def test_the_latest_are_kept() -> None:
    kept = OwnPrompts()
    for number in range(KEPT + 5):
        after(f"t{number}", kept=kept)
    assert [asked.task for asked in kept.of("code")] == [f"t{number}" for number in range(5, KEPT + 5)]


WEAK, STRONG, JUDGE = "llama3.2:1b", "qwen3:8b", "phi4:14b"


async def test_the_user_s_answer_is_compared_and_not_asked_for_again() -> None:
    models = Models({WEAK: lambda _: "weak", STRONG: lambda _: GOOD, JUDGE: lambda _: "hm"}, {JUDGE: honest})
    house = Household(models, (WEAK, STRONG, JUDGE), {})
    text = "My own question"
    material = Material(
        "own", "t1", "en", text, Body(messages=({"role": "user", "content": text},)), build(TaskSubmitted).options
    )
    told = Told(Side(model=WEAK, task="t1", chars=4), "weak")

    async def own(domain: str) -> list[tuple[Material, Told]]:
        return [(material, told)] if domain == "cooking" else []

    house.shadow._own = own
    while not house.judged():
        assert (await house.pay(WEAK, "cooking")).worked
    a, _ = house.judged()
    assert (a.suite, a.prompt, a.tasks[0], a.domain, a.value) == ("own", "t1", "t1", "cooking", 0.0)
    assert [work.model for work in models.asked if work.purpose == "shadow"] == [STRONG]
    assert (await house.pay(WEAK, "gardening")).why == "no suite asks about gardening"
