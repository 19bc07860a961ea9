"""
title: Headrace (Auto Route)
author: Headrace
version: 0.1.0
license: Apache-2.0
required_open_webui_version: 0.12.0
description: Each chat goes to the model and machine that the evidence says answers best. Stop stops the machine too.
"""

# How does a chat of Open WebUI become a task of Headrace, and its answer a chat again? Over POST /route and GET /task/{id}/stream
# (docs/http.md). It must never block, do I/O when it is loaded, keep anything of a request on the instance, or leave a task
# running that nobody wants. One file, with what Open WebUI ships: `headrace pipe --install` puts it there.

import asyncio
import json
import re
import ssl
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import quote

import httpx
from pydantic import BaseModel, Field

NAME = "🧭 Headrace (Auto Route)"
AUTO = "auto"
ENDS = ("completed", "failed", "cancelled", "dead")
BUSY = ("busy", "not_started", "timeout")

FIRST_S = 8.0
"""A stream begins with a status. Where none comes, something between holds it back: then we also ask."""
SILENT_S = 25.0
"""The router sends a comment after each 15 s of silence."""
LEAVE_S = 5.0
"""For saying that an answer is not wanted any more; the router gives up a task without readers by itself, a little later."""
SIDE_S = 15.0
"""For a title by a small model; then the first words must do."""
SIDE_TOKENS = 160
SIDE_AFTER_S = 1.0
"""A title is asked for 16 ms before the first question of its own chat [measured]: that goes first."""
SIDE_PATIENCE_S = 120.0
"""It waits so long for the end of that answer: beside it, it would slow it down."""
SIDE_FORMS: dict[str, tuple[str, int, int]] = {
    "title_generation": ("title", 1, 80),
    "tags_generation": ("tags", 4, 30),
    "follow_up_generation": ("follow_ups", 3, 100),
}
"""What a small model may be asked for: its field, how many at most, and characters of each. Everything else is waited for by an
answer (searches, image prompts) or wants a good model (tools)."""
COPIED_CHARS = 12
LIST_S = 30.0
"""How long a list of virtual models is good; Open WebUI asks on each page."""
NAME_CHARS_MAX = 128
PORT_MAX = 65_535
"""Above it a connection fails by an OverflowError, which httpx passes on."""

PASSED = (
    *("stop", "top_k", "min_p", "frequency_penalty", "presence_penalty", "repeat_penalty", "logit_bias", "logprobs"),
    *("top_logprobs", "response_format", "reasoning_effort", "think", "keep_alive", "chat_template_kwargs"),
)
"""Of what a chat may carry, what a backend reads. The rest is Open WebUI's own."""
TOOLS = ("tools", "tool_choice", "parallel_tool_calls")

FOOTER = "\n\n---\n*🧭 Headrace: {}*"
AGAIN = "\n\n---\n*🧭 Headrace began again: {}*\n\n"
_FOOTER = re.compile(r"\n---\n\*🧭 Headrace: [^\n*]*\*\n{0,2}")
_BEFORE_AGAIN = re.compile(r"\A.*\n---\n\*🧭 Headrace began again: [^\n*]*\*\n{0,2}", re.DOTALL)

JUDGED = {"model": " in other domains", "family": " in its family"}
"""Of what, where it was not this very model in this domain."""

Json = dict[str, Any]
Emit = Callable[[Json], Awaitable[Any]]
_leaving: set[asyncio.Task[None]] = set()
_answering: Counter[str] = Counter()
"""How many answers of each chat are being made now."""
_beside: dict[str, set[asyncio.Timeout]] = {}
"""How long the titles, tags and follow-ups of each chat may still take, while a small model makes them."""


class Refused(Exception):
    """No answer, in words for whoever asked. ``passes``: the router or what lies before it is away, and may come back."""

    def __init__(self, words: str, *, passes: bool = False) -> None:
        super().__init__(words)
        self.passes = passes


