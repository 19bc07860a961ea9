"""Where a nats-server is: what people type, what may be shown of it, and what is wrong when nobody answers there.

Answers in words, with the way out; it connects to nothing.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from schemas.errors import BusError

SCHEMES = ("nats", "tls", "ws", "wss")
REFUSED = 401
"""The code of a BusError where the server does not know who we say we are."""


def check_address(url: str) -> None:
    """Raises BusError before anything is sent: a client would look ``http`` up as a host."""
    if urlsplit(url if "://" in url else f"nats://{url}").scheme not in SCHEMES:
        raise BusError(f"{public_url(url)} is no address of a nats-server, such as nats://127.0.0.1:4222")


def is_refusal(error: Exception | None) -> bool:
    """Somebody answered, and does not know our user and password."""
    return "authorization violation" in str(error).lower()


def no_connection(url: str, timeout_s: float, reason: Exception) -> BusError:
    """What to do depends on whether somebody answered."""
    where = public_url(url)
    if is_refusal(reason):
        return BusError(
            f"{where} wants a user and a password that it knows: [nats] user and password; "
            "a worker of `headrace up --lan` is started by `headrace join`",
            REFUSED,
        )
    told = str(reason) or "nothing there speaks NATS"
    return BusError(
        f"no connection to {where} within {timeout_s:g} s: {told}; is nats-server running there? "
        "--server names another; `headrace up` brings its own"
    )


def public_url(url: str) -> str:
    """The URL without its user and password."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
