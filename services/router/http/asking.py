"""What of a request do both surfaces understand alike? Constraints, sampling options and the worker's name."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from schemas.events import Urgency
from services.router.fleet import Fleet
from services.router.http.reading import BadRequest
from services.router.nearest import nearest, resolve_worker
from services.router.policy.routes import AUTO

Count = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Limit = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1, extra_json_schema={"not": {"const": 0}})]
"""How many tokens an answer may have. Below 0 is no limit, as in llama.cpp and Ollama; Open WebUI's slider begins at -2."""
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400.0 * 7)]
Slider = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
Temperature = Annotated[float, msgspec.Meta(ge=0, le=100)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seed = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Constraints(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the client insists on. Misspelled names are refused: they would silently route elsewhere."""

    worker: Name | None = None
    capability: Name | None = None
    context: Count | None = None
    max_tokens: Limit | None = None
    deadline_s: Seconds | None = None
    domain: Name | None = None
    urgency: Urgency = "interactive"
    slider: Slider | None = None


class RoutedConstraints(Constraints, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same inside an OpenAI request, which has no place of its own for a route."""

    route: Name | None = None


class Sampling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    temperature: Temperature | None = None
    top_p: Share | None = None
    seed: Seed | None = None


def wanted_model(model: str | None) -> str | None:
    """None leaves the choice open."""
    return None if model is None or model == AUTO else model


def worker_id(fleet: Fleet, wanted: str | None, field: str) -> str | None:
    """The id for an id or a name. Raises BadRequest, with the nearest names, where nobody or several are called so."""
    found = None if wanted is None else resolve_worker(fleet, wanted)
    if wanted is None or found is not None:
        return found
    named = [worker.id for worker in fleet.workers.values() if worker.name.casefold() == wanted.casefold()]
    if named:
        raise BadRequest(
            f"{field}: {len(named)} workers are called {wanted!r}; use an id: {', '.join(sorted(named))}", field
        )
    close = nearest(wanted, (worker.name for worker in fleet.workers.values()))
    hint = f"nearest: {', '.join(close)}" if close else "the fleet has no worker yet"
    raise BadRequest(f"{field}: no worker is called {wanted[:64]!r}; {hint}", field, close)


def limit_of(tokens: int | None, field: str) -> int | None:
    """None is the machine's own limit alone. Raises BadRequest for 0: an answer without a token is nobody's wish."""
    if tokens == 0:
        raise BadRequest(f"{field} is 0; leave it out, or send -1, where there is no limit", field)
    return tokens if tokens is not None and tokens > 0 else None


def given(values: dict[str, Any], taken: frozenset[str]) -> dict[str, Any]:
    """What is left for the backend. Null is what was not set: many clients send it, and not every server takes it."""
    return {key: value for key, value in values.items() if key not in taken and value is not None}