class Router:
    """The router's HTTP. Each call has a session of its own, so that a request which was stopped can still say so."""

    def __init__(self, url: str, key: str) -> None:
        url, self._key = url.strip(), key.strip()
        self.url = (url if "://" in url else f"http://{url}").rstrip("/")

    def _session(self, timeout: httpx.Timeout | float) -> httpx.AsyncClient:
        """Raises Refused where the valves make no request."""
        if not (self._key.isascii() and self._key.isprintable()):  # httpx would show it in its error
            raise Refused("The valve API_KEY holds characters that no key has")
        try:
            url = httpx.URL(self.url)
        except httpx.InvalidURL:
            url = httpx.URL()
        if url.scheme not in ("http", "https") or not url.host or (url.port or 0) > PORT_MAX:
            raise Refused(f"The valve ROUTER_URL is no address: {self.url!r}; for example http://127.0.0.1:8420")
        return httpx.AsyncClient(
            base_url=url,
            headers={"authorization": f"Bearer {self._key}"} if self._key else {},
            timeout=timeout,
            verify=_trusted() if url.scheme == "https" else False,
            trust_env=False,
        )

    async def call(self, method: str, path: str, body: Json | None = None, *, timeout_s: float = 60.0) -> Json:
        """Raises Refused."""
        try:
            async with self._session(timeout_s) as http:
                reply = await http.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise Refused(self._unreachable(error), passes=True) from error
        found = _object(reply.content)
        if not reply.is_success or not found:
            raise self._refused(reply, found)
        return found

    async def events(self, task: str) -> AsyncGenerator[tuple[str, Json], None]:
        """What ``GET /task/{id}/stream`` tells, with ``alive`` for its comments. Raises Refused and httpx.HTTPError."""
        timeout = httpx.Timeout(10.0, read=2 * SILENT_S)
        async with self._session(timeout) as http, http.stream("GET", f"/task/{quote(task)}/stream") as reply:
            if reply.status_code != 200:
                raise self._refused(reply, _object(await reply.aread()))
            rest, name = b"", ""
            async for piece in reply.aiter_bytes():
                # By hand: text lines would also end at U+2028 and the like, which an answer may hold.
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line.startswith(b"event:"):
                        name = line[6:].strip().decode(errors="replace")
                    elif line.startswith(b"data:") and (data := _object(line[5:])):
                        yield name, data
                    elif line.startswith(b":"):
                        yield "alive", {}

    def _unreachable(self, error: Exception) -> str:
        why = str(error) or type(error).__name__
        return f"Headrace cannot be reached at {self.url} ({why}); an administrator can correct the valve ROUTER_URL"

    def _refused(self, reply: httpx.Response, found: Json) -> Refused:
        status, error = reply.status_code, found.get("error")
        if not isinstance(error, dict):
            return Refused(
                self.stranger(status, reply.headers.get("location")), passes=status >= 500 or reply.is_success
            )
        message, passes = str(error.get("message") or f"status {status}"), status >= 500 or status == 429
        if status in (401, 403):
            return Refused(f"Headrace: {message}. An administrator can set the valve API_KEY")
        if error.get("code") != "busy":
            return Refused(f"Headrace: {message}", passes=passes)
        numbers = ", ".join(f"{name} {value:g}" for name, value in (error.get("numbers") or {}).items())
        again = error.get("retry_after_s")
        words = f"Headrace is busy: {message}{f' ({numbers})' if numbers else ''}"
        return Refused(words + (f"; try again in about {again:.0f} s" if again else ""), passes=passes)

    def stranger(self, status: int, location: str | None = None) -> str:
        """Who answers is not the router: something before it, or something else."""
        if location:
            return (
                f"{self.url} leads on to {location} (status {status}); the valve ROUTER_URL must name where that ends"
            )
        if status == 413:
            return f"What lies before Headrace at {self.url} takes no question of this size (status 413)"
        if status in (502, 503, 504):
            return f"Headrace cannot be reached behind {self.url} (status {status}); is the router running?"
        return f"What answers at {self.url} is no Headrace router (status {status}); the valve ROUTER_URL names it"


@lru_cache(maxsize=1)
def _trusted() -> ssl.SSLContext:
    """Once: reading the certificates costs 30 ms of everybody's event loop. SSL_CERT_FILE may name others."""
    return httpx.create_ssl_context()


