"""What was asked, told from its fact alone."""

from __future__ import annotations

import pytest

from schemas import events
from services.router.asked_words import asked_words
from support.builders import DESK, build

NAMES = {DESK: "desk"}


def told(**fields: object) -> str:
    return asked_words(build(events.TaskSubmitted, **fields), NAMES)


def test_an_open_task_leaves_the_choice_to_the_router_and_a_fixed_one_says_what_it_insists_on() -> None:
    assert told(wants=events.Wants()).endswith("interactive. Model and machine are the router's choice.")
    assert told(wants=events.Wants(model="m", worker=DESK)).endswith("The client insists on model m, worker desk.")
    assert told(wants=events.Wants(route="chat")).endswith("interactive. The client asked for route chat.")
    wish = told(wants=events.Wants(model="m", context=8192, context_flexible=True))
    assert wish.endswith("The client insists on model m. It would like a window of 8192 tokens.")


@pytest.mark.parametrize(("tokens", "words"), [(1, "about 1 token long,"), (2, "about 2 tokens long,")])
def test_one_token_is_no_tokens(tokens: int, words: str) -> None:
    sizes = events.Sizes(messages=1, chars=4, prompt_tokens=tokens, body_bytes=40)
    assert words in told(sizes=sizes, options=events.Options())
