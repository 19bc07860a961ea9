"""Names as single subject tokens: reversible, legal in subjects, durable names and KV keys alike.

Every UTF-8 byte outside ``[A-Za-z0-9_-]`` becomes ``=XX``. ``.`` would split a subject, ``:`` and ``/`` are refused in KV keys.
"""

from __future__ import annotations

import re
from functools import lru_cache

from schemas.errors import InvalidToken

_ENCODED = re.compile(r"(?:[A-Za-z0-9_-]|=[0-9A-F]{2})+")
MAX_TOKEN = 900
"""Bytes of an encoded token. Four of them must fit into the 4,096 of a NATS control line: beyond it the server hangs up."""

_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_PLAIN = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_TOKEN}}}")
"""Names that are their own token: all our ids, of which each task has a new one."""


@lru_cache(4096)  # a router names the same few workers and models a hundred times for each task: 5 µs each
def encode_token(name: str) -> str:
    """``qwen2.5:7b`` -> ``qwen2=2E5=3A7b``. Raises InvalidToken for a name that is empty, too long or not text."""
    if _PLAIN.fullmatch(name):
        return name
    if not name:
        raise InvalidToken("an empty name has no subject token; give it at least one character")
    try:
        raw = name.encode()
    except UnicodeEncodeError:
        raise InvalidToken(f"{name!a} is not text: it holds half of a surrogate pair; send it as UTF-8") from None
    token = "".join(chr(byte) if byte in _SAFE else f"={byte:02X}" for byte in raw)
    if len(token) > MAX_TOKEN:
        raise InvalidToken(
            f"{name[:40]!r}... takes {len(token)} bytes as a token, {MAX_TOKEN} at most; use a shorter name"
        )
    return token


def decode_token(token: str) -> str:
    """The inverse of encode_token; raises InvalidToken for what encode_token cannot have made."""
    if not _ENCODED.fullmatch(token):
        raise InvalidToken(f"{token!r} is not an encoded token; expected letters, digits, '_', '-' and '=XX' bytes")
    raw = re.sub(rb"=([0-9A-F]{2})", lambda m: bytes([int(m[1], 16)]), token.encode())
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        raise InvalidToken(f"{token!r} does not decode to UTF-8 text") from None
    if encode_token(name) != token:
        raise InvalidToken(f"{token!r} is not the canonical token of {name!r}, which is {encode_token(name)!r}")
    return name