class Pipe:
    class Valves(BaseModel):
        ROUTER_URL: str = Field(
            default="http://127.0.0.1:8420", description="The router, as seen by Open WebUI's machine."
        )
        API_KEY: str = Field(
            default="",
            description="One of the router's [keys]. With may_speak_for_users each user has a place of their own in the queue.",
            json_schema_extra={"input": {"type": "password"}},
        )
        POLL_INTERVAL: float = Field(
            default=2.0, gt=0, le=60, description="Seconds between two looks where streaming fails."
        )
        POLL_MAX_RETRIES: int = Field(
            default=150, ge=1, description="Looks without a word of the stream before giving up."
        )
        SHOW_METADATA: bool = Field(default=True, description="A line under each answer: who gave it, how fast.")
        TASKS: Literal["local", "small"] = Field(
            default="local",
            description="Titles, tags and follow-ups: local answers them here, small asks the smallest loaded model.",
            json_schema_extra={"input": {"type": "select", "options": ["local", "small"]}},
        )
        VIRTUAL_MODELS: bool = Field(default=False, description="One model for each route of the router's routes.toml.")
        TOOLS: bool = Field(
            default=False, description="Pass Open WebUI's tools on; only models that declare tools answer then."
        )

    def __init__(self) -> None:
        self.valves = self.Valves()
        self._virtual: tuple[str, ...] = (AUTO,)
        self._listed_at = -LIST_S

    @property
    def pipes(self) -> Callable[[], Awaitable[list[Json]]]:
        """Open WebUI asks by hasattr: without the valve there is no list, and the function is one model under its own name."""
        if not self.valves.VIRTUAL_MODELS:
            raise AttributeError("pipes")
        return self._models

    async def _models(self) -> list[Json]:
        valves, now = self.valves, time.monotonic()
        if now - self._listed_at >= LIST_S:
            self._listed_at = now
            try:
                found = await Router(valves.ROUTER_URL, valves.API_KEY).call("GET", "/models", timeout_s=1.5)
                self._virtual = tuple(dict.fromkeys((AUTO, *map(str, found.get("virtual") or ()))))
            except Refused:
                pass  # those of before; an exception here would make every model of ours vanish
        return [{"id": name, "name": NAME if name == AUTO else f"🧭 Headrace ({name})"} for name in self._virtual]

    async def pipe(
        self,
        body: Json,
        __user__: Json | None = None,
        __chat_id__: str | None = None,
        __message_id__: str | None = None,
        __event_emitter__: Emit | None = None,
        __task__: str | None = None,
        __task_body__: Json | None = None,
    ) -> AsyncGenerator[Json, None] | Json | str:
        valves = self.valves.model_copy()
        router = Router(valves.ROUTER_URL, valves.API_KEY)
        user = (__user__ or {}).get("id")
        kind = side_task(body, __task__, __message_id__)
        if kind is not None:
            local = local_answer(kind, body, __task_body__ or {})
            if valves.TASKS == "local" or kind not in SIDE_FORMS:
                return local
            return await _small(router, valves, body, kind, user, __chat_id__) or local
        asked = request_of(body, tools=valves.TOOLS or not __chat_id__)
        asked |= named(client=user, session=__chat_id__, message=__message_id__)
        # A program that asks without a chat gets the answer and nothing else.
        shows = valves.SHOW_METADATA and bool(__chat_id__)
        answer = Answer(
            router, valves, asked, Status(__event_emitter__), str(body.get("model") or NAME),
            footer=shows, goes_on=_ends_in_footer(body),
        )  # fmt: skip
        if body.get("stream"):
            return answer.chunks()
        return await whole(answer)


class Status:
    """The line above an answer. Each one is kept in the chat for ever, so it is told only when it says something new."""

    def __init__(self, emit: Emit | None) -> None:
        self._emit = emit
        self._told = ("", True)

    @property
    def is_open(self) -> bool:
        """It shimmers until it is said to be done."""
        return not self._told[1]

    async def tell(self, words: str, *, done: bool = False) -> None:
        if self._emit is None or (words, done) == self._told:
            return
        self._told = (words, done)
        await self._emit({"type": "status", "data": {"description": words, "done": done}})


