from __future__ import annotations

import asyncio

from schemas.work import TokenChunk
from services.worker.backends.port import Chunk
from services.worker.tokens import TokenSender


class Wire:
    """Remembers what was sent; ``up`` False refuses."""

    def __init__(self) -> None:
        self.sent: list[TokenChunk] = []
        self.up = True
        self.arrived = asyncio.Event()

    async def send(self, chunk: TokenChunk) -> bool:
        if self.up:
            self.sent.append(chunk)
            self.arrived.set()
        return self.up

    @property
    def text(self) -> str:
        return "".join(chunk.text for chunk in self.sent)


async def test_the_first_piece_goes_at_once_and_the_rest_together() -> None:
    wire = Wire()
    sender = TokenSender("t", 1, wire.send)
    for letter in "abcdef":
        await sender.add(Chunk(text=letter))
    assert wire.text == "a"
    await sender.close()
    assert [chunk.text for chunk in wire.sent] == ["a", "bcdef"]
    assert [chunk.index for chunk in wire.sent] == [0, 1]


async def test_pieces_of_one_call_that_go_together_are_one_piece() -> None:
    """OpenAI writes no call twice into a chunk: clients that read the first alone would lose the rest of its arguments."""
    wire = Wire()
    sender = TokenSender("t", 1, wire.send)
    await sender.add(Chunk(text="I call."))
    begun = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}
    for arguments in ('{"a":', " 1}"):
        await sender.add(Chunk(tool_calls=(begun,)))
        begun = {"index": 0, "function": {"arguments": arguments}}
    await sender.add(Chunk(tool_calls=(begun, {"index": 1, "id": "c2", "function": {"name": "g", "arguments": "{}"}})))
    await sender.close()
    whole = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    assert wire.sent[-1].tool_calls == (whole, {"index": 1, "id": "c2", "function": {"name": "g", "arguments": "{}"}})


async def test_what_was_gathered_goes_out_without_another_piece() -> None:
    wire = Wire()
    sender = TokenSender("t", 1, wire.send)
    await sender.add(Chunk(text="a"))
    wire.arrived.clear()
    await sender.add(Chunk(thinking="b", tool_calls=({"index": 0},)))
    await wire.arrived.wait()
    assert (wire.sent[1].thinking, wire.sent[1].tool_calls) == ("b", ({"index": 0},))
    await sender.close()
    await sender.close()
    assert len(wire.sent) == 2


async def test_pieces_wait_for_a_wire_that_is_down_and_the_index_has_no_hole() -> None:
    wire = Wire()
    sender = TokenSender("t", 1, wire.send)
    wire.up = False
    for letter in "abc":
        await sender.add(Chunk(text=letter))
    await sender.flush()
    wire.up = True
    await sender.close()
    assert [(chunk.index, chunk.text) for chunk in wire.sent] == [(0, "abc")]


async def test_progress_alone_sends_nothing() -> None:
    wire = Wire()
    sender = TokenSender("t", 1, wire.send)
    await sender.add(Chunk())
    await sender.close()
    assert wire.sent == []
