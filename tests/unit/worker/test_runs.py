from __future__ import annotations

from schemas.work import Body
from services.worker.runs import as_chat

USER = {"role": "user", "content": "Hi"}


def test_a_bare_prompt_becomes_a_users_message() -> None:
    assert as_chat(Body(prompt="Hi", extra={"stop": "x"})) == Body(messages=(USER,), extra={"stop": "x"})


def test_messages_and_inputs_stay_as_they_came() -> None:
    for body in (Body(messages=(USER,)), Body(inputs=("a",)), Body(messages=(USER,), prompt="ignored")):
        assert as_chat(body) is body
