"""What does a client see? Its objects as flat paths with values, without what no two calls have alike.

Two tours of the same steps are compared path by path. Ids, times and counts become the names of their types; a real model's words
become ``words``, since they are its own affair.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

Seen = dict[str, Any]
"""Step -> what was seen."""
VOLATILE = re.compile(
    r"(^|\.)(id|created|created_at|completed_at|system_fingerprint|call_id|item_id|response_id|modified_at|digest|expires_at"
    r"|[a-z_]*_duration|[a-z_]*_count|[a-z_]*_tokens|size(_vram)?|sequence_number|obfuscation|message|signature)$"
)
"""Errors are compared by their class and status: the words differ from server to server. A chat's ``message`` is an object."""
OPAQUE = frozenset({"headrace", "timings", "context"})
"""Objects that are one server's own: that they are there is what counts."""


async def errors(call: Awaitable[Any]) -> Seen:
    """How a request that cannot be answered is refused, as the client's own error."""
    try:
        answer = await call
    except Exception as error:  # noqa: BLE001 (whatever the client raises is the observation)
        return {"raised": type(error).__name__, "status": getattr(error, "status_code", None)}
    return {"raised": None, "answer": flat(answer)}


def plain(value: Any) -> Any:
    """A client's object as JSON."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", exclude_unset=True) if dump is not None else value


def flat(value: Any, *, words: bool = True, at: str = "") -> Seen:
    """``words`` False hides texts that a real model made up."""
    value = plain(value)
    name = at.rpartition(".")[2]
    if name in OPAQUE:
        return {at: "object"}
    if isinstance(value, Mapping) and value:
        return {
            k: v for key, each in value.items() for k, v in flat(each, words=words, at=f"{at}.{key}".strip(".")).items()
        }
    if isinstance(value, list | tuple) and value:
        return {k: v for n, each in enumerate(value) for k, v in flat(each, words=words, at=f"{at}[{n}]").items()}
    if isinstance(value, Mapping | list | tuple):
        return {at: "{}" if isinstance(value, Mapping) else "[]"}
    if VOLATILE.search(at) and value is not None:
        return {at: type(value).__name__}
    if not words and isinstance(value, str) and name in WORDY:
        return {at: "words" if value else ""}
    return {at: value}


WORDY = frozenset(
    {"content", "text", "delta", "arguments", "partial_json", "response", "thinking", "input", "output_text"}
)


def stream(chunks: Iterable[Any], text_of: Callable[[Any], str], *, words: bool = True) -> Seen:
    """Its shape: every path that any chunk had, its last chunk, and the text in one. How many chunks there were is chance."""
    seen = [plain(chunk) for chunk in chunks]
    paths = sorted({re.sub(r"\[\d+\]", "[]", path) for chunk in seen for path in flat(chunk, words=words)})
    text = "".join(text_of(chunk) or "" for chunk in seen)
    return {
        "paths": dict.fromkeys(paths, "seen"),
        "text": text if words else ("words" if text else ""),
        "last": flat(seen[-1], words=words) if seen else {},
    }


def differences(ours: Any, theirs: Any, at: str = "") -> dict[str, tuple[Any, Any]]:
    """Path -> (what we showed, what the server itself showed); ``absent`` where it is not there."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found: dict[str, tuple[Any, Any]] = {}
        for key in ours.keys() | theirs.keys():
            found |= differences(ours.get(key, "absent"), theirs.get(key, "absent"), f"{at} {key}".strip())
        return found
    if isinstance(ours, dict) and ours:
        return differences(ours, dict.fromkeys(ours, "absent"), at)
    if isinstance(theirs, dict) and theirs:
        return differences(dict.fromkeys(theirs, "absent"), theirs, at)
    return {} if ours == theirs else {at: (ours, theirs)}
