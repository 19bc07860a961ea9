"""Who asks, in which conversation, and for which message of it? See docs/http.md, "Who asks". A token itself is never kept."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from services.router.http.reading import BadRequest

LOCAL = "local"
CACHE_KEY_PATHS = ("/responses", "/messages")
NAME_CHARS_MAX = 128
"""A client's name becomes a subject token, three bytes for each unusual one; a subject should stay below 1 KiB."""


def client_of(headers: Mapping[str, str], named: str | None = None) -> str:
    """The name given in the body, else in the header, else the bearer token's short hash, else ``local``."""
    client = (
        named or headers.get("x-headrace-client", "").strip() or _token_name(headers.get("authorization", "")) or LOCAL
    )
    return _checked(client, "client")


def session_of(
    headers: Mapping[str, str], path: str = "", named: str | None = None, cache_key: str | None = None
) -> str | None:
    """The name given in a body of ours, else the first of the headers ``session-id`` and ``x-client-request-id``, the body's
    ``prompt_cache_key`` where ``path`` has one (a chat completion's is not a conversation), and Open WebUI's chat id."""
    of_path = cache_key if path.rstrip("/").endswith(CACHE_KEY_PATHS) else None
    of_header = headers.get("session-id") or headers.get("x-client-request-id")
    session = named or of_header or of_path or headers.get("x-openwebui-chat-id")
    return _checked(session, "session") if session else None


def message_of(headers: Mapping[str, str], named: str | None = None) -> str | None:
    """The client's own name for the answer: of the body, else of the header. By it the answer may be rated."""
    message = named or headers.get("x-headrace-message", "").strip()
    return _checked(message, "message") if message else None


def _token_name(authorization: str) -> str | None:
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        return None
    return "key-" + hashlib.sha256(token.strip().encode()).hexdigest()[:12]


def _checked(name: str, field: str) -> str:
    if len(name) > NAME_CHARS_MAX:
        raise BadRequest(f"{field} has {len(name)} characters; at most {NAME_CHARS_MAX} are allowed", field)
    return name
