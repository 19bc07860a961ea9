"""A machine with one GPU, in Ollama's form: models that must be loaded, that push each other out, and that tell their times.

Answers "what would an Ollama do whose speeds are exact?". For stories about residency, loads and crowding. A chat answers with as
many tokens as its prompt's last number says, else with ``num_predict``: so a test can hide a length from the router.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from support.listener import Listener
from support.stub_server import Pace

BUSY = {"error": "server busy, please try again.  maximum pending requests exceeded"}
NS = 1_000_000_000
USUAL_BYTES = 5_000_000_000
NO_SHOW: dict[str, Any] = {"capabilities": ["completion"], "model_info": {}}


class StubOllama(Listener):
    """``models``: name -> pace. It keeps ``room`` of them in memory, from the start those that are ``loaded``; a load takes
    ``load_s`` for each 5 GB.

    A request with another ``num_ctx`` than the model was loaded with makes it load anew, as in the real one; without one the
    window is ``context``. ``loads`` are the loads in order, ``torn`` those models that were pushed out while they answered,
    ``asked`` all chats; ``running`` counts the chats now, ``most`` is the most there were at once. While ``busy`` it refuses
    as Ollama does; while ``gate`` is closed it loads and says nothing.
    """

    def __init__(
        self,
        models: Mapping[str, Pace],
        *,
        load_s: float = 0.0,
        room: int = 1,
        sizes: Mapping[str, int] | None = None,
        context: int = 8192,
        loaded: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.models, self.load_s, self.room, self.sizes = dict(models), load_s, room, dict(sizes or {})
        self.context = context
        self.windows: dict[str, int | None] = {}
        self.busy = False
        self.resident = list(loaded)
        self.loads: list[str] = []
        self.torn: list[str] = []
        self.asked: list[str] = []
        self.refused = self.most = 0
        self._streams: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self._loading = asyncio.Lock()

    @property
    def running(self) -> int:
        return len(self._streams)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        _, path, _ = head.split("\r\n", 1)[0].split(" ")
        lengths = [line.split(":")[1] for line in head.lower().split("\r\n") if line.startswith("content-length")]
        body = json.loads(await reader.readexactly(int(lengths[0]))) if lengths else {}
        if path != "/api/chat" and path != "/api/generate":
            _answer(writer, *self._page(path))
        elif self.busy:
            self.refused += 1
            _answer(writer, 503, BUSY)
        else:
            await self._chat(path, body, reader, writer)
        await writer.drain()

    def _page(self, path: str) -> tuple[int, Any]:
        pages: dict[str, Any] = {
            "/api/version": {"version": "0.24.0"},
            "/api/tags": {"models": [self._row(name) for name in self.models]},
            "/api/ps": {"models": [self._row(name) | {"context_length": self.window(name)} for name in self.resident]},
            "/api/show": NO_SHOW,
        }
        return (200, pages[path]) if path in pages else (404, {"error": "not found"})

    def _row(self, name: str) -> dict[str, Any]:
        details = {"format": "gguf", "quantization_level": "Q4_K_M"}
        return {"name": name, "digest": f"d-{name}", "size": self._bytes(name), "details": details}

    def window(self, name: str) -> int:
        return self.windows.get(name) or self.context

    def _bytes(self, name: str) -> int:
        return self.sizes.get(name, USUAL_BYTES)

    async def _chat(
        self, path: str, body: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        model, prompt = body["model"], _prompt_of(body)
        self.asked.append(model)
        self._streams.append(model)
        self.most = max(self.most, len(self._streams))
        try:
            load_s = await self._load(model, body.get("options", {}).get("num_ctx"))
            await self.gate.wait()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nConnection: close\r\n\r\n")
            pace, said = self.models[model], re.findall(r"\d+", prompt)
            tokens = int(said[-1]) if said else int(body.get("options", {}).get("num_predict", 8))
            due = asyncio.get_running_loop().time() + pace.first_s
            for number in range(tokens):
                await _until(due)
                if reader.at_eof():
                    return
                part = f"w{number} "
                told = (
                    {"message": {"role": "assistant", "content": part}} if path == "/api/chat" else {"response": part}
                )
                writer.write(_line({"model": model, "done": False, **told}))
                due += pace.token_s
            await _until(due)
            writer.write(_line(_done(model, pace, tokens, load_s)))
        finally:
            self._streams.remove(model)

    async def _load(self, model: str, num_ctx: int | None) -> float:
        """Bring the model into memory; another one goes, whatever it was doing. Seconds that it took."""
        async with self._loading:
            if model in self.resident and self.windows.get(model) != num_ctx:
                self.resident.remove(model)
            if model in self.resident:
                self.resident.append(self.resident.pop(self.resident.index(model)))
                return 0.0
            while len(self.resident) >= self.room:
                gone = self.resident.pop(0)
                if gone in self._streams:
                    self.torn.append(gone)
            self.loads.append(model)
            load_s = self.load_s * self._bytes(model) / USUAL_BYTES
            await _until(asyncio.get_running_loop().time() + load_s)
            self.resident.append(model)
            self.windows[model] = num_ctx
            return load_s


def _prompt_of(body: dict[str, Any]) -> str:
    messages = body.get("messages")
    return str(messages[-1]["content"] if messages else body.get("prompt", ""))


def _done(model: str, pace: Pace, tokens: int, load_s: float) -> dict[str, Any]:
    decode_s = tokens * pace.token_s
    times = {"load": load_s, "prompt_eval": pace.first_s, "eval": decode_s, "total": load_s + pace.first_s + decode_s}
    durations = {f"{name}_duration": round(seconds * NS) for name, seconds in times.items()}
    return {
        "model": model,
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 20,
        "eval_count": tokens,
        **durations,
    }


def _line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _answer(writer: asyncio.StreamWriter, status: int, value: Any) -> None:
    data = json.dumps(value).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + data)


async def _until(due: float) -> None:
    """By the loop's own timer: it is the machine that takes the time here, not the test."""
    loop = asyncio.get_running_loop()
    if due > loop.time():
        passed = loop.create_future()
        timer = loop.call_at(due, passed.set_result, None)
        try:
            await passed
        finally:
            timer.cancel()
