"""The line that a person carries from the router's machine to another one: a secret, and where it is good for.

Answers "by what does another machine join?". ``SECRET@HOST:PORT`` is to be read and put right by people: an address that changed
can be typed over. The secret is one for a whole fleet; it lies in the router's data directory, and in those of who joined.
"""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from services.cli.exits import CommandFailed, Exit
from services.runtime.server import LOOPBACK, SECRET_BYTES

NATS_PORT = 4222
SECRET_FILE = "join.secret"
CODE_FILE = "joined"
ELSEWHERE = "192.0.2.1"
"""An address that no machine has [RFC 5737]: which of ours a packet there would leave by is asked, none is sent."""
WHERE_FROM = "`headrace up --lan` on the router's machine says the whole line"


class JoinCode(NamedTuple):
    """Where the fleet's NATS is, and the password of a worker there."""

    secret: str
    host: str
    port: int = NATS_PORT

    def __str__(self) -> str:
        return f"{self.secret}@{self.place}"

    @property
    def place(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_code(text: str) -> JoinCode:
    """What somebody pasted. Raises CommandFailed, which repeats the place and not the secret."""
    secret, at, place = text.strip().rpartition("@")
    try:
        address = urlsplit(f"//{place}")
        host, port = address.hostname, address.port or NATS_PORT
    except ValueError:
        host, port = None, NATS_PORT
    if not at or not secret or not host or address.path or not secret.isascii():
        shown = f"…@{place}" if at else repr(place)
        raise CommandFailed(f"{shown} is no join code", hint=f"it is SECRET@HOST:PORT; {WHERE_FROM}", code=Exit.USAGE)
    return JoinCode(secret, host, port)


def fleet_secret(data: Path) -> str:
    """The same at every start, made at the first. To shut out who has joined, delete the file: then each needs the new line."""
    file = data / SECRET_FILE
    return _read(file) or _keep(file, secrets.token_urlsafe(SECRET_BYTES))


def joined_before(data: Path) -> JoinCode | None:
    """By what this machine joined last."""
    text = _read(data / CODE_FILE)
    return parse_code(text) if text else None


def remember(data: Path, code: JoinCode) -> None:
    """So that ``headrace join`` alone joins again."""
    _keep(data / CODE_FILE, str(code))


def address_here() -> str:
    """How other machines in the network reach this one: its address, which they need not look up; else its name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((ELSEWHERE, 9))
            found = str(probe.getsockname()[0])
        except OSError:
            return socket.gethostname()
    return socket.gethostname() if found in (LOOPBACK, "0.0.0.0") else found


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise CommandFailed(
            f"cannot read {file}: {error.strerror}", hint="name another directory with --data"
        ) from error


def _keep(file: Path, text: str) -> str:
    """For its owner's eyes."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as kept:
            kept.write(f"{text}\n")
    except OSError as error:
        raise CommandFailed(
            f"cannot write {file}: {error.strerror}", hint="name another directory with --data"
        ) from error
    return text
