"""Every request's first stop: known or refused, its headers settled, its caller noted for whoever asks.

Answers no path itself. It must not touch bodies: a token's way out leads through here.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from services.router.http.access import Access, Caller, is_local
from services.router.http.page.sign_in import sign_in_page, wants_html
from services.router.http.problems import problem_of, respond_to
from services.router.http.reading import Refused

CALLER = "headrace.caller"


class Gate:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, host = Headers(scope=scope), (scope.get("client") or (None,))[0]
        try:
            caller = self._access.caller(headers, scope["path"], is_local=is_local(host, headers))
            self._access.turn_strangers_away(caller, scope["method"], headers, scope["path"])
        except Refused as error:
            if error.status == 401 and scope["path"] == "/" and wants_html(headers):
                await sign_in_page(Request(scope))(scope, receive, send)
                return
            response = respond_to(scope["path"], problem_of(error))
            if error.status == 401:
                response.headers["www-authenticate"] = 'Bearer realm="headrace", Basic realm="headrace"'
            await response(scope, receive, send)
            return
        settled = self._access.settle(scope["headers"], headers, caller)
        await self._app({**scope, "headers": settled, CALLER: caller}, receive, send)


def caller_of(request: Request) -> Caller:
    """Who asks, as the gate found."""
    found = request.scope.get(CALLER)
    return found if isinstance(found, Caller) else Caller()


def need_admin(request: Request, what: str) -> None:
    """Raises Refused (403) where the caller's key is no admin's. ``what`` completes "only an admin key may ..."."""
    if not caller_of(request).admin:
        raise Refused(f"only an admin key may {what}; set admin = true for one of the router's [keys]", 403)
