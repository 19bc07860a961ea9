"""Scripts for the in-memory router that more than one surface is tested with: thinking, text, and tool calls in any shape."""

from __future__ import annotations

from typing import Any

from support.router_port import Play, Script

ARGUMENTS = '{"city":"Kyoto","days":3}'
CALL: dict[str, Any] = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}
OTHER: dict[str, Any] = {"id": "c2", "type": "function", "function": {"name": "clock", "arguments": "{}"}}

SHAPES: dict[str, list[list[dict[str, Any]]]] = {
    "split": [
        [{"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": ""}}],
        [{"index": 0, "function": {"arguments": ARGUMENTS[:7]}}],
        [
            {"index": 0, "function": {"arguments": ARGUMENTS[7:]}},
            {"index": 1, "id": "c2", "type": "function", "function": {"name": "clock", "arguments": ""}},
        ],
        [{"index": 1, "function": {"arguments": "{}"}}],
    ],
    "buffered": [[{"index": 0, **CALL}, {"index": 1, **OTHER}]],
    "only at the end": [],
}
"""What reaches a surface of case 35's three shapes."""


def calls(shape: str, text: str = "") -> Script:
    async def play_calls(play: Play) -> None:
        await play.start()
        if text:
            await play.say(text)
        for deltas in SHAPES[shape]:
            await play.say("", tool_calls=tuple(deltas))
        await play.complete(tool_calls=(CALL, OTHER), finish_reason="tool_calls")

    return play_calls


async def thinks(play: Play) -> None:
    await play.start()
    await play.say("", thinking="Let me")
    await play.say("", thinking=" see.")
    await play.say("It is", " 4.")
    await play.complete(thinking="Let me see.")


async def is_cut(play: Play) -> None:
    await play.start()
    await play.say("One two")
    await play.complete(finish_reason="length")


async def breaks(play: Play) -> None:
    await play.start()
    await play.say("One")
    await play.fail("disconnect", "desktop went away")
