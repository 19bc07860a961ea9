"""What a reader gets: everything so far, nothing twice, never a wrong text."""

from __future__ import annotations

from schemas.work import Answer, TokenChunk
from services.router.follow import Channels
from services.router.port import EndUpdate, RestartUpdate, State, StatusUpdate, TaskStatus, TokenUpdate, Update


def chunk(index: int, text: str, attempt: int = 1) -> TokenChunk:
    return TokenChunk(task="t", attempt=attempt, index=index, text=text)


def status(state: State = "completed") -> TaskStatus:
    return TaskStatus(task="t", state=state)


def answer(text: str, attempt: int = 1) -> Answer:
    return Answer(task="t", attempt=attempt, model="m", worker="w", text=text)


class Reader:
    """Joins at once; ``seen`` is what it has been told by now."""

    def __init__(self, channels: Channels) -> None:
        self.channels = channels
        self.channel, self.queue = channels.join("t")

    def seen(self) -> list[Update]:
        return [self.queue.get_nowait() for _ in range(self.queue.qsize())]

    def text(self) -> str:
        """What it shows: a restart begins with an empty page."""
        shown = ""
        for update in self.seen():
            if isinstance(update, RestartUpdate):
                shown = ""
            elif isinstance(update, TokenUpdate):
                shown += update.text
        return shown


def opened(*chunks: TokenChunk) -> Channels:
    channels = Channels()
    channels.open("t")
    for each in chunks:
        channels.token(each, "w")
    return channels


def test_a_late_reader_gets_status_tokens_and_end_in_order() -> None:
    channels = opened(chunk(0, "a"))
    channels.moved(status("running"))
    channels.ended(status(), answer("ab"), now=1.0)
    kinds = [type(update).__name__ for update in Reader(channels).seen()]
    assert kinds == ["StatusUpdate", "TokenUpdate", "TokenUpdate", "EndUpdate"]


def test_what_was_lost_on_the_way_comes_from_the_stored_answer() -> None:
    channels = opened()
    reader = Reader(channels)
    for each in (chunk(0, "one "), chunk(2, "three "), chunk(3, "four")):
        channels.token(each, "w")
    channels.ended(status(), answer("one two three four"), now=1.0)
    assert reader.text() == "one two three four"


def test_a_token_that_comes_twice_is_shown_once() -> None:
    channels = opened()
    reader = Reader(channels)
    for each in (chunk(0, "a"), chunk(0, "a"), chunk(1, "b"), chunk(0, "a")):
        channels.token(each, "w")
    assert reader.text() == "ab"


def test_a_new_attempt_starts_over_and_the_old_ones_stragglers_are_dropped() -> None:
    channels = opened()
    reader = Reader(channels)
    for each in (chunk(0, "half"), chunk(0, "whole", attempt=2), chunk(1, " answer"), chunk(1, " one", attempt=2)):
        channels.token(each, "w")
    assert reader.text() == "whole one"


def test_no_restart_is_told_to_who_has_seen_nothing() -> None:
    channels = opened(chunk(0, "x", attempt=2))
    assert not any(isinstance(update, RestartUpdate) for update in Reader(channels).seen())


def test_an_answer_of_another_attempt_replaces_what_was_shown() -> None:
    channels = opened(chunk(0, "half of the first"))
    reader = Reader(channels)
    channels.ended(status(), answer("the second", attempt=2), now=1.0)
    assert reader.text() == "the second"


def test_a_text_that_is_not_the_stored_one_is_taken_back() -> None:
    channels = opened(chunk(0, "wrong"))
    reader = Reader(channels)
    channels.ended(status(), answer("right"), now=1.0)
    assert reader.text() == "right"


def test_a_status_is_told_when_it_changes_and_nothing_after_the_end() -> None:
    channels = opened()
    reader = Reader(channels)
    for state in ("waiting", "waiting", "running"):
        channels.moved(status(state))  # type: ignore[arg-type]
    channels.ended(status("failed"), None, now=1.0)
    channels.moved(status("running"))
    channels.token(chunk(0, "late"), "w")
    seen = reader.seen()
    assert [u.status.state for u in seen if isinstance(u, StatusUpdate | EndUpdate)] == ["waiting", "running", "failed"]


