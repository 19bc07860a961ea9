"""The page at ``/`` and what it is made of (docs/http/page.md): itself, its events, an explanation, an answer, its files.

Browsers get HTML; who does not ask for HTML gets the plain welcome. Nothing here changes a task or a machine: the page's buttons
call the same paths as every other client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from schemas.errors import HeadraceError
from services.router.http.access import Access
from services.router.http.gate import counted, may_stay
from services.router.http.live import SSE_HEADERS, Lasting, Line, Timing
from services.router.http.native import TASK_ID
from services.router.http.overview import welcome
from services.router.http.page.explaining import explained
from services.router.http.page.rendering import packed, prepare, rendered, static
from services.router.http.page.sign_in import KEY, cookie_of, look_of, page_headers, sign_in_page, wants_html
from services.router.http.page.watching import Watchers, Watching
from services.router.http.page.words import LANGUAGES, WORDS, Language, measuring_words, words_of
from services.router.http.problems import Problem, UnknownTask
from services.router.http.reading import read_body
from services.router.http.tries import Tries
from services.router.port import RouterPort

SIGN_IN_BYTES_MAX = 4096
CHOICE_S = 366 * 86_400
SCRIPT_WORDS = (
    "live", "offline", "unit_s", "unit_min", "unit_h", "soon", "late", "thanks", "starts_in", "place", "restarted",
    "predicted", "tokens_s", "left_out", "state_waiting", "state_released", "state_running", "state_completed",
    "state_failed", "state_cancelled", "state_dead", "copied", "queue", "verdict_better", "verdict_tie",
    "verdict_none", "failed_to_send", "start_unknown", "domain", "unknown",
    *(key for key in WORDS if key.startswith("hold_")),
)  # fmt: skip


def page_routes(router: RouterPort, timing: Timing, access: Access, tries: Tries, watchers: Watchers) -> APIRouter:
    prepare()
    routes = APIRouter()
    routes.include_router(_sign_in_routes(access, tries))
    routes.include_router(_answer_routes(router))

    @routes.get("/")
    async def page(request: Request) -> Response:
        if not wants_html(request.headers):
            return welcome(request)
        if (redirect := chosen(request)) is not None:
            return redirect
        html = _page(router, watchers.of(look_of(request)[0]), request)
        data, how = packed(html, request.headers.get("accept-encoding", ""))
        return HTMLResponse(data, headers={**page_headers(), **how})

    @routes.get("/page/events", include_in_schema=False)
    async def events(request: Request) -> Response:
        asked = request.query_params
        language: Language = next((each for each in LANGUAGES if each == asked.get("lang")), "en")
        since = request.headers.get("last-event-id") or asked.get("since", "")
        return PageStream(router, watchers.of(language), since, timing, lambda: may_stay(request, access))

    @routes.get("/page/explain/{task}", include_in_schema=False)
    async def explain(task: str, request: Request) -> Response:
        if (redirect := chosen(request)) is not None:
            return redirect
        found = await router.explain(task) if TASK_ID.fullmatch(task) else None
        if found is None:
            raise UnknownTask(task)
        language, theme = look_of(request)
        values = explained(*found, router.fleet().names())
        name = "explain.html" if request.query_params.get("part") else "explain_page.html"
        html = rendered(
            name, w=words_of(language), language=language, theme=theme, signed_in=_signed_in(request), **values
        )
        return HTMLResponse(html, headers=page_headers())

    @routes.get("/page/measuring", include_in_schema=False)
    async def measuring(request: Request) -> Response:
        words = words_of(look_of(request)[0])
        try:
            told = measuring_words(await router.bench_owed(), words)
        except HeadraceError:
            told = words["measuring_nobody"]
        return PlainTextResponse(told, headers={"cache-control": "no-store"})

    @routes.get("/page/static/{digest}/{name}", include_in_schema=False)
    async def file(digest: str, name: str) -> Response:
        known = static()
        if name not in known.files:
            raise HTTPException(404, "the page has no such file")
        data, media = known.files[name]
        kept = "public, max-age=31536000, immutable" if digest == known.digest else "no-cache"
        return Response(data, media_type=media, headers={"cache-control": kept, "x-content-type-options": "nosniff"})

    return routes


def _sign_in_routes(access: Access, tries: Tries) -> APIRouter:
    routes = APIRouter()

    @routes.post("/page/sign-in", include_in_schema=False)
    async def sign_in(request: Request) -> Response:
        body = await read_body(request, SIGN_IN_BYTES_MAX)
        key = parse_qs(body.decode("utf-8", "replace")).get("key", [""])[0].strip()
        if access.named(key) is None:
            return sign_in_page(request, wrong=True, wait_s=counted(request, tries))
        response = RedirectResponse("/", 303)
        response.set_cookie(
            KEY, quote(key, safe=""), httponly=True, samesite="strict", secure=request.url.scheme == "https"
        )
        return response

    @routes.post("/page/sign-out", include_in_schema=False)
    async def sign_out() -> Response:
        response = RedirectResponse("/", 303)
        response.delete_cookie(KEY, httponly=True, samesite="strict")
        return response

    return routes


def _answer_routes(router: RouterPort) -> APIRouter:
    routes = APIRouter()
    one_at_a_time = asyncio.Lock()  # threads share one interpreter: ten at once would end no sooner, and delay tokens

    @routes.get("/page/answer/{task}", include_in_schema=False)
    async def answer(task: str, request: Request) -> Response:
        status = await router.status(task) if TASK_ID.fullmatch(task) else None
        found = await router.answer(task) if status is not None and status.state == "completed" else None
        if found is None:
            raise UnknownTask(task)
        words = words_of(look_of(request)[0])
        async with one_at_a_time:
            html = await asyncio.to_thread(_answer_html, found.text, words)
        return Response(status_code=204) if html is None else HTMLResponse(html, headers=page_headers())

    return routes


def _answer_html(text: str, words: dict[str, str]) -> str | None:
    """The library is loaded with the first answer: 0.1 s that a router whose page nobody opens does without."""
    from services.router.http.page.markdown import answer_html

    return answer_html(text, words)


def chosen(request: Request) -> Response | None:
    """A language or a theme that was clicked on: kept, and the address is clean again."""
    kept = {name: request.query_params[name] for name in ("lang", "theme") if name in request.query_params}
    if not kept or request.query_params.get("part"):
        return None
    response = RedirectResponse(request.url.path, 303)
    for name, value in kept.items():
        if value in (*LANGUAGES, "light", "dark", "auto"):
            response.set_cookie(f"headrace_{name}", value, max_age=CHOICE_S, httponly=True, samesite="lax")
    return response


def _page(router: RouterPort, watching: Watching, request: Request) -> str:
    watching.look()
    language, theme = look_of(request)
    words = words_of(language)
    return rendered(
        "page.html",
        board=watching.board,
        version=watching.version,
        w=words,
        language=language,
        theme=theme,
        signed_in=_signed_in(request),
        routes=[name for name in router.routes().routes.names if name != "auto"],
        models=router.fleet().models(),
        script_words={name: words[name] for name in SCRIPT_WORDS},
    )


def _signed_in(request: Request) -> bool:
    return cookie_of(request.headers, KEY) is not None


class PageStream(Lasting):
    """``GET /page/events``: what changed, for as long as somebody looks who may."""

    def __init__(
        self, router: RouterPort, watching: Watching, since: str, timing: Timing, may: Callable[[], bool]
    ) -> None:
        super().__init__(router, timing)
        self._watching, self._since, self._may = watching, since, may

    async def follow(self, line: Line) -> None:
        await self.begin(line)
        async with aclosing(self._watching.events(self._since)) as events:
            async for event in events:
                if not self._may():
                    break
                await line.write(event)
        await line.close()

    async def begin(self, line: Line) -> None:
        await line.open(dict(SSE_HEADERS))

    async def on_failure(self, line: Line, problem: Problem) -> None:
        """The browser comes again by itself."""
        await self.begin(line)
        await line.close()
