"""Open WebUI's own HTTP, as far as installing needs it.

Answers "what does that Open WebUI have, and how is it changed?". Measured with 0.12.4. Turns every failure into a CommandFailed
in plain words: what Open WebUI itself says is often no more than ``[ERROR: ...]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import httpx

from services.cli.address import base_url, bearer
from services.cli.exits import CommandFailed, Exit

Json = dict[str, Any]
ANSWER_S = 60.0
"""It answers nothing while one of its functions blocks."""
OLDEST = (0, 12)
"""Event functions came with it; before, a pipe's tasks and events were others."""
KEY_HINT = (
    "make one in Open WebUI under Settings > Account > API keys, as an administrator; ENABLE_API_KEYS=True allows them"
)
LOG_HINT = "its own log has the reason; the function compiles here, so look for what that Open WebUI lacks"


class OpenWebUI:
    """One Open WebUI, by its base URL and an administrator's key or token: an async context manager."""

    def __init__(self, url: str, key: str, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.url = base_url(url, "http://127.0.0.1:8080")
        self._http = httpx.AsyncClient(
            base_url=self.url,
            timeout=httpx.Timeout(ANSWER_S, connect=5.0),
            headers=bearer(key, "--key"),
            transport=transport,
            trust_env=False,
        )

    async def __aenter__(self) -> OpenWebUI:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def check(self) -> str:
        """Its version; raises where it is another program, too old, or the key is no administrator's."""
        answer = await self._ask("GET", "/api/version")
        version = _json(answer).get("version")
        if not answer.is_success or not isinstance(version, str):
            self._stranger(answer)
        if "headrace" in _json(answer):  # our own answer to Ollama's clients
            raise CommandFailed(
                f"what answers at {self.url} is Headrace itself, not Open WebUI",
                hint="--install wants Open WebUI's address, --router this one",
                code=Exit.USAGE,
            )
        if _numbers(version) < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            raise CommandFailed(f"Open WebUI at {self.url} is {version}; {oldest} is the oldest this works with")
        answer = await self._ask("GET", "/api/v1/functions/list")
        if answer.status_code in (401, 403):
            await self._refused(answer)
        self._expect(answer, "list its functions")
        return version

    async def functions(self) -> dict[str, Json]:
        """Each function by its id, without its source."""
        return {row["id"]: row for row in await self._call("GET", "/api/v1/functions/list", "list its functions")}

    async def function(self, name: str) -> Json:
        """With its source."""
        return dict(await self._call("GET", f"/api/v1/functions/id/{name}", f"show the function {name}"))

    async def write(self, name: str, form: Json, *, new: bool) -> None:
        path = "create" if new else f"id/{name}/update"
        await self._call("POST", f"/api/v1/functions/{path}", f"take the function {name}", form)

    async def toggle(self, name: str) -> Json:
        """On where it was off, and off where it was on."""
        return dict(await self._call("POST", f"/api/v1/functions/id/{name}/toggle", f"switch on {name}"))

    async def valves(self, name: str) -> Json:
        """Those that were set; the others have their defaults."""
        return await self._call("GET", f"/api/v1/functions/id/{name}/valves", f"show the valves of {name}") or {}

    async def set_valves(self, name: str, valves: Json) -> None:
        """The whole set: what is not named falls back to its default."""
        path = f"/api/v1/functions/id/{name}/valves/update"
        await self._call("POST", path, f"take the valves {', '.join(sorted(valves))} of {name}", valves)

    async def models(self) -> list[Json]:
        """As an administrator sees them, asked anew."""
        found = await self._call("GET", "/api/models?refresh=true", "list its models")
        return list(found["data"])

    async def entry(self, model: str) -> Json | None:
        """A model's entry, which says who may see it."""
        answer = await self._ask("GET", "/api/v1/models/model", params={"id": model})
        if answer.status_code == 404:
            return None
        self._expect(answer, f"show its entry of the model {model}")
        return dict(answer.json())

    async def write_entry(self, form: Json, *, new: bool) -> None:
        path = "create" if new else "model/update"
        await self._call("POST", f"/api/v1/models/{path}", f"take the entry of the model {form['id']}", form)

    async def _call(self, method: str, path: str, what: str, body: Json | None = None) -> Any:
        answer = await self._ask(method, path, json=body) if body is not None else await self._ask(method, path)
        self._expect(answer, what)
        return answer.json()

    async def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            return await self._http.request(method, path, **options)
        except httpx.HTTPError as error:
            raise CommandFailed(
                f"no Open WebUI answers at {self.url}: {str(error) or type(error).__name__}",
                hint="is the address right, and is it running? It takes up to a minute to start",
                code=Exit.UNREACHABLE,
            ) from error

    def _expect(self, answer: httpx.Response, what: str) -> None:
        if answer.is_success:
            return
        words = _json(answer).get("detail") or f"status {answer.status_code}"
        silent = isinstance(words, str) and words.startswith("[ERROR")
        raise CommandFailed(f"Open WebUI did not {what}: {words}", hint=LOG_HINT if silent else None)

    async def _refused(self, answer: httpx.Response) -> NoReturn:
        if answer.status_code == 403:
            raise CommandFailed(f"Open WebUI at {self.url} allows no API keys ({_said(answer)})", hint=KEY_HINT)
        if (await self._ask("GET", "/api/models")).is_success:
            raise CommandFailed(f"the key is good at {self.url}, but it is no administrator's", hint=KEY_HINT)
        raise CommandFailed(f"Open WebUI at {self.url} does not know the key ({_said(answer)})", hint=KEY_HINT)

    def _stranger(self, answer: httpx.Response) -> NoReturn:
        raise CommandFailed(
            f"what answers at {self.url} is no Open WebUI: {answer.request.url.path} gave {answer.status_code}",
            hint="name its address as in the browser, without a path",
            code=Exit.UNREACHABLE,
        )


def _said(answer: httpx.Response) -> str:
    return str(_json(answer).get("detail") or answer.status_code)


def _json(answer: httpx.Response) -> Mapping[str, Any]:
    try:
        value = answer.json()
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.lstrip("v").split(".")[:2]
    return tuple(int("".join(filter(str.isdigit, part)) or 0) for part in parts)
