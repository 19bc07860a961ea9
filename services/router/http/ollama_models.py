"""What does the fleet hold, in Ollama's words? Rows for ``/api/tags``, ``/api/ps`` and ``/api/show``. Pure.

A model is one row, wherever it is; a virtual model is a row that says so. What nobody knows is left out, or is what Ollama's own
command line shows as unknown (more in the GPU than there is), as never (the year 1) or as for ever (the year 2318).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from schemas.events import Loaded, ModelInfo
from schemas.families import family_of
from services.router.fleet import Fleet, WorkerView
from services.router.nearest import resolve_model
from services.router.policy.routes import Routes

API_VERSION = "0.24.0"
"""The Ollama whose HTTP interface this is; clients compare versions."""
NEVER = "0001-01-01T00:00:00Z"
FOREVER = "2318-01-01T00:00:00Z"
"""Where the machine does not say until when: a time left out would read as ``Stopping...``."""
UNKNOWN_BYTES = 0
"""Typed clients want a number (Zed's, Rust's); the command line shows it as ``0 B``, as it does for none."""
UNKNOWN_VRAM = 1
"""More than the 0 beside it, so the command line says ``Unknown``; 0 would be ``100% CPU``, and of a number below it the official
Python client reads no row at all."""
COLUMN = 30
"""Ollama writes a parameter's value behind so many characters."""
VIRTUAL = "headrace"
EMBEDDING = "embedding"
_GGUF = frozenset({"ollama", "llama.cpp"})


def tags(fleet: Fleet, routes: Routes) -> list[dict[str, Any]]:
    """Virtual models first."""
    virtual = [_virtual_tag(name, fleet, routes) for name in routes.names]
    return virtual + [_tag(name, fleet.holders(name)) for name in fleet.models()]


def running(fleet: Fleet) -> list[dict[str, Any]]:
    """A row for each (model, machine) in memory."""
    return [
        _running(worker, name)
        for worker in sorted(fleet.workers.values(), key=lambda w: (w.name, w.id))
        if worker.alive
        for name in sorted(worker.resident or ())
        if name in worker.models
    ]


def _running(worker: WorkerView, name: str) -> dict[str, Any]:
    """What a model takes in memory is no file's size: it is told by the machine, or left out."""
    info, told = worker.models[name], worker.loaded.get(name, Loaded(model=name))
    known = told.bytes is not None and told.vram_bytes is not None
    return {
        "name": name, "model": name, "digest": digest_of(name, info), "details": details(info, worker.backend),
        **({"size": told.bytes, "size_vram": told.vram_bytes} if known else {"size": UNKNOWN_BYTES, "size_vram": UNKNOWN_VRAM}),
        "expires_at": FOREVER if told.expires_at is None else _rfc3339(told.expires_at),
        "context_length": info.context or 0, "worker": worker.name,
    }  # fmt: skip


def show(name: str, fleet: Fleet, routes: Routes) -> dict[str, Any] | None:
    """None where nobody is called so."""
    if name in routes.names:
        return _show_virtual(name, fleet, routes)
    model = resolve_model(fleet, name)
    if model is None:
        return None
    holders = fleet.holders(model)
    info, where = _told(model, holders), ", ".join(worker.name for worker in holders)
    family = info.family or family_of(info.name)
    return {
        "modelfile": f"# {model}, held by {where}; its Modelfile is with them\n",
        "details": details(info, holders[0].backend),
        "model_info": _model_info(family, info.context),
        "capabilities": capabilities([info]),
        "modified_at": NEVER,
        **({"parameters": said} if (said := _in_force(info)) else {}),
    }


def _in_force(info: ModelInfo) -> str:
    """Its machine's defaults of a request, as far as they hold for one that comes through here: the window is the one that it
    gets, and how long an answer may become is said by the request or by ``[worker] max_tokens``."""
    lines = []
    for line in (info.parameters or "").splitlines():
        name, *_ = line.split(maxsplit=1)
        if name == "num_ctx" and info.context is not None:
            line = f"{name:<{COLUMN}} {info.context}"
        if name != "num_predict":
            lines.append(line)
    return "\n".join(lines)


