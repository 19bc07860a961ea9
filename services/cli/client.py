"""The router's HTTP, as the command line uses it (docs/http.md).

Answers "what does the router say?". Turns every failure into a CommandFailed with the way out; never retries on its own.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Any, NoReturn
from urllib.parse import quote

import httpx
import msgspec

from services.cli.address import base_url, bearer
from services.cli.exits import CommandFailed, Exit
from services.cli.sse import EventParser, ServerEvent

DEFAULT_ROUTER = "http://127.0.0.1:8420"
ANSWER_S = 30.0
"""Everything but a stream is answered from memory, or by the projector within a few seconds."""
CONNECT_S = 5.0
SILENCE_S = 60.0
"""A stream sends a keep-alive each 15 s; four missing ones are a dead line."""
OUR_ERROR = {"code", "message", "nearest"}
"""What an error of a router has and those of model servers have not (docs/http.md, "Errors")."""
CODES = {404: Exit.NOT_FOUND, 429: Exit.BUSY, 400: Exit.USAGE}


class RouterClient:
    """One router, by its base URL, or HOST:PORT as people type it: an async context manager. ``HEADRACE_KEY`` may hold one of
    its keys."""

    def __init__(self, url: str = DEFAULT_ROUTER, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.url = base_url(url, DEFAULT_ROUTER)
        self._http = httpx.AsyncClient(
            base_url=self.url,
            timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S),
            headers={"x-headrace-client": "cli"} | bearer(os.environ.get("HEADRACE_KEY", ""), "HEADRACE_KEY"),
            transport=transport,
            trust_env=False,
        )

    async def __aenter__(self) -> RouterClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def get(self, path: str, **query: Any) -> Any:
        """The JSON of a 200; ``None`` values in the query are left out."""
        return await self._call("GET", path, params={key: value for key, value in query.items() if value is not None})

    async def text(self, path: str, **query: Any) -> str:
        """The text of a 200: a picture, a page."""
        answer = await self._answer(
            "GET", path, params={key: value for key, value in query.items() if value is not None}
        )
        return answer.text

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        return await self._call("POST", path, json=body)

    async def delete(self, path: str) -> Any:
        return await self._call("DELETE", path)

    async def ready(self) -> dict[str, Any]:
        """``/readyz`` whether it is ready (200) or not yet (503)."""
        try:
            answer = await self._http.get("/readyz")
        except httpx.HTTPError as error:
            self._unreachable(error)
        if answer.status_code not in (200, 503):
            self._refused(answer)
        return dict(_json(answer))

    async def events(self, path: str, body: dict[str, Any] | None = None) -> AsyncIterator[ServerEvent]:
        """A stream's events until it closes; with a ``body`` it is asked for by POST."""
        parser = EventParser()
        timeout = httpx.Timeout(SILENCE_S, connect=CONNECT_S)
        try:
            method = "GET" if body is None else "POST"
            async with self._http.stream(method, path, json=body, timeout=timeout) as answer:
                if answer.status_code != 200:
                    await answer.aread()
                    self._refused(answer)
                async for line in _lines(answer):
                    if (event := parser.line(line)) is not None:
                        yield event
        except httpx.HTTPError as error:
            self._unreachable(error)

    async def lines(self, path: str, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """The objects of a stream of JSON lines, asked for by POST, until it closes."""
        timeout = httpx.Timeout(SILENCE_S, connect=CONNECT_S)
        try:
            async with self._http.stream("POST", path, json=body, timeout=timeout) as answer:
                if answer.status_code != 200:
                    await answer.aread()
                    self._refused(answer)
                async for line in _lines(answer):
                    if line.strip():
                        yield msgspec.json.decode(line)
        except (httpx.HTTPError, msgspec.DecodeError) as error:
            self._unreachable(error)

    async def _answer(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            answer = await self._http.request(method, path, **options)
        except httpx.HTTPError as error:
            self._unreachable(error)
        if not answer.is_success:
            self._refused(answer)
        return answer

    async def _call(self, method: str, path: str, **options: Any) -> Any:
        body = _json(await self._answer(method, path, **options))
        if not isinstance(body, dict) or not body:
            self._stranger(f"it answered {path} with something that no router says")
        return body

    def _unreachable(self, error: Exception) -> NoReturn:
        raise CommandFailed(
            f"no router answers at {self.url}: {str(error) or type(error).__name__}",
            hint="start one with `headrace up`, or name another with --router URL or HEADRACE_ROUTER",
            code=Exit.UNREACHABLE,
        ) from error

    def _stranger(self, words: str) -> NoReturn:
        raise CommandFailed(
            f"what answers at {self.url} is no Headrace router: {words}",
            hint="name the router with --router URL or HEADRACE_ROUTER",
            code=Exit.UNREACHABLE,
        )

    def _refused(self, answer: httpx.Response) -> NoReturn:
        body = _json(answer)
        error = body.get("error") if isinstance(body, dict) else None
        if isinstance(error, str) and answer.request.url.path.startswith("/api/"):  # in Ollama's form
            error = {"code": "", "message": error, "nearest": ()}
        if not isinstance(error, dict) or not error.keys() >= OUR_ERROR:
            self._stranger(f"it answered {answer.request.url.path} with {answer.status_code}")
        raise CommandFailed(
            _message(error),
            hint=_hint(error),
            code=CODES.get(answer.status_code, Exit.BUSY if error.get("code") == "busy" else Exit.FAILED),
        )


async def _lines(answer: httpx.Response) -> AsyncIterator[str]:
    """Ended by line feeds alone: httpx would also end them at U+2028 and the like, which an answer may hold."""
    rest = b""
    async for piece in answer.aiter_bytes():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode()
    if rest:
        yield rest.decode()


def _message(error: dict[str, Any]) -> str:
    """The router's words without its advice to HTTP clients; ``_hint`` says what to type."""
    words = str(error.get("message")).partition("; GET ")[0]
    if error.get("code") == "unauthorized":
        return words.partition("; send ")[0]
    _, _, unknown = words.partition(": no worker is called ")  # where it stood in the body, nobody typed
    return f"no worker is called {unknown}" if unknown else words


def task_path(task: str, *more: str) -> str:
    return "/".join(("/task", quote(task, safe=""), *more))


def _hint(error: dict[str, Any]) -> str | None:
    match error.get("code"):
        case "unknown_model":
            return "`headrace fleet --models` lists what the fleet holds"
        case "unknown_target":
            return "correct routes.toml, or start that machine; `headrace doctor` names every such target"
        case "unknown_domain":
            return "`headrace stats` lists what was measured"
        case "not_found":
            return "this router may be older than the command: `headrace --version`"
        case "unauthorized":
            return "HEADRACE_KEY must be one of the keys behind the router's [keys]; on its machine `headrace key add` makes one"
        case "forbidden":
            return "HEADRACE_KEY must be a key that may do this, or do it on the router's own machine without one"
        case "unknown_worker":
            return "`headrace fleet` lists the machines"
        case "unknown_task":
            return (
                "is it a task's id, and whole (a run of bench and a comparison have others)? `headrace queue` lists what waits "
                "and runs; older tasks are known while the projector runs"
            )
        case "not_rated" if error.get("retry_after_s"):
            return f"say it again in {error['retry_after_s']:.0f} s"
        case "busy" if str(error.get("message")).startswith("nobody may answer"):
            return "`headrace doctor` says what is missing"
        case "busy" | "not_stored" if error.get("retry_after_s"):
            return f"try again in {error['retry_after_s']:g} s; `headrace queue` shows what is before you"
    return "`headrace fleet` lists the machines" if "no worker is called" in str(error.get("message")) else None


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return {}