class Answer:
    """One task of the router's as the chunks of one answer. ``goes_on``: what it continues ends in a footer."""

    def __init__(
        self,
        router: Router,
        valves: Any,
        asked: Json,
        status: Status,
        model: str,
        *,
        footer: bool,
        goes_on: bool = False,
    ) -> None:
        self._router, self._valves, self._asked, self._status = router, valves, asked, status
        self.model, self._footer, self._goes_on = model, footer, goes_on
        self._shown = Shown()
        self._names: dict[str, str] = {}
        self._submitted: Json = {}
        self._place: Any = None
        self._last: Json = {}

    async def chunks(self) -> AsyncGenerator[Json, None]:
        """Ends with an ``error`` where there is no answer: unlike an exception it keeps the text before it."""
        submitting = asyncio.ensure_future(self._router.call("POST", "/route", self._asked))
        ended, chat = False, str(self._asked.get("session") or "")
        _answering[chat] += 1
        _give_way(chat)
        try:
            # Shielded: a task that was stored, and whose name is on its way, must be found again to be cancelled.
            self._submitted = await asyncio.shield(submitting)
            if not self._submitted.get("task"):
                raise Refused(self._router.stranger(200))
            await self._on_submitted()
            if self._goes_on:
                yield self._chunk({"content": "\n\n"})
            async with aclosing(self._updates(str(self._submitted["task"]))) as updates:
                async for name, data in updates:
                    match name:
                        case "token":
                            for delta in self._shown.token(data):
                                yield self._chunk(delta)
                        case "restart":
                            self._shown.why = _plain(str(data.get("reason") or ""))
                        case "status":
                            await self._on_status(data)
                        case "away":
                            await self._status.tell("Headrace does not answer; this goes on when it does")
                        case "end":
                            ended = True
                            for chunk in await self._on_end(data):
                                yield chunk
        except Refused as refused:
            if self._status.is_open:
                await self._status.tell("No answer", done=True)
            yield {"error": {"message": str(refused)}}
        finally:
            _answering.subtract([chat])
            if not _answering[chat]:
                del _answering[chat]
            if not ended:
                leaving = asyncio.create_task(self._leave(submitting))
                _leaving.add(leaving)
                leaving.add_done_callback(_leaving.discard)
                await asyncio.shield(leaving)

    async def _leave(self, submitting: "asyncio.Future[Json]") -> None:
        """Stop was pressed, or nobody listens: the machine is free for others at once."""
        try:
            async with asyncio.timeout(LEAVE_S):
                task = str((await submitting)["task"])
                await self._router.call("DELETE", f"/task/{quote(task)}", timeout_s=LEAVE_S)
        except (Refused, TimeoutError, KeyError):
            pass  # it never began, or has ended; else the router gives it up when its readers stay away
        if self._status.is_open:
            await self._status.tell("Stopped", done=True)

    async def _updates(self, task: str) -> AsyncGenerator[tuple[str, Json], None]:
        """The task's events until its end: by the stream, and by asking where the stream says nothing or breaks.

        A silent stream stays open meanwhile: the router takes us for gone without it."""
        heard: asyncio.Queue[tuple[str, Json]] = asyncio.Queue()
        reading = asyncio.create_task(self._read(task, heard))
        looks, patience_s = 0, FIRST_S
        try:
            while True:
                try:
                    # Not wait_for: in Python 3.11 it swallows a Stop that comes together with a token.
                    async with asyncio.timeout(patience_s):
                        name, data = await heard.get()
                except TimeoutError:
                    name, data = "silent", {}
                if name not in ("silent", "broken"):
                    looks, patience_s = 0, SILENT_S
                    yield name, data
                    if name == "end":
                        return
                    continue
                looks, patience_s = looks + 1, self._valves.POLL_INTERVAL
                if looks > self._valves.POLL_MAX_RETRIES:
                    raise Refused(self._given_up(looks - 1))
                found = await self._look(task)
                if found is None:
                    yield "away", {}
                else:
                    yield ("end" if found["status"]["state"] in ENDS else "status"), found
                    if found["status"]["state"] in ENDS:
                        return
                if name == "broken":
                    await asyncio.sleep(self._valves.POLL_INTERVAL)
                    self._shown.replay()
                    reading = asyncio.create_task(self._read(task, heard))
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read(self, task: str, heard: "asyncio.Queue[tuple[str, Json]]") -> None:
        try:
            async with aclosing(self._router.events(task)) as events:
                async for name, data in events:
                    if name == "error":
                        break  # the router stops; the task goes on
                    heard.put_nowait((name, {"status": data} if name == "status" else data))
        except (httpx.HTTPError, Refused):
            pass
        heard.put_nowait(("broken", {}))

    async def _look(self, task: str) -> Json | None:
        """None where nobody answers now. Raises Refused where nobody knows the task any more."""
        try:
            found = await self._router.call("GET", f"/task/{quote(task)}", timeout_s=10.0)
        except Refused as refused:
            if refused.passes:
                return None
            raise
        return found if isinstance(found.get("status"), dict) else None

    async def _on_submitted(self) -> None:
        decision = self._submitted.get("decision") or {}
        if decision.get("worker"):
            self._names[decision["worker"]] = decision.get("worker_name") or decision["worker"]
        await self._status.tell(self._line(decision.get("model"), decision.get("worker")))

    async def _on_status(self, data: Json) -> None:
        status = self._last = data["status"]
        if status["state"] in ("released", "running"):
            await self._know(status.get("worker") or status.get("expected_worker"))
            worker = status.get("worker") or status.get("expected_worker")
            await self._status.tell(self._line(status.get("model"), worker), done=status["state"] == "running")
        elif status["state"] == "waiting" and status.get("position") is not None:
            reason = status.get("reason") or ""
            place = status["position"], reason.partition(":")[0], status.get("model"), status.get("expected_worker")
            if place != self._place:  # not the seconds: those are news each time
                self._place = place
                await self._know(status.get("expected_worker"))
                where = self._where(status.get("model"), status.get("expected_worker"))
                await self._status.tell(f"{where} · {_waiting(status)}")

    async def _on_end(self, data: Json) -> list[Json]:
        status, answer = data["status"], data.get("answer") or {}
        if status["state"] != "completed":
            raise Refused(end_words(status))
        chunks = [self._chunk(delta) for delta in self._shown.rest(answer)]
        worker = status.get("worker")
        if worker:
            self._names[worker] = data.get("worker_name") or worker
        line = self._line(answer.get("model") or status.get("model"), worker)
        await self._status.tell(line, done=True)
        if self._footer:
            footer = FOOTER.format(_plain(f"{line} · {_measured(status)}" if _measured(status) else line))
            chunks.append(self._chunk({"content": footer}))
        usage = _usage(status.get("tokens") or {})
        calls = self._shown.calls
        chunks.append(self._chunk({}, finish="tool_calls" if calls else status.get("finish_reason") or "stop"))
        return [*chunks, self._chunk(None) | {"usage": usage}] if usage else chunks

    async def _know(self, worker: str | None) -> None:
        """The name of a machine other than the one that was expected."""
        if worker is None or worker in self._names:
            return
        self._names[worker] = worker
        try:
            rows = (await self._router.call("GET", "/workers", timeout_s=2.0)).get("workers") or ()
        except Refused:
            return
        self._names |= {row["id"]: row["name"] for row in rows}

    def _where(self, model: str | None, worker: str | None) -> str:
        domain = (self._submitted.get("domain") or {}).get("label") or "?"
        machine = f" @ {self._names.get(worker, worker)}" if worker else ""
        return f"{domain} → {model}{machine}" if model else f"{domain} → not decided yet"

    def _line(self, model: str | None, worker: str | None) -> str:
        """Domain, model, machine and what decided: the predicted seconds and the quality."""
        line, decision = self._where(model, worker), self._submitted.get("decision") or {}
        if (model, worker) != (decision.get("model"), decision.get("worker")):
            return line
        expected = decision.get("expected_s")
        parts = [f"{expected:.1f} s expected"] if expected is not None else []
        parts += quality_words(decision)
        return f"{line} ({', '.join(parts)})" if parts else line

    def _given_up(self, looks: int) -> str:
        seconds, place = looks * self._valves.POLL_INTERVAL, self._last.get("position")
        where = f"at place {place} of the queue" if place else self._last.get("state") or "unknown"
        return f"Headrace is busy: no end after {looks} looks in {seconds:.0f} s; the task was {where} and was given up"

    def _chunk(self, delta: Json | None, finish: str | None = None) -> Json:
        """Always an object, never a text: Open WebUI takes a text that begins with "data:" for a line of its own protocol."""
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        return {
            "id": f"chatcmpl-{self._submitted.get('task', '')}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": self.model,
            "choices": choices,
        }


