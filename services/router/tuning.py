"""What may change while the router runs: limits, places in the queue, waits for absent machines, the slider, the keys, and what
HTTP knows of other sites and headers.

Answers "which of the settings are in force now?". Everything else waits for a restart, and the log says so. It decides nothing
about tasks: a lowered limit ends nothing, it only lets nothing new begin until enough has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from schemas.errors import SettingsError
from services.router.dispatch.permits import Limit, Limits
from services.router.dispatch.turn import Absence
from services.router.fullness import Places
from services.runtime import settings as files
from services.runtime.logs import logger
from services.runtime.settings import Http, Key, Settings
from services.runtime.watch import Watched

log = logger("router")


LIVE = (("router", "slider"), ("router", "sliders"), ("router", "order_k"))
"""Beside all of ``[limits]``, ``[keys]`` and ``[http]``."""


@dataclass(frozen=True)
class Tuning:
    """``slider``: seconds for one more point of quality, ``sliders`` by client; ``order_k``: ROUTING.md's k."""

    limits: Limits
    places: Places
    absence: Absence
    slider: float
    sliders: Mapping[str, float]
    order_k: float
    keys: Mapping[str, Key]
    http: Http


def tuning_of(settings: Settings) -> Tuning:
    limits = settings.limits
    return Tuning(
        limits=Limits(model=_limit(limits.model), client=_limit(limits.client), backend=_limit(limits.backend)),
        places=Places(total=limits.queue_total, client=limits.queue_client),
        absence=Absence(limits.no_worker_wait_s, limits.no_worker_wait_wake_s, frozenset(settings.wake)),
        slider=settings.router.slider,
        sliders=dict(settings.router.sliders),
        order_k=settings.router.order_k,
        keys=dict(settings.keys),
        http=settings.http,
    )


def watch_tuning(path: Path, settings: Settings, environ: Mapping[str, str]) -> Watched[Tuning]:
    """``settings`` are those that the router started with."""

    def read(content: bytes | None) -> Tuning:
        if content is None:
            raise SettingsError(f"the settings file {path} is gone; what it said last stays in force until it is back")
        now = files.parse(content, path, environ)
        if waiting := needing_restart(settings, now):
            log.warning("these settings wait for a restart", action="settings_wait", keys=waiting)
        return tuning_of(msgspec.structs.replace(now, wake=settings.wake))

    return Watched(path, read)


def needing_restart(before: Settings, now: Settings) -> list[str]:
    """The keys that differ and are not of this module, as the file spells them."""
    found = []
    for section, was in msgspec.structs.asdict(before).items():
        became = getattr(now, section)
        if section in ("limits", "keys", "http", "worker", "projector") or became == was:
            continue
        if not isinstance(was, msgspec.Struct):
            found.append(section)
            continue
        keys = (key for key, value in msgspec.structs.asdict(was).items() if value != getattr(became, key))
        found += [f"{section}.{key}" for key in keys if (section, key) not in LIVE]
    return found


def _limit(limit: files.Limit) -> Limit:
    return Limit(limit.default, dict(limit.names), limit.total)
