"""``headrace key add``: a new key for somebody, shown once, and the line by which the router will know it.

Answers "how do I let somebody in?". The key itself is written nowhere; a settings file gets one line more, or stays as it is.
"""

from __future__ import annotations

import hashlib
import json as quoting
import re
import secrets
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from services.cli.exits import CommandFailed, Exit
from services.cli.output import emit_json, err
from services.cli.show_commands import AsJson
from services.runtime import settings

SECRET_BYTES = 32
PREFIX = "sk-headrace-"
"""Some clients take only keys that begin with sk-; the rest is for whoever finds one lying about."""
NAME_CHARS_MAX = 64
HEADER = re.compile(r"\s*\[\s*keys\s*\]\s*(#.*)?$")
ANY_HEADER = re.compile(r"\s*\[")

keys = typer.Typer(no_args_is_help=True, help="Keys for the router: who may ask.")


@keys.callback()
def _group() -> None:
    """So that ``add`` stays a word of its own."""


@keys.command("add")
def add(
    name: Annotated[str, typer.Argument(help="Whose key it is; a client without another name is called so.")],
    config: Annotated[
        Path | None, typer.Option("--config", dir_okay=False, help="The router's headrace.toml; it gets the line.")
    ] = None,
    admin: Annotated[
        bool, typer.Option("--admin", help="It may also pause machines, fetch models and run benchmarks.")
    ] = False,
    speaks: Annotated[
        bool,
        typer.Option("--may-speak-for-users", help="Its requests may name the user they are for, as Open WebUI's do."),
    ] = False,
    json: AsJson = False,
) -> None:
    """Make a key and show it, this once."""
    if not name.strip() or not name.isascii() or not name.isprintable() or len(name) > NAME_CHARS_MAX:
        raise CommandFailed(
            f"{name[:NAME_CHARS_MAX]!r} cannot be a key's name",
            hint=f"a name has 1 to {NAME_CHARS_MAX} signs of ASCII, such as open-webui",
            code=Exit.USAGE,
        )
    key = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    digest = hashlib.sha256(key.encode()).hexdigest()
    line = line_of(name, settings.Key(sha256=digest, admin=admin, may_speak_for_users=speaks))
    problem = write_into(config, name, line) if config is not None else None
    written = config is not None and problem is None
    if json:
        emit_json(
            {"name": name, "key": key, "sha256": digest, "line": line, "written": str(config) if written else None}
        )
    else:
        sys.stdout.write(key + "\n")
        sys.stdout.flush()
        err.print(Text(_said(name, line, config, problem)), soft_wrap=True)


def line_of(name: str, key: settings.Key) -> str:
    bare = re.fullmatch(r"[A-Za-z0-9_-]+", name)
    rights = [right for right in ("may_speak_for_users", "admin") if getattr(key, right)]
    fields = [f'sha256 = "{key.sha256}"', *(f"{right} = true" for right in rights)]
    return f"{name if bare else quoting.dumps(name)} = {{ {', '.join(fields)} }}"


def write_into(config: Path, name: str, line: str) -> str | None:
    """None where the file has the line now; else why it was left as it was.

    Raises SettingsError where the file is not one that a router would take, and CommandFailed where the name has a key.
    """
    path = config.resolve()
    try:
        old = path.read_bytes() if path.exists() else b""
        if name in settings.parse(old, config, {}).keys:
            raise CommandFailed(
                f"{config} has a key of {name} already",
                hint="take its line out for a new one, or choose another name",
                code=Exit.USAGE,
            )
        new = with_line(old.decode(), line).encode()
        if not _is_one_key_more(old, new, line):
            return f"{config} is written in a way that this command does not change"
        beside = path.with_name(f".{path.name}.new")
        beside.write_bytes(new)
        if path.exists():
            shutil.copymode(path, beside)
        beside.replace(path)
    except OSError as error:
        return f"{config} cannot be written: {error.strerror}"
    return None


def with_line(text: str, line: str) -> str:
    """After the last entry of ``[keys]``, or with a ``[keys]`` of its own at the end. Everything else stays, byte for byte."""
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += end
    head = next((at for at, each in enumerate(lines) if HEADER.match(each.rstrip("\r\n"))), None)
    if head is None:
        return "".join([*lines, *([end] if lines else []), f"[keys]{end}", line + end])
    last = head
    for at in range(head + 1, len(lines)):
        if ANY_HEADER.match(lines[at]):
            break
        if lines[at].strip() and not lines[at].lstrip().startswith("#"):
            last = at
    return "".join([*lines[: last + 1], line + end, *lines[last + 1 :]])


def _is_one_key_more(old: bytes, new: bytes, line: str) -> bool:
    """Text that looked like a table may have been inside of a string: what counts is what a reader of TOML sees."""
    try:
        after = tomllib.loads(new.decode())
    except tomllib.TOMLDecodeError:
        return False
    wanted = tomllib.loads(old.decode())
    wanted["keys"] = {**wanted.get("keys", {}), **tomllib.loads(line)}
    return after == wanted


def _said(name: str, line: str, config: Path | None, problem: str | None) -> str:
    first = (
        f"This is the key of {name}; it is shown this once. Send it as Authorization: Bearer, or type it into the page."
    )
    if config is not None and problem is None:
        return f"{first}\n{config} has its SHA-256; a router that runs with --config {config} takes it within a second."
    why = f"{problem}. " if problem else ""
    return f"{first}\n{why}Put this into the router's headrace.toml (`headrace up --config headrace.toml`):\n\n[keys]\n{line}"