def test_a_task_is_abandoned_when_its_last_reader_was_gone_for_the_grace_time() -> None:
    channels = opened()
    assert channels.abandoned(100.0, 5.0) == []  # never had one: somebody polls
    first, second = Reader(channels), Reader(channels)
    channels.leave(first.channel, first.queue, 10.0)
    assert channels.abandoned(100.0, 5.0) == []
    channels.leave(second.channel, second.queue, 20.0)
    assert channels.abandoned(24.0, 5.0) == []
    assert channels.abandoned(25.0, 5.0) == ["t"]
    Reader(channels)
    assert channels.abandoned(100.0, 5.0) == []


def test_channels_are_forgotten_when_ended_or_left_and_nobodys_task() -> None:
    channels = opened()
    channels.forget(1e9, 60.0, lambda task: True)
    assert channels.get("t") is not None  # open, though nobody reads
    reader = Reader(channels)
    channels.leave(reader.channel, reader.queue, 10.0)
    channels.forget(100.0, 60.0, lambda task: True)
    assert channels.get("t") is not None
    channels.forget(100.0, 60.0, lambda task: False)  # no task of that name is known
    assert channels.get("t") is None
    channels = opened()
    channels.ended(status(), None, now=10.0)
    channels.forget(69.0, 60.0, lambda task: False)
    assert channels.get("t") is not None
    channels.forget(71.0, 60.0, lambda task: False)
    assert channels.get("t") is None


def test_an_ended_channel_that_is_still_read_is_kept_until_its_reader_has_left() -> None:
    channels = opened()
    reader = Reader(channels)
    channels.ended(status(), None, now=10.0)
    channels.forget(71.0, 60.0, lambda task: False)
    assert channels.get("t") is not None
    channels.leave(reader.channel, reader.queue, 72.0)
    channels.forget(132.0, 60.0, lambda task: False)
    assert channels.get("t") is None


def test_vectors_are_kept_for_nobody_and_a_text_for_who_comes_late() -> None:
    channels = opened()
    reader = Reader(channels)
    vectors = Answer(task="t", attempt=1, model="m", worker="w", text="", vectors=((1.0, 2.0),))
    channels.ended(status(), vectors, now=0.0)
    assert isinstance(reader.seen()[-1], EndUpdate)
    channels.leave(reader.channel, reader.queue, now=1.0)
    assert channels.get("t") is None
    late = Reader(channels)
    assert late.seen() == [], "the router looks it up again"
    channels.forget(now=100.0, after_s=60.0, is_open=lambda _: True)
    channels.ended(status(), vectors, now=100.0)
    assert isinstance(late.seen()[-1], EndUpdate)
    channels.leave(late.channel, late.queue, now=101.0)
    channels.forget(now=200.0, after_s=60.0, is_open=lambda _: True)
    assert channels.get("t") is None


async def test_reading_ends_with_the_end() -> None:
    channels = opened(chunk(0, "a"))
    channels.ended(status(), answer("a"), now=1.0)
    _, queue = channels.join("t")
    assert [type(u).__name__ async for u in channels.read(queue)] == ["TokenUpdate", "EndUpdate"]


def test_tool_calls_come_once() -> None:
    channels = opened(TokenChunk(task="t", attempt=1, index=0, tool_calls=({"id": "c1"},)))
    reader = Reader(channels)
    channels.ended(status(), Answer(task="t", attempt=1, model="m", worker="w", tool_calls=({"id": "c1"},)), now=1.0)
    assert [u.tool_calls for u in reader.seen() if isinstance(u, TokenUpdate)] == [({"id": "c1"},)]
    late = opened()
    late.ended(status(), Answer(task="t", attempt=1, model="m", worker="w", tool_calls=({"id": "c1"},)), now=1.0)
    assert [u.tool_calls for u in Reader(late).seen() if isinstance(u, TokenUpdate)] == [({"index": 0, "id": "c1"},)]


def test_case_35_a_reader_that_missed_a_piece_of_a_call_gets_the_rest_of_it() -> None:
    first = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": '{"a"'}}
    channels = opened(TokenChunk(task="t", attempt=1, index=0, tool_calls=(first,)))
    channels.token(
        TokenChunk(task="t", attempt=1, index=2, tool_calls=({"index": 0, "function": {"arguments": "}"}},)), "w"
    )
    calls = ({"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},)
    reader = Reader(channels)
    channels.ended(status(), Answer(task="t", attempt=1, model="m", worker="w", tool_calls=calls), now=1.0)
    rest = ({"index": 0, "function": {"arguments": ":1}"}},)
    assert [u.tool_calls for u in reader.seen() if isinstance(u, TokenUpdate)] == [(first,), rest]


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
