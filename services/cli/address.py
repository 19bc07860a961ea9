"""What people type as an address and as a key: can a request be made of it?

Answers before anything is sent, in words; what httpx would say instead is a traceback, or the key itself.
"""

from __future__ import annotations

import httpx

from services.cli.exits import CommandFailed, Exit


def base_url(typed: str, example: str) -> str:
    """With its scheme, without a slash at its end. Raises CommandFailed."""
    url = typed.strip()
    url = (url if "://" in url else f"http://{url}").rstrip("/")
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL()
    if parsed.scheme not in ("http", "https") or not parsed.host or not 0 < (parsed.port or 80) < 65_536:
        raise CommandFailed(f"{typed!r} is no address", hint=f"for example {example}", code=Exit.USAGE)
    return url


def bearer(key: str, where: str) -> dict[str, str]:
    """The header; ``where`` names the key's place. Raises CommandFailed, which does not show the key."""
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise CommandFailed(f"{where} holds characters that no key has", hint="was it copied whole?", code=Exit.USAGE)
    return {"authorization": f"Bearer {key}"} if key else {}
