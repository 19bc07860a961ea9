"""Which user does Open WebUI's signed header name, and is it Open WebUI that says so?

With ``FORWARD_USER_INFO_HEADER_JWT_SECRET`` it sends one HS256 JWT (RFC 7519) in ``X-OpenWebUI-User-Jwt`` instead of its plain
user headers (0.12.4, ``utils/headers.py``: ``sub`` is the user's id, ``iss`` open-webui, ``exp`` 300 s ahead). No other algorithm
is ever believed, whatever the token says of itself.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Any

import msgspec

HEADER = "x-openwebui-user-jwt"
ISSUER = "open-webui"
BYTES_MAX = 8192
LEEWAY_S = 60.0
"""The clocks of two machines of a house may differ so much."""


class NotSigned(ValueError):
    """Why the token counts for nothing."""


class Head(msgspec.Struct):
    alg: str


class Claims(msgspec.Struct):
    """Of the claims those that are used here."""

    sub: str
    iss: str
    exp: float


def user_of_token(token: str, secret: str, now: float) -> str:
    """The user's id. ``now`` is Unix time. Raises NotSigned; the message holds nothing of the token but numbers."""
    head, _, rest = token.partition(".")
    payload, _, signature = rest.partition(".")
    if len(token) > BYTES_MAX or _decoded(head, Head).alg != "HS256":
        raise NotSigned("it is no JWT of the kind that Open WebUI makes (HS256)")
    mac = hmac.digest(secret.strip().encode(), f"{head}.{payload}".encode(), hashlib.sha256)
    if not hmac.compare_digest(mac, _bytes(signature)):
        raise NotSigned("it is not signed with [http] user_jwt_secret")
    claims: Claims = _decoded(payload, Claims)
    if claims.iss != ISSUER or not claims.sub.strip():
        raise NotSigned(f"it names no user, or is not by {ISSUER}")
    if now > claims.exp + LEEWAY_S:
        raise NotSigned(f"it ran out {now - claims.exp:.0f} s ago; do both machines' clocks go right?")
    return claims.sub.strip()


def _decoded(part: str, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(_bytes(part), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotSigned("it cannot be read as a JWT") from error


def _bytes(part: str) -> bytes:
    """base64url without its padding, as JWTs have it."""
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise NotSigned("it cannot be read as a JWT") from error
