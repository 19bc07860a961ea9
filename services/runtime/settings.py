"""What a person may set, from TOML and from ``HEADRACE_<SECTION>_<KEY>``.

Answers "how should it behave here?". The environment stands over the file, the file over the defaults of ``sections``. A key that
does not exist or cannot be so is refused by name, never ignored: a misspelt limit would be no limit. Lists in the environment are
separated by commas; the tables ``[models]``, ``[domains]``, ``[wake]`` and ``[keys]`` come from the file only.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec

from schemas.errors import SettingsError
from schemas.subjects import ANY_LANE
from services.runtime.sections import (
    Benchmarker,
    DomainRules,
    Http,
    Key,
    Limit,
    Limits,
    ModelName,
    Nats,
    Privacy,
    Projector,
    Router,
    Section,
    Settings,
    Timeouts,
    Wake,
    Worker,
)

__all__ = [
    "Benchmarker",
    "DomainRules",
    "Http",
    "Key",
    "Limit",
    "Limits",
    "ModelName",
    "Nats",
    "Privacy",
    "Projector",
    "Router",
    "Section",
    "Settings",
    "Timeouts",
    "Wake",
    "Worker",
    "load",
    "parse",
]

PREFIX = "HEADRACE_"
SECRET = re.compile(r"password|secret|^keys\.")
"""What no message repeats."""


def load(path: Path | None, environ: Mapping[str, str]) -> Settings:
    """Raises SettingsError naming the key and where it was set. A missing file is an error only if it was asked for."""
    try:
        content = path.read_bytes() if path is not None else b""
    except OSError as error:
        raise SettingsError(f"cannot read the settings file {path}: {error.strerror}") from error
    return parse(content, path, environ)


def parse(content: bytes, path: Path | None, environ: Mapping[str, str]) -> Settings:
    """``load`` of a file that was read already."""
    try:
        tree: dict[str, Any] = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(f"{path} is not TOML: {error}") from error
    source = {key: variable for variable, key in _override(tree, environ).items()}
    try:
        settings = msgspec.convert(tree, Settings, dec_hook=_decode)
    except msgspec.ValidationError as error:
        raise _explain(error, tree, path, source) from error
    if settings.worker.name == ANY_LANE:
        raise SettingsError(
            "worker.name: a worker cannot be called 'any', which is the lane of everybody; choose another"
        )
    return settings


def _override(tree: dict[str, Any], environ: Mapping[str, str]) -> dict[str, str]:
    """Write each ``HEADRACE_<SECTION>_<KEY>`` into the tree; returns variable -> dotted key."""
    found: dict[str, str] = {}
    for variable in sorted(environ):
        if not variable.startswith(PREFIX):
            continue
        place = _place(Settings, variable.removeprefix(PREFIX).lower())
        if place is None:
            continue  # another program's variable, or one of ours that is no setting
        keys, kind = place
        if kind is None:
            known = ", ".join(f"{variable[: -len(keys[-1])]}{name.upper()}" for name in _hints_at(keys[:-1]))
            raise SettingsError(f"{variable} is not a setting; its section has {known}")
        branch: Any = tree
        for key in keys[:-1]:
            branch = branch.setdefault(key, {}) if isinstance(branch, dict) else None
        if isinstance(branch, dict):  # else the file is wrong there, and is told so
            branch[keys[-1]] = _from_text(variable, environ[variable], kind)
        found[variable] = ".".join(keys)
    return found


def _place(section: type, name: str) -> tuple[list[str], Any] | None:
    """(keys, type) of a variable's name; type None where the section exists and the key does not; None for no section."""
    hints = get_type_hints(section, include_extras=True)
    if name in hints and not _is_section(hints[name]):
        return [name], hints[name]
    for key, kind in hints.items():
        if _is_section(kind) and name.startswith(f"{key}_"):
            inner = _place(kind, name.removeprefix(f"{key}_"))
            keys, found = inner if inner is not None else ([name.removeprefix(f"{key}_")], None)
            return [key, *keys], found
    return None


