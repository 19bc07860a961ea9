"""The sections of the settings file and what may stand in each, with defaults.

Answers "what can be set, and within which bounds?". ``settings`` reads them; it alone knows files and the environment.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import platformdirs

Seconds = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=0)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]
Slider = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
OrderK = Annotated[float, msgspec.Meta(ge=0, le=3.3)]
Port = Annotated[int, msgspec.Meta(ge=-1, le=65_535)]
Mac = Annotated[str, msgspec.Meta(pattern="^([0-9A-Fa-f]{2}[:-]?){5}[0-9A-Fa-f]{2}$")]

ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://[^/*\sA-Z]+")
"""As browsers write it: a scheme and a host in small letters, no path and no slash at the end; "*" is every one."""
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9A-Fa-f]{64}$")]


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
    slider: Slider = 1.0
    sliders: dict[str, Slider] = {}
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
    """``supports`` empty means ("cpu_inference",). ``local`` false takes no shared permit: the backend is somebody else's.
    ``context`` is the window that every request to an Ollama carries, up to what its model was made for; unset, Ollama's own.
    ``max_tokens`` ends an answer whose client named no limit, so that a model that never ends holds no machine for ever."""

    name: str | None = None
    backend: str | None = None
    slots: AtLeastOne = 1
    supports: tuple[str, ...] = ()
    local: bool = True
    context: AtLeastOne | None = None
    max_tokens: AtLeastOne = 16_384
    heartbeat_s: Seconds = 5.0
    drain_s: Seconds = 30.0
    timeouts: Timeouts = Timeouts()


class Projector(Section, frozen=True, kw_only=True):
    """``batch_ms``: how long a batch waits for more events before it is written; ``heartbeats_s``: the same for heartbeats,
    whose minutes become fewer rows the longer it is."""

    snapshot_s: Seconds = 5.0
    batch_ms: Count = 200
    heartbeats_s: Seconds = 30.0


class Benchmarker(Section, frozen=True, kw_only=True):
    """``on`` false does nothing unasked. ``probe_tokens`` is a probe's length, ``budget`` the share of a machine's awake time
    that unasked work may take, ``idle_s`` how long nobody may have used it before, ``stale_days`` when a measurement is too old.
    ``shadow``: let models answer side by side to judge them, on prompts of our own, on the users' too with ``own_prompts``."""

    on: bool = True
    probe_tokens: Annotated[int, msgspec.Meta(ge=8, le=1024)] = 64
    budget: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.02
    idle_s: Seconds = 5.0
    stale_days: Annotated[float, msgspec.Meta(gt=0)] = 7.0
    shadow: bool = True
    own_prompts: bool = False


class ModelName(Section, frozen=True, kw_only=True):
    """The canonical name of a backend's model, the capability a task for it needs, and the one window it has in an Ollama."""

    name: str | None = None
    capability: str = "cpu_inference"
    context: AtLeastOne | None = None


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


class Key(Section, frozen=True, kw_only=True):
    """A caller's key, by its SHA-256 in hex. ``may_speak_for_users``: its requests may name the client that they are for."""

    sha256: Sha256
    may_speak_for_users: bool = False
    admin: bool = False


class Http(Section, frozen=True, kw_only=True):
    """Further names of headers, beside the router's own and Open WebUI's: the first that a request has counts. ``hosts``: names
    of this router beside its addresses, names without a dot and those of private endings (``.lan``). ``origins``: other sites
    whose pages may ask here, as browsers name them; "*" is every site, for requests with a key. ``user_jwt_secret``: by
    which Open WebUI signs whom it asks for (its FORWARD_USER_INFO_HEADER_JWT_SECRET)."""

    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    user_jwt_secret: str | None = None
    session_headers: tuple[str, ...] = ("x-claude-code-session-id", "session_id", "conversation_id")
    client_headers: tuple[str, ...] = ()
    message_headers: tuple[str, ...] = ()
    task_headers: tuple[str, ...] = ("x-openwebui-task",)

    def __post_init__(self) -> None:
        if wrong := next((origin for origin in self.origins if not ORIGIN.fullmatch(origin)), None):
            raise ValueError(
                f'origins has {wrong!r}; an origin is "https://chat.example.org", with a port where it has one'
            )


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
    benchmarker: Benchmarker = Benchmarker()
    models: dict[str, str | ModelName] = {}
    domains: dict[str, DomainRules] = {}
    limits: Limits = Limits()
    wake: dict[str, Wake] = {}
    privacy: Privacy = Privacy()
    keys: dict[str, Key] = {}
    http: Http = Http()

    def model_names(self) -> dict[str, ModelName]:
        """``[models]`` with each short form written out."""
        return {
            backend_name: ModelName(name=entry) if isinstance(entry, str) else entry
            for backend_name, entry in self.models.items()
        }
