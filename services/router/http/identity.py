"""Who asks, in which conversation, and for which message of it? See docs/http.md, "Who asks". A token itself is never kept."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from urllib.parse import unquote

from services.router.http.reading import BadRequest

LOCAL = "local"
SETTLED = "x-headrace-settled-client"
"""Set by the gate alone: the caller may not speak for others, whatever the request says. Empty: by its token, as ever."""
CACHE_KEY_PATHS = ("/responses", "/messages")
KEY_COOKIE = "headrace_key"
"""Where a browser keeps the key that was typed into the page (page/sign_in.py)."""
NAME_CHARS_MAX = 128
"""A client's name becomes a subject token, three bytes for each unusual one; a subject should stay below 1 KiB."""


def client_of(headers: Mapping[str, str], named: str | None = None) -> str:
    """The name given in the body, else in the header, else the bearer token's short hash, else ``local``; the first two only
    of a caller who may speak for users (``access``)."""
    settled = headers.get(SETTLED)
    if settled is not None:
        return settled or _token_name(headers) or LOCAL
    client = named or headers.get("x-headrace-client", "").strip() or _token_name(headers) or LOCAL
    return _checked(client, "client")


def session_of(
    headers: Mapping[str, str], path: str = "", named: str | None = None, cache_key: str | None = None
) -> str | None:
    """The name given in a body of ours, else the first of the headers ``x-headrace-session``, ``session-id`` and
    ``x-client-request-id``, the body's ``prompt_cache_key`` where ``path`` has one (a chat completion's is not a
    conversation), and Open WebUI's chat id."""
    of_path = cache_key if path.rstrip("/").endswith(CACHE_KEY_PATHS) else None
    if task_kind_of(headers) is not None:
        return None  # a title must not move where its chat is answered
    of_header = headers.get("x-headrace-session") or headers.get("session-id") or headers.get("x-client-request-id")
    session = named or of_header or of_path or headers.get("x-openwebui-chat-id")
    return _checked(session, "session") if session else None


def message_of(headers: Mapping[str, str], named: str | None = None) -> str | None:
    """The client's own name for the answer: of the body, else of the header. By it the answer may be rated."""
    message = named or headers.get("x-headrace-message", "").strip()
    return _checked(message, "message") if message else None


def task_kind_of(headers: Mapping[str, str]) -> str | None:
    """Which side task of a chat this is (``title_generation``), None for the chat itself."""
    kind = headers.get("x-headrace-task-kind", "").strip()
    return kind[:NAME_CHARS_MAX] if kind and kind != "none" else None


def speaks_ollama(headers: Mapping[str, str]) -> bool:
    """A client of Ollama by its name, or one that asks for a text and nothing else: ``/`` then answers as Ollama does."""
    accepts = headers.get("accept", "")
    return headers.get("user-agent", "").lower().startswith("ollama") or (
        accepts.startswith("text/plain") and "html" not in accepts
    )


def cookie_of(headers: Mapping[str, str], name: str) -> str | None:
    for part in headers.get("cookie", "").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name and value:
            return unquote(value.strip('"'))
    return None


def shown_key(headers: Mapping[str, str]) -> str | None:
    """A bearer token, Anthropic's ``x-api-key``, or the password of a browser's dialogue."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip() or None
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2] or None
        except (binascii.Error, UnicodeDecodeError):
            return None
    return headers.get("x-api-key", "").strip() or None


def is_dialogue(headers: Mapping[str, str]) -> bool:
    """A password, as a browser that was told one sends it by itself from then on."""
    return headers.get("authorization", "").lower().startswith("basic ")


def _token_name(headers: Mapping[str, str]) -> str | None:
    key = None if is_dialogue(headers) else shown_key(headers)
    return "key-" + hashlib.sha256(key.encode()).hexdigest()[:12] if key is not None else None


def _checked(name: str, field: str) -> str:
    if len(name) > NAME_CHARS_MAX:
        raise BadRequest(f"{field} has {len(name)} characters; at most {NAME_CHARS_MAX} are allowed", field)
    return name