class Shown:
    """What of an answer the chat has: a stream that was opened again tells it from its start, and a chat takes nothing back."""

    FIELDS = (("thinking", "reasoning_content"), ("text", "content"))

    def __init__(self) -> None:
        self._attempt = 0
        self.why = ""
        self._begin()

    def _begin(self) -> None:
        self._sent = {"text": 0, "thinking": 0}
        self.calls = self._next_call = 0
        self.replay()

    def replay(self) -> None:
        self._at = {"text": 0, "thinking": 0}
        self._calls_at = 0

    def token(self, data: Json) -> list[Json]:
        deltas = []
        if data["attempt"] != self._attempt:
            if self._sent["text"]:
                deltas.append({"content": AGAIN.format(self.why or "the machine that answered was lost")})
            self._attempt = data["attempt"]
            self._begin()
        delta: Json = {}
        for field, name in self.FIELDS:
            piece = data.get(field) or ""
            fresh = piece[max(0, self._sent[field] - self._at[field]) :]
            self._at[field] += len(piece)
            self._sent[field] = max(self._sent[field], self._at[field])
            if fresh:
                delta[name] = fresh
        if calls := data.get("tool_calls"):
            self._calls_at += 1
            if self._calls_at > self.calls:
                self.calls = self._calls_at
                delta["tool_calls"] = [self._numbered(call) for call in calls]
        return [*deltas, delta] if delta else deltas

    def _numbered(self, call: Json) -> Json:
        """Backends that send whole calls number none of them; whoever joins deltas does it by number."""
        if "index" in call:
            return call
        self._next_call += 1
        return {"index": self._next_call - 1, "type": "function", **call}

    def rest(self, answer: Json) -> list[Json]:
        """What the stored answer has and no token told."""
        if not answer:
            return []
        whole = {"attempt": answer["attempt"], "text": answer.get("text"), "thinking": answer.get("thinking")}
        if not self.calls:
            whole["tool_calls"] = answer.get("tool_calls")
        self.replay()
        return self.token(whole)


