"""Model servers without models: machines of set prefill and decode rates, serial or batching, in OpenAI's form.

Answers "what would a fleet of such speeds do with these requests?". A machine runs ``slots`` requests at once, first in, first
out; what is more waits inside it, as in any model server that queues by itself. With n at once each runs at 1/(1 + β(n − 1)) of
its speed. A serial one introduces itself as llama.cpp and reports its timings as that does; a batching one as vLLM, which
reports none. Nothing here knows Headrace. ``StandIns`` runs all machines of a bench in one process of their own.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httptools

from support.eventually import eventually

JSON_HEAD = b"HTTP/1.1 %d OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
CHARS_A_TOKEN = 4
VECTOR = [0.25] * 8
WORDS = re.compile(r"in (\d+) words")


class Machine(NamedTuple):
    """Tokens a second for one stream alone; ``slowdown`` is what each further stream costs the others (β). ``stamps``: each
    token says when it was sent, by the clock that all processes of a machine share."""

    name: str
    decode: float
    prefill: float = 1e5
    slots: int = 1
    slowdown: float = 0.0
    models: tuple[str, ...] = ("stand-in",)
    stamps: bool = False

    def seconds(self, prompt: int, output: int) -> float:
        """What one request takes on the empty machine."""
        return prompt / self.prefill + output / self.decode


class Server:
    """One machine at work. ``busy_s`` adds up over its slots; ``most`` is the most that ran at once."""

    def __init__(self, machine: Machine, loop: asyncio.AbstractEventLoop) -> None:
        self.machine, self.loop = machine, loop
        self.waiting: deque[Job] = deque()
        self.running = self.most = self.served = 0
        self.busy_s = 0.0

    def take(self, job: Job) -> None:
        self.waiting.append(job)
        self.go_on()

    def go_on(self) -> None:
        while self.waiting and self.running < self.machine.slots:
            job = self.waiting.popleft()
            if not job.gone:
                self.running += 1
                self.most = max(self.most, self.running)
                job.begin(self.loop.time())

    def left(self, job: Job) -> None:
        self.running -= 1
        self.served += 1
        self.busy_s += self.loop.time() - job.began
        self.go_on()

    def stretch(self) -> float:
        """How much slower each stream is now than alone."""
        return 1.0 + self.machine.slowdown * (self.running - 1)

    def report(self) -> dict[str, float]:
        return {"busy_s": self.busy_s, "most": self.most, "served": self.served, "waiting": len(self.waiting)}


class Job:
    """One request: its prompt first, then token after token; ``token`` is called for each, ``done`` at the end."""

    def __init__(
        self, server: Server, prompt: int, output: int, token: Callable[[int], None], done: Callable[[Job], None]
    ) -> None:
        self.prompt, self.output = prompt, output
        self.began = self.prefilled = 0.0
        self.gone = False
        self._server, self._token, self._done = server, token, done
        self._said = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, now: float) -> None:
        self.began = self._due = now
        self._after(self.prompt / self._server.machine.prefill, self._read)

    def leave(self) -> None:
        """The client is gone."""
        if not self.gone and self.began:
            self._end()
        self.gone = True

    def _read(self) -> None:
        self.prefilled = self._due
        self._next()

    def _next(self) -> None:
        if self._said == self.output:
            self._end()
            self._done(self)
        else:
            self._after(1.0 / self._server.machine.decode, self._say)

    def _say(self) -> None:
        self._token(self._said)
        self._said += 1
        self._next()

    def _end(self) -> None:
        self.gone = True
        if self._timer is not None:
            self._timer.cancel()
        self._server.left(self)

    def _after(self, alone_s: float, then: Callable[[], None]) -> None:
        """Due times add up exactly, so that a late timer makes nothing later."""
        self._due += alone_s * self._server.stretch()
        self._timer = self._server.loop.call_at(self._due, then)

    def timings(self) -> dict[str, float]:
        return {
            "prompt_n": self.prompt,
            "prompt_ms": (self.prefilled - self.began) * 1e3,
            "predicted_n": self.output,
            "predicted_ms": (self._due - self.prefilled) * 1e3,
        }


class _Line(asyncio.Protocol):
    """One connection, one request after the other."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._job: Job | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, _error: Exception | None) -> None:
        if self._job is not None:
            self._job.leave()

    def on_message_begin(self) -> None:
        self._body = b""

    def on_url(self, url: bytes) -> None:
        self._path = url.decode()

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        if self._parser.get_method() == b"GET":
            self._get()
            return
        asked = json.loads(self._body)
        if self._path == "/v1/embeddings":
            inputs = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
            self._take(sum(map(tokens_of, inputs)), 0, lambda _n: None, lambda job: self._embedded(job, inputs, asked))
        elif asked.get("stream"):
            self._transport.write(SSE_HEAD)
            self._model = json.dumps(asked["model"])
            self._take(prompt_of(asked), output_of(asked), self._token, self._streamed)
        else:
            self._take(prompt_of(asked), output_of(asked), lambda _n: None, lambda job: self._answered(job, asked))

    def _get(self) -> None:
        machine = self._server.machine
        if self._path == "/v1/models":
            owner = "llamacpp" if machine.slots == 1 else "vllm"
            listed = [{"id": name, "object": "model", "owned_by": owner} for name in machine.models]
            self._json({"object": "list", "data": listed})
        elif self._path == "/stand-in":
            self._json(self._server.report())
        else:
            self._json({"detail": "not found"}, status=404)

    def _take(self, prompt: int, output: int, token: Callable[[int], None], done: Callable[[Job], None]) -> None:
        self._job = Job(self._server, prompt, output, token, done)
        self._server.take(self._job)

    def _token(self, number: int) -> None:
        stamp = f"@{time.monotonic():.6f}" if self._server.machine.stamps else ""
        chunk = f'{{"model":{self._model},"choices":[{{"index":0,"delta":{{"content":"w{number}{stamp} "}}}}]}}'
        self._transport.write(f"data: {chunk}\n\n".encode())

    def _streamed(self, job: Job) -> None:
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], **self._measured(job)}
        self._transport.write(b"data: " + json.dumps(end).encode() + b"\n\ndata: [DONE]\n\n")
        self._transport.close()

    def _answered(self, job: Job, asked: dict[str, Any]) -> None:
        message = {"role": "assistant", "content": "".join(f"w{n} " for n in range(job.output))}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self._json({"object": "chat.completion", "model": asked["model"], "choices": [choice], **self._measured(job)})

    def _embedded(self, job: Job, inputs: list[str], asked: dict[str, Any]) -> None:
        data = [{"object": "embedding", "index": n, "embedding": VECTOR} for n in range(len(inputs))]
        usage = {"prompt_tokens": job.prompt, "total_tokens": job.prompt}
        self._json({"object": "list", "model": asked["model"], "data": data, "usage": usage})

    def _measured(self, job: Job) -> dict[str, Any]:
        total = job.prompt + job.output
        usage = {"prompt_tokens": job.prompt, "completion_tokens": job.output, "total_tokens": total}
        return {"usage": usage} | ({"timings": job.timings()} if self._server.machine.slots == 1 else {})

    def _json(self, body: dict[str, Any], status: int = 200) -> None:
        data = json.dumps(body).encode()
        self._transport.write(JSON_HEAD % (status, len(data)) + data)


