"""What a person may set, from TOML and from ``HEADRACE_<SECTION>_<KEY>``.

Answers "how should it behave here?". The environment stands over the file, the file over the defaults below. A key that does not
exist or cannot be so is refused by name, never ignored: a misspelt limit would be no limit. Lists in the environment are
separated by commas; the tables ``[models]``, ``[domains]`` and ``[wake]`` come from the file only.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

import msgspec
import platformdirs

from schemas.errors import SettingsError
from schemas.subjects import ANY_LANE

Seconds = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=0)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]
OrderK = Annotated[float, msgspec.Meta(ge=0, le=3.3)]
Port = Annotated[int, msgspec.Meta(ge=-1, le=65_535)]
Mac = Annotated[str, msgspec.Meta(pattern="^([0-9A-Fa-f]{2}[:-]?){5}[0-9A-Fa-f]{2}$")]

PREFIX = "HEADRACE_"


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class Nats(Section, frozen=True, kw_only=True):
    """``sync`` "always" survives a power cut; "10s" is faster. Unset, a server that Headrace starts syncs always, and of one
    that it did not start nothing is known. ``port`` is the embedded server's; -1 is any free one."""

    url: str = "nats://127.0.0.1:4222"
    user: str | None = None
    password: str | None = None
    sync: Literal["always", "10s"] | None = None
    port: Port = 4222


class Router(Section, frozen=True, kw_only=True):
    """``slider``: the seconds one would wait for one more point of quality, ``sliders`` the same by client; a request's own and
    its route's go before. ``order_k``: the seconds of queueing that one second of expected service counts as. ``grace_s``: how
    long a task outlives its last reader. ``id``: who this router is in the log; by default made once and kept in the data
    directory. ``routes``: the file of virtual models; by default routes.toml beside the settings file, without one in the data
    directory."""

    host: str = "127.0.0.1"
    port: Port = 8420
    slider: float = 1.0
    sliders: dict[str, float] = {}
    order_k: OrderK = 1.0
    grace_s: Seconds = 10.0
    id: str | None = None
    routes: Path | None = None


class Timeouts(Section, frozen=True, kw_only=True):
    """Limits of one attempt against its backend. Loading a model counts as waiting for the first byte; thinking is no stall."""

    connect_s: Seconds = 5.0
    first_byte_s: Seconds = 300.0
    stall_s: Seconds = 60.0
    total_s: Seconds = 3600.0


class Worker(Section, frozen=True, kw_only=True):
    """``supports`` empty means ("cpu_inference",). ``local`` false takes no shared permit: the backend is somebody else's."""

    name: str | None = None
    backend: str | None = None
    slots: AtLeastOne = 1
    supports: tuple[str, ...] = ()
    local: bool = True
    heartbeat_s: Seconds = 5.0
    drain_s: Seconds = 30.0
    timeouts: Timeouts = Timeouts()


class Projector(Section, frozen=True, kw_only=True):
    """``batch_ms``: how long a batch waits for more events before it is written; ``heartbeats_s``: the same for heartbeats,
    whose minutes become fewer rows the longer it is."""

    snapshot_s: Seconds = 5.0
    batch_ms: Count = 200
    heartbeats_s: Seconds = 30.0


class ModelName(Section, frozen=True, kw_only=True):
    """The canonical name of a backend's model, and the capability a task for it needs."""

    name: str
    capability: str = "cpu_inference"


class DomainRules(Section, frozen=True, kw_only=True):
    """What speaks for a domain: words of either language, and regular expressions."""

    words_en: tuple[str, ...] = ()
    words_ja: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


class Limit(Section, frozen=True, kw_only=True):
    """How many attempts may run at once: of a name its own number, else the default; of all names a total. None is no limit."""

    default: AtLeastOne | None = None
    total: AtLeastOne | None = None
    names: dict[str, AtLeastOne] = {}

    def of(self, name: str) -> int | None:
        return self.names.get(name, self.default)


class Limits(Section, frozen=True, kw_only=True):
    """``no_worker_wait_s``: how long an interactive task waits where nobody who could take it is there;
    ``no_worker_wait_wake_s``: the same after a machine was told to wake."""

    model: Limit = Limit()
    client: Limit = Limit()
    backend: Limit = Limit()
    queue_total: AtLeastOne = 1000
    queue_client: AtLeastOne = 200
    no_worker_wait_s: Seconds = 30.0
    no_worker_wait_wake_s: Seconds = 180.0


class Wake(Section, frozen=True, kw_only=True):
    """How a sleeping machine is woken: a shell command, or a Wake-on-LAN packet to ``mac``."""

    command: str | None = None
    mac: Mac | None = None
    broadcast: str = "255.255.255.255"
    port: Annotated[int, msgspec.Meta(ge=1, le=65_535)] = 9

    def __post_init__(self) -> None:
        if self.command is None and self.mac is None:
            raise ValueError("says neither a command nor a mac; one of them wakes the machine")


class Privacy(Section, frozen=True, kw_only=True):
    """``keep_s``: how long prompts and answers are kept. Below 2 h, a prompt goes when its task has ended, and its answer after
    ``keep_s``, at least 60 s; so 0 is until answered."""

    keep_s: Seconds = 7 * 86_400.0


class Settings(Section, frozen=True, kw_only=True):
    data_dir: Path = Path(platformdirs.user_data_dir("headrace"))
    nats: Nats = Nats()
    router: Router = Router()
    worker: Worker = Worker()
    projector: Projector = Projector()
    models: dict[str, str | ModelName] = {}
    domains: dict[str, DomainRules] = {}
    limits: Limits = Limits()
    wake: dict[str, Wake] = {}
    privacy: Privacy = Privacy()

    def model_names(self) -> dict[str, ModelName]:
        """``[models]`` with each short form written out."""
        return {
            backend_name: ModelName(name=entry) if isinstance(entry, str) else entry
            for backend_name, entry in self.models.items()
        }


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
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
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
    return SettingsError(f"{shown}: {message[:1].lower()}{message[1:]} ({source.get(shown, path)})")


def _known(keys: list[str]) -> list[str]:
    """The names that may stand under a place; ``*`` is any name of a table."""
    kind: Any = Settings
    for key in keys:
        kind = get_args(kind)[-1] if key == "*" else get_type_hints(kind).get(key)
        kind = next((part for part in get_args(kind) if _is_section(part)), kind) if key == "*" else kind
    return list(get_type_hints(kind)) if _is_section(kind) else []


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
