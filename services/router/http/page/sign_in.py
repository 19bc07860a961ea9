"""Who is it that looks: which language and theme, and which key? From a browser's headers and cookies.

A key that was typed in is kept in a cookie that scripts cannot read and other sites cannot send (HttpOnly, SameSite=Strict),
until the browser is closed: nothing is stored on the router, and a script that got into the page could not carry it away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from services.router.http.identity import KEY_COOKIE as KEY, cookie_of
from services.router.http.page.rendering import rendered
from services.router.http.page.words import Language, language_of, words_of

__all__ = ["KEY", "cookie_of", "look_of", "page_headers", "sign_in_page", "wants_html"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
THEMES = ("light", "dark", "auto")


def page_headers() -> dict[str, str]:
    """Nothing from elsewhere, in no frame, and never out of a cache: it shows names, and who looks may have signed out."""
    return {
        "content-security-policy": POLICY,
        "cache-control": "no-store",
        "vary": "accept, accept-language, cookie",
        "x-content-type-options": "nosniff",
        "referrer-policy": "same-origin",  # no-referrer would make the Origin of a form "null", which is a stranger's
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }


def wants_html(headers: Mapping[str, str]) -> bool:
    """As browsers say; ``*/*`` alone is a program's."""
    return "text/html" in headers.get("accept", "")


def look_of(request: Request) -> tuple[Language, str]:
    """Language and theme."""
    headers = request.headers
    language = language_of(
        request.query_params.get("lang"), cookie_of(headers, "headrace_lang"), headers.get("accept-language", "")
    )
    theme = cookie_of(headers, "headrace_theme") or "auto"
    return language, theme if theme in THEMES else "auto"


def sign_in_page(request: Request, *, wrong: bool = False, wait_s: float = 0.0) -> Response:
    """``wait_s``: after too many wrong keys. A cookie that was sent is of no use any more, and goes."""
    language, theme = look_of(request)
    words, seconds = words_of(language), math.ceil(wait_s)
    fault = words["too_many_tries"].format(seconds) if seconds else words["key_unknown"] if wrong else None
    html = rendered("sign_in.html", w=words, language=language, theme=theme, signed_in=False, fault=fault)
    # Bearer alone, for the form is there: Basic would open the browser's own dialogue.
    told = {"retry-after": str(seconds)} if seconds else {"www-authenticate": 'Bearer realm="headrace"'}
    response = HTMLResponse(html, 429 if seconds else 401, {**page_headers(), **told})
    if cookie_of(request.headers, KEY) is not None:
        response.delete_cookie(KEY, httponly=True, samesite="strict")
    return response