async def whole(answer: Answer) -> Json:
    """The answer as one completion, for a request without ``stream``."""
    message: Json = {"role": "assistant", "content": ""}
    reply: Json = {"object": "chat.completion", "created": int(time.time()), "model": answer.model}
    finish = "stop"
    calls: dict[int, Json] = {}
    async with aclosing(answer.chunks()) as chunks:
        async for chunk in chunks:
            if "error" in chunk:
                return chunk
            reply["id"] = chunk["id"]
            reply |= {"usage": chunk["usage"]} if "usage" in chunk else {}
            for choice in chunk["choices"]:
                finish = choice["finish_reason"] or finish
                for name, piece in choice["delta"].items():
                    if name == "tool_calls":
                        for delta in piece:
                            _join(calls, delta)
                    else:
                        message[name] = message[name] + piece if message.get(name) else piece
    if calls:
        message["tool_calls"] = list(calls.values())
    return reply | {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _join(calls: dict[int, Json], delta: Json) -> None:
    """A piece of a tool call to those before it: whole answers have whole calls."""
    empty = {"id": delta.get("id"), "type": "function", "function": {"name": "", "arguments": ""}}
    call = calls.setdefault(delta.get("index", len(calls)), empty)
    for field in ("name", "arguments"):
        call["function"][field] += (delta.get("function") or {}).get(field) or ""


def request_of(body: Json, *, tools: bool) -> Json:
    """The body of ``POST /route``. Open WebUI's own tools, 26 kB of them, are left out unless wanted."""
    asked: Json = {"messages": [_cleaned(message) for message in body.get("messages") or ()]}
    route = str(body.get("model") or "").partition(".")[2]
    if route and route != AUTO:
        asked["route"] = route
    options = {key: body[key] for key in ("temperature", "top_p", "seed") if body.get(key) is not None}
    most = body.get("max_completion_tokens") or body.get("max_tokens")
    kept = (*PASSED, *TOOLS) if tools and body.get("tools") else PASSED
    extra = {key: body[key] for key in kept if body.get(key) is not None}
    asked |= {"options": options} if options else {}
    asked |= {"constraints": {"max_tokens": most}} if most else {}
    return asked | ({"extra": extra} if extra else {})


def named(**names: str | None) -> Json:
    """A client that the key may not speak for is left out by the router itself."""
    return {key: str(name)[:NAME_CHARS_MAX] for key, name in names.items() if name}


def side_task(body: Json, task: str | None, message: str | None) -> str | None:
    """Which work beside a chat this is; None for a chat. Some versions do not say, but ask in a way that nobody else does."""
    if task:
        return None if task == "moa_response_generation" else task
    prompt = _text((body.get("messages") or [{}])[-1].get("content"))
    if message or body.get("stream") or not prompt.lstrip().startswith("### Task:"):
        return None
    marks = {
        "follow_up_generation": '"follow_ups"',
        "tags_generation": '"tags"',
        "query_generation": '"queries"',
        "title_generation": '"title"',
    }
    return next((kind for kind, mark in marks.items() if mark in prompt), None)


def local_answer(kind: str, body: Json, task_body: Json) -> str:
    """What costs no machine anything: the first words as a title, and nothing for the rest."""
    match kind:
        case "title_generation":
            return json.dumps({"title": _title(_asked_first(body, task_body))}, ensure_ascii=False)
        case "tags_generation":
            return '{"tags": []}'
        case "follow_up_generation":
            return '{"follow_ups": []}'
        case "query_generation":
            last = [_text(m.get("content")) for m in task_body.get("messages") or () if m.get("role") == "user"][-1:]
            return json.dumps({"queries": [text[:200] for text in last if text]}, ensure_ascii=False)
        case "autocomplete_generation":
            return '{"text": ""}'
        case "function_calling":
            return '{"tool_calls": []}'
    return ""


async def _small(router: Router, valves: Any, body: Json, kind: str, user: str | None, chat: str | None) -> str | None:
    """By the smallest loaded model, behind everybody's work; None where nothing usable comes in time, or the chat goes on."""
    chat = chat or ""
    if chat and not await _after_the_answer(chat, SIDE_AFTER_S if kind == "title_generation" else 0.0):
        return None
    try:
        async with asyncio.timeout(SIDE_S) as patience:
            _beside.setdefault(chat, set()).add(patience)
            try:
                reply = await _asked_small(router, valves, body, kind, user)
            finally:
                _beside[chat].discard(patience)
                if not _beside[chat]:
                    del _beside[chat]
    except (Refused, TimeoutError):
        return None
    if "choices" not in reply:
        return None
    return usable(kind, str(reply["choices"][0]["message"]["content"]), _text(body["messages"][-1].get("content")))


async def _asked_small(router: Router, valves: Any, body: Json, kind: str, user: str | None) -> Json:
    model = smallest_loaded((await router.call("GET", "/models", timeout_s=2.0)).get("models") or ())
    if model is None:
        return {}
    # The chat is quoted in the prompt with what was written under its answers: a small model made a follow-up question of that.
    quoting = [message | {"content": _FOOTER.sub("\n", _text(message.get("content")))} for message in body["messages"]]
    asked = request_of({"messages": quoting}, tools=False) | named(client=user)
    asked["model"], asked["extra"] = model, {"response_format": side_form(kind), "think": False}
    asked["constraints"] = {"urgency": "background", "max_tokens": SIDE_TOKENS, "deadline_s": SIDE_S}
    return await whole(Answer(router, valves, asked, Status(None), model, footer=False))


async def _after_the_answer(chat: str, first_s: float) -> bool:
    """False where that takes too long."""
    until = time.monotonic() + SIDE_PATIENCE_S
    await asyncio.sleep(first_s)
    while chat in _answering and time.monotonic() < until:  # noqa: ASYNC110 - simpler than an event for each chat
        await asyncio.sleep(0.25)
    return chat not in _answering


def _give_way(chat: str) -> None:
    """The next question is there: nobody needs follow-ups of the last answer any more, and their slot is wanted."""
    for patience in _beside.get(chat, ()) if chat else ():
        if not patience.expired():
            patience.reschedule(asyncio.get_running_loop().time())


def side_form(kind: str) -> Json:
    """Holds a model to the form that Open WebUI reads, where its server can do that."""
    field, most, chars = SIDE_FORMS[kind]
    word: Json = {"type": "string", "minLength": 1, "maxLength": chars}
    value = word if most == 1 else {"type": "array", "items": word, "maxItems": most}
    schema = {"type": "object", "properties": {field: value}, "required": [field], "additionalProperties": False}
    return {"type": "json_schema", "json_schema": {"name": field, "strict": True, "schema": schema}}


def usable(kind: str, text: str, prompt: str = "") -> str | None:
    """What a model said, as Open WebUI reads it; None where it did not keep to the form, or gave the prompt's examples for its
    own, as small ones often do."""
    field, most, chars = SIDE_FORMS[kind]
    try:
        said = json.JSONDecoder().raw_decode(text, text.index("{"))[0].get(field)
    except (ValueError, RecursionError):
        return None
    examples = re.findall(r'"([^"\n]+)"', prompt.partition("<chat_history>")[0])
    items = [said] if most == 1 else said if isinstance(said, list) else []
    lines = [" ".join(item.split())[:chars].strip() for item in items if isinstance(item, str)]
    words = [line for line in dict.fromkeys(lines) if line and not _copied(line, examples)]
    if not words:
        return None
    return json.dumps({field: words[0] if most == 1 else words[:most]}, ensure_ascii=False)


def _copied(line: str, examples: list[str]) -> bool:
    """A short example, such as a tag, may be a word of any title."""
    line, examples = line.casefold(), [example.casefold() for example in examples]
    return any(line == example or (len(example) >= COPIED_CHARS and example in line) for example in examples)


def smallest_loaded(rows: Any) -> str | None:
    """Of the models of ``GET /models`` that are in some machine's memory; one of unknown size comes last."""
    sizes: dict[str, float] = {}
    for row in rows:
        held = [holder for holder in row.get("holders") or () if holder.get("resident") and holder.get("alive")]
        if held and "completion" in (row.get("capabilities") or ["completion"]):
            sizes[row["name"]] = min(holder.get("bytes") or float("inf") for holder in held)
    return min(sizes, key=lambda name: (sizes[name], name), default=None)


def end_words(status: Json) -> str:
    """Why there is no answer. ``busy`` is what passes by itself."""
    failure, attempts = status.get("failure"), status.get("attempt") or 0
    detail = status.get("detail") or status.get("reason") or "no reason was given"
    if status["state"] == "cancelled":
        return f"The answer was cancelled: {detail}"
    if status["state"] == "dead":
        return (
            f"Headrace is busy: {detail if 'attempts' in detail else f'given up after {attempts} attempts: {detail}'}"
        )
    if failure in BUSY:
        waited = status.get("waited_s")
        numbers = [f"waited {waited:.0f} s"] if waited is not None else []
        numbers += [f"{attempts} attempts"] if attempts else []
        return f"Headrace is busy: {detail}" + (f" ({', '.join(numbers)})" if numbers else "")
    return f"The answer failed ({failure or 'unknown'}): {detail}"


def clean(text: str) -> str:
    """An answer as it was, without what was written under it, and without what a restart made void."""
    *before, last = _FOOTER.split(text)
    # Not by the pattern: a model that got lost in blank lines would make it look at each of them from each of them.
    return _BEFORE_AGAIN.sub("", "".join([*(part.rstrip() for part in before), last]))


def _cleaned(message: Json) -> Json:
    content = message.get("content")
    if message.get("role") != "assistant":
        return message
    if isinstance(content, str):
        return message | {"content": clean(content)}
    if isinstance(content, list):
        parts = [
            part | {"text": clean(part["text"])} if isinstance(part.get("text"), str) else part for part in content
        ]
        return message | {"content": parts}
    return message


def _ends_in_footer(body: Json) -> bool:
    """Continue, after a whole answer: what comes next stands behind its footer."""
    last = (body.get("messages") or [{}])[-1]
    text = _text(last.get("content"))
    return last.get("role") == "assistant" and any(found.end() == len(text) for found in _FOOTER.finditer(text))


def quality_words(decision: Json) -> list[str]:
    """With where it comes from; a router that does not say that has told nothing."""
    quality, level, n = (decision.get(name) for name in ("quality", "quality_level", "quality_n"))
    if quality is None or level is None:
        return []
    if level == "prior" or not n:
        return [f"quality {quality:.2f} assumed: never judged"]
    times = "once" if n == 1 else f"{n} times"
    return [f"quality {quality:.2f} judged {times}{JUDGED.get(level, '')}"]


def _waiting(status: Json) -> str:
    eta, reason = status.get("eta_s"), status.get("reason")
    words = f"waiting at place {status['position']}"
    if eta is not None:
        words += ", starts in less than 1 s" if eta < 1 else f", starts in about {eta:.0f} s"
    return f"{words} ({reason})" if reason else words


def _measured(status: Json) -> str:
    tokens, times = status.get("tokens") or {}, status.get("times") or {}
    output, decode_s = tokens.get("output"), times.get("decode_s")
    parts = []
    if output is not None:
        parts.append(f"{output} tokens" + (f" at {output / decode_s:.1f}/s" if decode_s else ""))
    if (first_s := times.get("first_token_s")) is not None:
        parts.append(f"first after {first_s:.1f} s" if first_s >= 0.1 else f"first after {first_s * 1e3:.0f} ms")
    if (times.get("queue_s") or 0) >= 0.5:
        parts.append(f"waited {times['queue_s']:.1f} s")
    if status.get("outcome") == "truncated":
        parts.append("cut off by the model's server: window full, or a limit of its own")
    elif status.get("finish_reason") == "length":
        parts.append("cut off at its limit of tokens")
    return " · ".join(parts)


def _usage(tokens: Json) -> Json | None:
    prompt, output = tokens.get("prompt"), tokens.get("output")
    if prompt is None or output is None:
        return None
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}


def _asked_first(body: Json, task_body: Json) -> str:
    for message in task_body.get("messages") or ():
        if message.get("role") == "user" and (text := _text(message.get("content"))):
            return text
    prompt = _text((body.get("messages") or [{}])[-1].get("content"))
    history = prompt.partition("<chat_history>")[2].partition("</chat_history>")[0]
    return history.partition("USER:")[2].partition("\nASSISTANT:")[0]


def _title(text: str) -> str:
    """The first words, at most 40 characters of them; the same in a language that has no spaces."""
    line = " ".join(text.split())
    if len(line) <= 40:
        return line
    head = line[:40].rpartition(" ")[0]
    return f"{head if len(head) >= 15 else line[:40]}…"


def _text(content: Any) -> str:
    if isinstance(content, list):
        return " ".join(str(part.get("text") or "") for part in content if isinstance(part, dict)).strip()
    return content if isinstance(content, str) else ""


def _plain(text: str) -> str:
    return text.replace("*", "·").replace("\n", " ")


def _object(content: bytes) -> Json:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
