"""A model server whose prompts say how it answers: ``say 40``, ``after 3 s``, ``every 50 ms``, ``think 4``, ``fail after 9``.

Answers "what did the backend get, when did each stream end there, and who ended it?". It has OpenAI's form and llama.cpp's
face, sees images and calls no tools. ``requests`` are in the order of their arrival; times are the event loop's.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from support.listener import Listener

MODEL = "mill"
TALE = """\
A mill wheel needs water with a steady flow, and a river seldom has one. A *headrace* is the channel that takes the water out of \
the river, upstream, and leads it along the slope to the wheel:

1. A **weir** holds the river back, so that there is always enough.
2. The **headrace** leads it on with hardly any fall, so that none of its height is lost.
3. At the **sluice** the miller decides how much of it does the work.

What the wheel does not need goes over the spillway, back into the river.""".split(" ")
"""The answer to a prompt that says nothing of words."""
JUDGING = "Which answer serves the request better?"
"""A judge's question, which holds the prompt too: the answers are the same words, and it says so."""
SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
JSON = "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"


@dataclass
class Heard:
    """One request; ``gone_at`` is when its client closed it, ``ended_at`` when it was answered whole."""

    body: dict[str, Any]
    began_at: float
    said: int = 0
    gone_at: float | None = None
    ended_at: float | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def prompt(self) -> str:
        """The last message's text."""
        content = self.body["messages"][-1]["content"]
        return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


class PacedBackend(Listener):
    """``async with PacedBackend() as backend: backend.url``. ``running`` counts its streams now, ``most`` the most at once."""

    def __init__(self, *models: str) -> None:
        super().__init__()
        self.models = models or (MODEL,)
        self.requests: list[Heard] = []
        self.running = self.most = 0

    def heard(self, words: str) -> Heard:
        """The latest request whose last message holds the words, a chat's and not its title's; an AssertionError for none."""
        found = [heard for heard in self.requests if words in heard.prompt and not heard.prompt.startswith("### Task")]
        assert found, f"no request says {words!r}"
        return found[-1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, path, _ = head.split("\r\n", 1)[0].split(" ")
        if method == "POST":
            length = int(re.findall(r"content-length: *(\d+)", head, re.IGNORECASE)[0])
            await self._chat(json.loads(await reader.readexactly(length)), reader, writer)
            return
        sees = {"capabilities": ["completion", "multimodal"]}
        listed = [{"name": name, "model": name, **sees} for name in self.models]
        data = [{"id": name, "object": "model", "owned_by": "llamacpp", **sees} for name in self.models]
        pages = {"/v1/models": {"object": "list", "models": listed, "data": data}}
        page = json.dumps(pages.get(path, {"error": {"message": "not here"}})).encode()
        writer.write((JSON % (200 if path in pages else 404, len(page))).encode() + page)
        await writer.drain()

    async def _chat(self, body: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        heard = Heard(body, loop.time())
        self.requests.append(heard)
        self.running += 1
        self.most = max(self.most, self.running)
        leaving = asyncio.create_task(reader.read(1))
        writer.write(SSE)
        try:
            async for piece in self._pieces(heard, leaving):
                writer.write(b"data: " + json.dumps({"model": body["model"], **piece}).encode() + b"\n\n")
            if not leaving.done():
                writer.write(b"data: [DONE]\n\n")
                heard.ended_at = loop.time()
        finally:
            if heard.ended_at is None:
                heard.gone_at = loop.time()
            self.running -= 1
            leaving.cancel()
            heard.over.set()

    async def _pieces(self, heard: Heard, leaving: asyncio.Task[bytes]) -> AsyncIterator[dict[str, Any]]:
        loop, asked = asyncio.get_running_loop(), heard.prompt
        fails, thoughts = _of(asked, r"fail after (\d+)", -1), _of(asked, r"think (\d+)", 0)
        pace_s, due = _of(asked, r"every (\d+) ms", 10) / 1e3, loop.time() + _of(asked, r"after (\d+) s", 0)
        answer = [f"word{n} " for n in range(_of(asked, r"say (\d+)", 5))]
        if JUDGING in asked:
            answer, thoughts = ['{"better": "tie"}'], 0
        elif "say" not in asked and not thoughts:
            answer = [f"{word} " for word in TALE]
        pieces = [("reasoning_content", f"thought{n} ") for n in range(thoughts)] + [
            ("content", word) for word in answer
        ]
        yield {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]}
        for name, piece in pieces:
            await asyncio.wait({leaving}, timeout=max(0.0, due - loop.time()))
            if leaving.done() or heard.said == fails:
                if heard.said == fails:
                    yield {"error": {"code": 500, "message": "the mill broke"}}
                return
            yield {"choices": [{"index": 0, "delta": {name: piece}}]}
            heard.said += name == "content"
            due += pace_s
        usage = {"prompt_tokens": 8, "completion_tokens": len(pieces), "total_tokens": 8 + len(pieces)}
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}


def _of(prompt: str, pattern: str, otherwise: int) -> int:
    found = re.findall(pattern, prompt)
    return int(found[-1]) if found else otherwise