def _hints_at(keys: list[str]) -> list[str]:
    section: Any = Settings
    for key in keys:
        section = get_type_hints(section)[key]
    return [key for key, kind in get_type_hints(section).items() if not _is_section(kind)]


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Section)


def _from_text(variable: str, text: str, kind: Any) -> Any:
    if getattr(kind, "__origin__", None) is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    if text == "" and type(None) in get_args(kind):
        return None
    try:
        return msgspec.to_builtins(msgspec.convert(text, kind, strict=False, dec_hook=_decode), enc_hook=str)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{variable}={text!r}: {error}") from error


def _decode(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value).expanduser()
    raise ValueError(f"expected a path as text, got {value!r}")


def _explain(
    error: msgspec.ValidationError, tree: dict[str, Any], path: Path | None, source: Mapping[str, str]
) -> SettingsError:
    """msgspec says ``Object contains unknown field `prot` - at `$.router```; say ``router.prot`` and what was meant."""
    message, _, at = str(error).partition(" - at `$")
    keys = [part for part in at.strip("`").replace("[...]", ".*").split(".") if part]
    known = _known(keys)
    shown = ".".join(_culprit(tree, keys))
    if unknown := re.search(r"unknown field `(.*)`", message):
        near = difflib.get_close_matches(unknown[1], known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        return SettingsError(f"{f'{shown}.{unknown[1]}'.strip('.')} is not a setting ({path}); {hint}")
    if keys[:1] == ["keys"] and "matching regex" in message:  # the value may be the key itself: it is not repeated
        message = "is no SHA-256 in 64 hex digits; `headrace key add` makes a key with it, or printf %s KEY | sha256sum"
    elif keys[:1] == ["keys"] and len(keys) == 2:
        message = 'is written { sha256 = "…" }; `headrace key add` makes a key and that line'
    else:
        message = _with_value(message, shown, _value(tree, _culprit(tree, keys)), _kind(keys))
    return SettingsError(f"{shown}: {message[:1].lower()}{message[1:]} ({source.get(shown, path)})")


def _with_value(message: str, shown: str, value: Any, kind: Any) -> str:
    """What may stand there, and what does, but no secret."""
    choices = [
        repr(choice) for part in get_args(kind) for choice in get_args(part) or (part,) if isinstance(choice, str)
    ]
    if message.startswith("Invalid enum value") and choices:
        message = f"expected {' or '.join(choices)}"
    if not isinstance(value, str | int | float) or SECRET.search(shown) or message.endswith(f"got {value!r}"):
        return message
    return f"{message.partition(', got `')[0]}, got {value!r}"


def _value(tree: Any, keys: list[str]) -> Any:
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def _known(keys: list[str]) -> list[str]:
    """The names that may stand under a place; ``*`` is any name of a table."""
    kind = _kind(keys)
    return list(get_type_hints(kind)) if _is_section(kind) else []


def _kind(keys: list[str]) -> Any:
    """The type of a place; None where it is part of a list."""
    kind: Any = Settings
    for key in keys:
        kind = get_args(kind)[-1] if key == "*" else get_type_hints(kind).get(key)
        kind = next((part for part in get_args(kind) if _is_section(part)), kind) if key == "*" else kind
    return kind


def _culprit(tree: dict[str, Any], keys: list[str]) -> list[str]:
    """The keys with each ``*`` replaced by the name whose entry alone is refused as well."""
    if "*" not in keys:
        return keys
    outer = keys[: keys.index("*")]
    table: Any = tree
    for key in outer:
        table = table[key]
    for name, entry in table.items():
        alone: dict[str, Any] = {name: entry}
        for key in reversed(outer):
            alone = {key: alone}
        try:
            msgspec.convert(alone, Settings, dec_hook=_decode)
        except msgspec.ValidationError:
            return [*outer, name, *keys[len(outer) + 1 :]]
    return keys
