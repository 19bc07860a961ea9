"""Does this request come from where it says, or did somebody else's web page send it?

Two things that a browser does for any page it is shown: it sends forms and simple requests anywhere (the page's ``Origin`` goes
with them), and it asks whatever address a name of the page's owner leads to, this machine's own included (the ``Host`` is that
name). Who shows a key in a header is no such page; who is let in without one, or by a cookie, might be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

ANYONE = "*"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
PRIVATE = (
    "localhost",
    "local",
    "lan",
    "internal",
    "home",
    "localdomain",
    "home.arpa",
    "test",
    "intranet",
    "corp",
    "private",
)
"""Ends of names that nobody can buy: reserved, or used inside houses for so long that they will never be given away."""


def is_ours(host: str, others: Iterable[str]) -> bool:
    """An address, a name without a dot, one of a private ending, or one of ``others``: none of them is a stranger's name that
    leads here. ``host`` is the header's; empty where there is none, as old programs do."""
    name = _name(host)
    if not name or "." not in name or name in {other.lower().rstrip(".") for other in others}:
        return True
    if any(name == end or name.endswith(f".{end}") for end in PRIVATE):
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_foreign(method: str, headers: Mapping[str, str]) -> bool:
    """It would change something, and a page of another site sent it. Programs send no ``Origin``; an editor or an app that has
    one of its own kind (``vscode-webview:``) is no web page."""
    origin = headers.get("origin", "").lower()
    if method in SAFE or not origin:
        return False
    if origin == "null":
        return True
    parts = urlsplit(origin)
    return parts.scheme in ("http", "https") and parts.netloc != headers.get("host", "").lower()


def is_named(origin: str | None, allowed: Iterable[str]) -> bool:
    """A page of an origin that the router's owner has named; for ``ANYONE`` a page is nobody in particular."""
    return origin is not None and origin != ANYONE and origin in allowed


def _name(host: str) -> str:
    """Without the port; ``[::1]:8420`` without the brackets."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower().rstrip(".")
    except ValueError:
        return "no.name"  # nothing that can be read is nobody of ours