def tokens_of(text: str) -> int:
    return -(-len(text) // CHARS_A_TOKEN)


def prompt_of(asked: dict[str, Any]) -> int:
    return sum(tokens_of(str(message["content"])) for message in asked["messages"])


def output_of(asked: dict[str, Any]) -> int:
    """As many tokens as the prompt asks for in these words, so that no router knows it before; else ``max_tokens``."""
    most, said = int(asked.get("max_tokens", 4096)), WORDS.search(str(asked["messages"][-1]["content"]))
    return min(most, int(said[1])) if said else most


class StandIns:
    """``async with StandIns(folder, machines) as urls``: name -> URL. ``pid`` is their process."""

    @property
    def pid(self) -> int:
        return self._process.pid

    def __init__(self, folder: Path, machines: Sequence[Machine]) -> None:
        self._machines, self._ports = machines, folder / "stand-ins.ports"

    async def __aenter__(self) -> dict[str, str]:
        self._ports.unlink(missing_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.stand_ins", json.dumps(self._machines), str(self._ports)],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        )
        await eventually(lambda: self._process.poll() is not None or self._ports.exists())
        return {name: f"http://127.0.0.1:{port}" for name, port in json.loads(self._ports.read_text()).items()}

    async def __aexit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


async def serve(machines: Iterator[Machine], ports_file: Path) -> None:
    loop, ports, listening = asyncio.get_running_loop(), dict[str, int](), list[asyncio.Server]()
    for machine in machines:
        server = Server(machine, loop)
        listening.append(await loop.create_server(lambda server=server: _Line(server), "127.0.0.1", 0, backlog=1024))
        ports[machine.name] = listening[-1].sockets[0].getsockname()[1]
    partial = ports_file.with_suffix(".new")
    partial.write_text(json.dumps(ports))
    partial.rename(ports_file)
    await asyncio.gather(*(server.serve_forever() for server in listening))


if __name__ == "__main__":
    asyncio.run(serve((Machine(*spec) for spec in json.loads(sys.argv[1])), Path(sys.argv[2])))
