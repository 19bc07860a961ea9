"""Canonical names: what does the fleet call the models that this backend holds?

The table of settings stands first: the user's word joins names even where digests differ. Else a model keeps its backend's
name, a file's path becomes the file's name, an equal digest elsewhere in the fleet gives its name, and a name that the fleet
already uses for another digest gets its digest appended: kept apart, and shown. Pure; who was first is the caller's knowledge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PureWindowsPath
from typing import Any

import msgspec

from schemas.events import ModelInfo
from services.worker.backends.port import BackendModel

DIGEST_CHARS = 8
EMBEDDING = "embedding"
DEFAULT_CAPABILITY = "cpu_inference"
"""Of a line of the table it says nothing: an embedding model stays one."""
_KEYS = ("name", "capability", "context")


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What the rest of the fleet reported before us: the first name of each digest, the first digest of each name."""

    name_of: Mapping[str, str] = {}
    digest_of: Mapping[str, str] = {}

    @classmethod
    def from_claims(cls, claims: Iterable[tuple[str, str | None]]) -> Known:
        """``claims`` are (name, digest) as reported, in the order of the log: who was first keeps the name."""
        name_of: dict[str, str] = {}
        digest_of: dict[str, str] = {}
        for name, digest in claims:
            if digest is not None:
                name_of.setdefault(digest, name)
                digest_of.setdefault(name, digest)
        return cls(name_of=name_of, digest_of=digest_of)


def canonical(
    models: Sequence[BackendModel],
    table: Mapping[str, Any],
    known: Known = Known(),  # noqa: B008
) -> tuple[ModelInfo, ...]:
    """One ModelInfo per model, canonical names unique: of two that the table gives one name, the first listed keeps it and
    the other one becomes its alias only by name, not served twice."""
    result: dict[str, ModelInfo] = {}
    for model in models:
        info = _info(model, table, known)
        if info.name not in result:
            result[info.name] = info
    return tuple(result.values())


def find(models: Sequence[ModelInfo], wanted: str) -> ModelInfo | None:
    """The model that ``wanted`` means here: by canonical name, else by the backend's name or an alias."""
    for model in models:
        if model.name == wanted:
            return model
    for model in models:
        if wanted == model.backend_name or wanted in model.aliases:
            return model
    return None


def context_of(model: BackendModel, table: Mapping[str, Any]) -> int | None:
    """The window that the model's line sets."""
    return _row_of(model, table)[2]


def _info(model: BackendModel, table: Mapping[str, Any], known: Known) -> ModelInfo:
    name, capability, _ = _row_of(model, table)
    if name is None:
        name = _apart(known.name_of.get(model.digest or "", _short(model.name)), model.digest, known)
    is_embedder = EMBEDDING in model.capabilities and "completion" not in model.capabilities
    return ModelInfo(
        name=name,
        backend_name=model.name,
        digest=model.digest,
        bytes=model.bytes,
        quantisation=model.quantisation,
        context=model.context,
        capabilities=model.capabilities,
        lacks=model.lacks,
        capability=capability or (EMBEDDING if is_embedder else DEFAULT_CAPABILITY),
        aliases=tuple(alias for alias in model.aliases if alias != name),
        resident=model.resident,
        family=model.family,
        families=model.families,
        parameter_size=model.parameter_size,
        parameters=model.parameters,
    )


def _apart(name: str, digest: str | None, known: Known) -> str:
    """The name with its digest, where the fleet knows the name with another digest; without a digest nothing can be told."""
    other = known.digest_of.get(name)
    if digest is None or other is None or other == digest:
        return name
    return f"{name}@{digest.removeprefix('sha256:')[:DIGEST_CHARS]}"


def _short(name: str) -> str:
    """A GGUF file's path without its folders, which would show a user's home; any other name as it is."""
    if not name.lower().endswith(".gguf"):
        return name
    return PureWindowsPath(name).name[: -len(".gguf")]


def _row_of(model: BackendModel, table: Mapping[str, Any]) -> tuple[str | None, str | None, int | None]:
    """The model's line of ``[models]``, a name or a table (or struct): its name, capability and context."""
    row = next((table[name] for name in (model.name, *model.aliases, _short(model.name)) if name in table), None)
    if row is None or isinstance(row, str):
        return row, None, None
    name, given, context = (row.get(key) if isinstance(row, Mapping) else getattr(row, key, None) for key in _KEYS)
    return name, None if given == DEFAULT_CAPABILITY else given, context
