"""services.runtime.answers: each reply finds its question, over all tries of it."""

from __future__ import annotations

import asyncio

import pytest

from schemas.errors import BusError
from services.runtime.answers import Answers, within
from services.runtime.wire import Arrived


def reply(answers: Answers, token: str, data: bytes = b"") -> Arrived:
    return Arrived(answers.reply(token).encode(), b"", data, None, b"1")


@pytest.fixture
def answers() -> Answers:
    made = Answers()
    made.inbox = "_INBOX_x.1"
    return made


async def test_a_reply_goes_to_its_question_and_to_no_other(answers: Answers) -> None:
    first, second = answers.token(), answers.token()
    waiting = {token: answers.expect(token, "a.b") for token in (first, second)}
    answers.arrived(reply(answers, second, b"two"))
    message = await waiting[second]
    assert message is not None
    assert message.data == b"two"
    assert not waiting[first].done()


async def test_a_late_answer_to_an_earlier_try_will_do_for_a_later_one(answers: Answers) -> None:
    token = answers.token()
    assert await within(0.0, answers.expect(token, "a.b")) is None
    again = answers.expect(token, "a.b")
    answers.arrived(reply(answers, token, b"late"))
    message = await within(10.0, again)
    assert message is not None
    assert message.data == b"late"


async def test_an_answer_nobody_waits_for_any_more_is_dropped(answers: Answers) -> None:
    token = answers.token()
    answer = answers.expect(token, "a.b")
    answers.arrived(reply(answers, token))
    answers.arrived(reply(answers, token))
    answers.forget(token)
    answers.arrived(reply(answers, token))
    assert answer.done()


async def test_a_lost_connection_gives_every_question_back(answers: Answers) -> None:
    waiting = [answers.expect(answers.token(), "a.b") for _ in range(3)]
    answers.lost()
    assert await asyncio.gather(*waiting) == [None, None, None]


async def test_a_denial_is_the_error_of_who_asked_there_and_of_nobody_else(answers: Answers) -> None:
    denied, other = (
        answers.expect(answers.token(), "$JS.API.STREAM.PURGE.EVENTS"),
        answers.expect(answers.token(), "a.b"),
    )
    answers.denied('nats: permissions violation for publish to "$js.api.stream.purge.events"')
    with pytest.raises(BusError, match=r"^\$JS\.API\.STREAM\.PURGE\.EVENTS: this user may not publish there"):
        await denied
    assert not other.done()
