"""Names as single subject tokens: reversible, legal in subjects, durable names and KV keys alike.

Every UTF-8 byte outside ``[A-Za-z0-9_-]`` becomes ``=XX``. ``.`` would split a subject, ``:`` and ``/`` are refused in KV keys.
"""

from __future__ import annotations

import re

from schemas.errors import InvalidToken

_ENCODED = re.compile(r"(?:[A-Za-z0-9_-]|=[0-9A-F]{2})+")
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


def encode_token(name: str) -> str:
    """``qwen2.5:7b`` -> ``qwen2=2E5=3A7b``. An empty name raises InvalidToken: it has no token."""
    if not name:
        raise InvalidToken("an empty name has no subject token; give it at least one character")
    return "".join(chr(byte) if byte in _SAFE else f"={byte:02X}" for byte in name.encode())


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
