"""How long may an answer become whose client named no limit?

As long as the machine's owner says, and no longer than the model's window leaves, where the window is known: what a prompt takes
of it is an estimate here. It never shortens what a client asked for. Pure.
"""

from __future__ import annotations

import msgspec

from schemas.language import estimate_tokens
from schemas.work import Body

SURE_SHARE = 4
"""A quarter of the window is left at the least: an estimate may be wrong by half, and servers end there by themselves."""
TAKES_ROOM = ("tools", "response_format", "format")
"""What else becomes a part of the prompt."""


def most_tokens(own: int, window: int | None, body: Body) -> int:
    """``own`` is the owner's limit, ``window`` the model's; both in tokens, and so is the answer."""
    if window is None or own <= window // SURE_SHARE:
        return own
    return min(own, max(window - prompt_tokens(body), window // SURE_SHARE))


def prompt_tokens(body: Body) -> int:
    """An estimate; images count nothing."""
    texts = [body.prompt or ""]
    for message in body.messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        texts += [text for part in parts if isinstance(part, dict) and isinstance(text := part.get("text"), str)]
        if calls := message.get("tool_calls"):
            texts.append(msgspec.json.encode(calls).decode())
    texts += [msgspec.json.encode(value).decode() for name in TAKES_ROOM if (value := body.extra.get(name))]
    return estimate_tokens("\n".join(texts))
