"""services.runtime.answers: each reply finds its question, over all tries of it."""

from __future__ import annotations

import asyncio

import pytest

from schemas.errors import BusError
from services.runtime.answers import TICK_S, Answers
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
    waiting = {token: answers.expect(token, "a.b", 10.0) for token in (first, second)}
    answers.arrived(reply(answers, second, b"two"))
    message = await waiting[second]
    assert message is not None
    assert message.data == b"two"
    assert not waiting[first].done()


async def test_a_late_answer_to_an_earlier_try_will_do_for_a_later_one(answers: Answers) -> None:
    token = answers.token()
    assert await answers.expect(token, "a.b", 0.0) is None
    again = answers.expect(token, "a.b", 10.0)
    answers.arrived(reply(answers, token, b"late"))
    message = await again
    assert message is not None
    assert message.data == b"late"


async def test_one_timer_gives_up_on_each_question_in_its_own_time_and_rests_when_none_waits(answers: Answers) -> None:
    short, long = answers.token(), answers.token()
    soon, later = answers.expect(short, "a.b", 0.0), answers.expect(long, "a.b", 10.0)
    assert await soon is None
    assert not later.done()
    answers.forget(short)
    answers.forget(long)
    last = answers.token()
    assert await answers.expect(last, "a.b", 2 * TICK_S) is None


async def test_an_answer_nobody_waits_for_any_more_is_dropped(answers: Answers) -> None:
    token = answers.token()
    answer = answers.expect(token, "a.b", 10.0)
    answers.arrived(reply(answers, token))
    answers.arrived(reply(answers, token))
    answers.forget(token)
    answers.arrived(reply(answers, token))
    assert answer.done()


async def test_a_lost_connection_gives_every_question_back(answers: Answers) -> None:
    waiting = [answers.expect(answers.token(), "a.b", 10.0) for _ in range(3)]
    answers.lost()
    assert await asyncio.gather(*waiting) == [None, None, None]


async def test_a_denial_is_the_error_of_who_asked_there_and_of_nobody_else(answers: Answers) -> None:
    denied, other = (
        answers.expect(answers.token(), "$JS.API.STREAM.PURGE.EVENTS", 10.0),
        answers.expect(answers.token(), "a.b", 10.0),
    )
    answers.denied('nats: permissions violation for publish to "$js.api.stream.purge.events"')
    with pytest.raises(BusError, match=r"^\$JS\.API\.STREAM\.PURGE\.EVENTS: this user may not publish there"):
        await denied
    assert not other.done()
