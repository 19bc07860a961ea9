"""Every request's first stop: known or refused, its headers settled, its caller noted for whoever asks.

Answers no path itself. It must not touch bodies: a token's way out leads through here.
"""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from services.router.http.access import Access, Caller, WrongKey, is_local
from services.router.http.page.sign_in import sign_in_page, wants_html
from services.router.http.problems import Problem, problem_of, respond_to
from services.router.http.reading import Refused
from services.router.http.tries import Tries
from services.runtime.logs import logger

CALLER = "headrace.caller"

log = logger("http")


class Gate:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, access: Access, tries: Tries) -> None:
        self._app, self._access, self._tries = app, access, tries

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        headers = request.headers
        try:
            caller = _caller(request, self._access)
            self._access.turn_strangers_away(caller, scope["method"], headers, scope["path"])
            user = self._access.user(headers, time.time())
        except Refused as error:
            await self._refusal(request, error)(scope, receive, send)
            return
        settled = self._access.settle(scope["headers"], headers, caller, user)
        await self._app({**scope, "headers": settled, CALLER: caller}, receive, send)

    def _refusal(self, request: Request, error: Refused) -> Response:
        path, wrong = request.url.path, isinstance(error, WrongKey)
        wait_s = counted(request, self._tries) if wrong else 0.0
        if error.status == 401 and path == "/" and wants_html(request.headers):
            return sign_in_page(request, wrong=wrong, wait_s=wait_s)
        if wait_s:
            problem = too_many(error, wait_s)
            response = respond_to(path, problem)
            response.status_code = problem.status  # for Ollama too, whose number for a full queue is another
            return response
        response = respond_to(path, problem_of(error))
        if error.status == 401:
            response.headers["www-authenticate"] = 'Bearer realm="headrace", Basic realm="headrace"'
        return response


def counted(request: Request, tries: Tries) -> float:
    """A wrong key was shown: seconds until this address may show another, 0 where it may go on."""
    host = _host(request) or "unknown"
    wait_s = tries.wait_s(host, time.monotonic())
    if not wait_s:  # so the log, too, gets ten lines of an address and then one for each six seconds
        log.warning("a wrong key", action="wrong_key", host=host, path=request.url.path)
    return wait_s


def too_many(error: Refused, wait_s: float) -> Problem:
    message = f"{error}; too many wrong keys came from this address, the next may come in {wait_s:.0f} s"
    return Problem(status=429, code="too_many_tries", message=message, retry_after_s=wait_s)


def may_stay(request: Request, access: Access) -> bool:
    """Would it be let in again? Keys change while a stream is open."""
    try:
        _caller(request, access)
    except Refused:
        return False
    return True


def _caller(request: Request, access: Access) -> Caller:
    headers = request.headers
    return access.caller(headers, request.url.path, is_local=is_local(_host(request), headers))


def _host(request: Request) -> str | None:
    return request.client.host if request.client is not None else None


def caller_of(request: Request) -> Caller:
    """Who asks, as the gate found."""
    found = request.scope.get(CALLER)
    return found if isinstance(found, Caller) else Caller()


def need_admin(request: Request, what: str) -> None:
    """Raises Refused (403) where the caller's key is no admin's. ``what`` completes "only an admin key may ..."."""
    if not caller_of(request).admin:
        raise Refused(f"only an admin key may {what}; set admin = true for one of the router's [keys]", 403)
