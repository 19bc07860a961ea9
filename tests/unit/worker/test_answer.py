from __future__ import annotations

from services.worker.answer import Assembled
from services.worker.backends.port import Chunk, Progress


def test_texts_and_thinking_are_joined_in_order() -> None:
    answer = Assembled()
    for chunk in (Chunk(thinking="a"), Chunk(text="b"), Chunk(text="c", thinking="d")):
        answer.add(chunk)
    answer.add(Chunk(progress=Progress(processed=1, total=2)))
    assert (answer.text, answer.thinking, answer.pieces) == ("bc", "ad", 3)


def test_case_35_split_tool_calls_become_whole_in_the_order_of_their_index() -> None:
    answer = Assembled()
    deltas = [
        {"index": 1, "id": "c2", "function": {"name": "late", "arguments": "{}"}},
        {"index": 0, "id": "c1", "type": "function", "function": {"name": "wea", "arguments": ""}},
        {"index": 0, "function": {"name": "ther", "arguments": '{"city":'}},
        {"index": 0, "function": {"arguments": '"x"}'}},
    ]
    for delta in deltas:
        answer.add(Chunk(tool_calls=(delta,)))
    assert answer.tool_calls == (
        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"x"}'}},
        {"id": "c2", "type": "function", "function": {"name": "late", "arguments": "{}"}},
    )
