"""Was this prompt new to the server's prompt cache?

Servers that do not say how much of a prompt was cached still report its whole length beside the time for the new part only: a
repeated prompt would count as 20 times the real speed. Such a prefill is a sample only where the prompt begins unlike every one
before it. Pure; remembers hashes, never texts.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict

import msgspec

from schemas.work import Body

REMEMBERED = 256
PREFIX_CHARS = 64
"""Roughly 16 tokens: a shorter common beginning saves nothing worth counting in a prompt of any length."""


class Freshness:
    """One per worker; ``is_new`` remembers what it was asked."""

    def __init__(self) -> None:
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def is_new(self, model: str, body: Body) -> bool:
        """Whether no earlier prompt for this model began with the same text."""
        begin = body.prompt[:PREFIX_CHARS] if body.prompt else _beginning(body)
        key = hashlib.sha256(f"{model}\0{begin}".encode(errors="replace")).digest()
        is_new = key not in self._seen
        self._seen[key] = None
        self._seen.move_to_end(key)
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return is_new


def _beginning(body: Body) -> str:
    text = ""
    for message in body.messages:
        content = message.get("content")
        text += content if isinstance(content, str) else msgspec.json.encode(content).decode()
        if len(text) >= PREFIX_CHARS:
            break
    return text[:PREFIX_CHARS]
