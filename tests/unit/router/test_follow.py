"""What readers of a task are told, in which order, when pieces and facts overtake each other."""

from __future__ import annotations

from schemas.work import TokenChunk
from services.router.follow import Channels
from services.router.port import StatusUpdate, TaskStatus, TokenUpdate, Update

FIRST = TokenChunk(task="t", attempt=1, index=0, text="a")


def told(status: TaskStatus, *chunks: TokenChunk) -> list[Update]:
    """To a reader that was there from the beginning."""
    channels = Channels()
    channels.open("t")
    channels.moved(status)
    _, queue = channels.join("t")
    for chunk in chunks:
        channels.token(chunk, "w1")
    return [queue.get_nowait() for _ in range(queue.qsize())]


def test_a_token_that_overtakes_its_start_names_the_worker_first() -> None:
    for status in (
        TaskStatus(task="t", state="released", attempt=1, expected_worker="w2"),
        TaskStatus(task="t", state="waiting", position=1, reason="routing"),
    ):
        _, started, token = told(status, FIRST)
        assert isinstance(started, StatusUpdate) and isinstance(token, TokenUpdate)
        assert (started.status.state, started.status.worker, started.status.attempt) == ("running", "w1", 1)
        assert (started.status.position, started.status.reason) == (None, None)


def test_a_token_of_an_attempt_that_failed_starts_nothing() -> None:
    waiting_again = TaskStatus(task="t", state="waiting", attempt=1)
    assert [u.status.state for u in told(waiting_again, FIRST) if isinstance(u, StatusUpdate)] == ["waiting"]


def test_a_start_is_told_once() -> None:
    running = TaskStatus(task="t", state="running", attempt=1, worker="w1")
    assert len(told(running, FIRST, TokenChunk(task="t", attempt=1, index=1, text="b"))) == 3
