"""Which other sites' pages may read what is answered here? Those that ``[http] origins`` names, and for "*" whoever shows a key.

It only tells browsers whom to let; what a page may change is decided by ``access``, behind it. It never lets a browser send
what it keeps by itself: a cookie, or the password of its dialogue.
"""

from __future__ import annotations

from typing import Any

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from services.router.http.access import Access
from services.router.http.identity import is_dialogue, shown_key
from services.router.http.same_site import ANYONE, is_named

KEY_HEADERS = frozenset({"authorization", "x-api-key"})
_ANSWER: dict[str, Any] = {
    "allow_methods": ("GET", "HEAD", "POST", "DELETE"),
    "allow_headers": ("*",),
    "allow_private_network": True,
    "expose_headers": ("*",),
}
"""Clients read ``x-headrace-*``, ``x-request-id`` and ``retry-after``."""


class Origins:
    """ASGI middleware around the gate: a browser's question before a request carries no key."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access
        # By any pattern: it is asked only for origins that are named now, and which ones are may change.
        self._named = CORSMiddleware(app, allow_origin_regex=".*", **_ANSWER)
        self._anyone = CORSMiddleware(app, allow_origins=(ANYONE,), **_ANSWER)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._for(scope)(scope, receive, send)

    def _for(self, scope: Scope) -> ASGIApp:
        allowed = self._access.http.origins
        if scope["type"] != "http" or not allowed:
            return self._app
        headers = Headers(scope=scope)
        if is_named(headers.get("origin"), allowed):
            return self._named
        if ANYONE in allowed and "origin" in headers and self._shows_key(scope["method"], headers):
            return self._anyone
        return self._app

    def _shows_key(self, method: str, headers: Headers) -> bool:
        """Where keys are not asked for, any text would be one, and every page on the web might read what is said here."""
        if not self._access.guarded:
            return False
        if method == "OPTIONS":
            asked = headers.get("access-control-request-headers", "").lower()
            return not KEY_HEADERS.isdisjoint(name.strip() for name in asked.split(","))
        return shown_key(headers) is not None and not is_dialogue(headers)
