from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message

from services.router.http.live import KEEP_ALIVE, Line, until_gone


async def test_work_that_ends_first_ends_the_wait() -> None:
    done: list[str] = []

    async def work() -> None:
        done.append("work")

    assert await until_gone(never, work()) is True
    assert done == ["work"]


async def test_a_client_that_is_gone_cancels_the_work_which_still_began() -> None:
    seen: list[str] = []

    async def work() -> None:
        seen.append("began")
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("ended")

    assert await until_gone(gone, work()) is False
    assert seen == ["began", "ended"]


async def test_the_rest_of_a_body_is_no_goodbye() -> None:
    messages = iter([{"type": "http.request"}, {"type": "http.request"}, {"type": "http.disconnect"}])

    async def receive() -> Message:
        return next(messages)

    assert await until_gone(receive, asyncio.Event().wait()) is False  # type: ignore[arg-type]
    assert list(messages) == []


async def test_an_error_of_the_work_is_raised() -> None:
    async def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await until_gone(never, work())


async def test_the_first_to_open_decides_the_headers() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        await asyncio.sleep(0)
        sent.append(message)

    line = Line(send)
    opened = await asyncio.gather(line.open({"a": "1"}), line.open({"a": "2"}), line.write(b"x"))
    assert opened == [True, False, None]
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert sent[0]["headers"] == [(b"a", b"1")]


async def test_a_comment_comes_only_after_silence() -> None:
    sent: list[bytes] = []
    enough = asyncio.Event()

    async def send(message: Message) -> None:
        sent.append(message["body"])
        if sent.count(KEEP_ALIVE) == 2:
            enough.set()

    line = Line(send)
    ticking = asyncio.create_task(line.keep_alive(0.01))
    await line.write(b"token")
    await enough.wait()
    ticking.cancel()
    assert sent == [b"token", KEEP_ALIVE, KEEP_ALIVE]


async def never() -> Message:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


async def gone() -> Message:
    return {"type": "http.disconnect"}