def details(info: ModelInfo, backend: str) -> dict[str, Any]:
    """``family`` is what the name tells where its machine does not say it; a number of parameters is never guessed."""
    family = info.family or family_of(info.name)
    return {
        "parent_model": "",
        "format": "gguf" if backend in _GGUF else "",
        "family": family,
        "families": info.families or [family],
        "parameter_size": info.parameter_size or "",
        "quantization_level": info.quantisation or "",
    }


def capabilities(infos: Iterable[ModelInfo]) -> list[str]:
    """All that any of them declares; where none says anything, what it is called for."""
    found = {word for info in infos for word in (info.capabilities or (_usual(info),))}
    return sorted(found, key=lambda word: (word != "completion", word))


def digest_of(name: str, info: ModelInfo | None = None) -> str:
    """Sixty-four digits in any case, since clients cut them: where no file's digest is known, the name's own."""
    if info is not None and info.digest is not None:
        plain = info.digest.removeprefix("sha256:")
        if len(plain) >= 12:
            return plain
    return hashlib.sha256(f"{VIRTUAL} {name}".encode()).hexdigest()


def _tag(name: str, holders: tuple[WorkerView, ...]) -> dict[str, Any]:
    info = _told(name, holders)
    return _named(name, info) | {
        "modified_at": NEVER,
        "details": details(info, holders[0].backend),
        "capabilities": capabilities([info]),
    }


def _named(name: str, info: ModelInfo) -> dict[str, Any]:
    size = info.bytes if info.bytes is not None else UNKNOWN_BYTES
    return {"name": name, "model": name, "size": size, "digest": digest_of(name, info)}


def _virtual_tag(name: str, fleet: Fleet, routes: Routes) -> dict[str, Any]:
    return {
        "name": name, "model": name, "modified_at": NEVER, "size": 0, "digest": digest_of(name),
        "details": _virtual_details(), "capabilities": capabilities(_chats(name, fleet, routes)),
    }  # fmt: skip


def _virtual_details() -> dict[str, Any]:
    return {
        "parent_model": "", "format": "", "family": VIRTUAL, "families": [VIRTUAL], "parameter_size": "",
        "quantization_level": "",
    }  # fmt: skip


def _show_virtual(name: str, fleet: Fleet, routes: Routes) -> dict[str, Any]:
    infos = _chats(name, fleet, routes)
    models = ", ".join(dict.fromkeys(info.name for info in infos)) or "none yet"
    context = max((info.context for info in infos if info.context is not None), default=None)
    return {
        "modelfile": f"# {name} is no model but a route: one of these answers: {models}\n",
        "details": _virtual_details(),
        "model_info": _model_info(VIRTUAL, context),
        "capabilities": capabilities(infos),
        "modified_at": NEVER,
    }


def _chats(name: str, fleet: Fleet, routes: Routes) -> list[ModelInfo]:
    """What a route may go to, without what only embeds: a client would take the route for an embedding model."""
    route = routes.get(name)
    targets = [target.model for target in (*route.targets, *route.fallback)] if route is not None else []
    named = [model for target in targets if (model := resolve_model(fleet, target)) is not None]
    found = [
        worker.models[model] for model in (named if targets else fleet.models()) for worker in fleet.holders(model)
    ]
    return [info for info in found if info.capability != EMBEDDING and EMBEDDING not in info.capabilities]


def _told(name: str, holders: tuple[WorkerView, ...]) -> ModelInfo:
    """Of several holders the one with the largest window."""
    return max((worker.models[name] for worker in holders), key=lambda info: info.context or 0)


def _model_info(family: str, context: int | None) -> dict[str, Any]:
    """The window is the one that a request gets, which may be smaller than what the model was trained for."""
    return {"general.architecture": family, **({f"{family}.context_length": context} if context is not None else {})}


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _usual(info: ModelInfo) -> str:
    return EMBEDDING if info.capability == EMBEDDING else "completion"
