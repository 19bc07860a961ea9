"""Virtual models: a name that clients ask for, its targets, and how one of them is picked.

Answers "what does this route say?". Values only; ``routes_file`` reads them, ``settle`` and ``votes`` follow them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from services.router.policy.plugins import PLUGINS

AUTO = "auto"
"""The virtual model that always exists: every model of the fleet, by least completion, unless routes.toml says otherwise."""

_ADDRESS = re.compile(
    r"(https?://)(?:[^/?#\s]*@)?((?:\[[0-9A-Fa-f:.]+\]|[^/?#@:\[\]\s]+)(?::\d{1,5})?)((?:/[^?#\s]*)?)(?:[?#]\S*)?", re.I
)

RouteBy = Literal["policy", "target_weight", "round_robin"]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A model, on any worker or on one (its name or id). ``criterion`` tells a decision service when it is the right one."""

    model: str
    worker: str | None = None
    weight: float = 0.0
    criterion: str | None = None

    @property
    def name(self) -> str:
        return self.model if self.worker is None else f"{self.model} on {self.worker}"


class DecisionService(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asked for a verdict: an HTTP service at ``url``, else the fleet's ``model``, else the fleet's smallest one."""

    url: str | None = None
    model: str | None = None
    instructions: str = "Choose the option that fits the request best: the cheapest one that will do it well."
    timeout_s: float = 3.0

    @property
    def public_url(self) -> str | None:
        """``url`` as the log and pages may show it: without user, password and query, which may hold a key. None without a
        ``url``, and for what is none."""
        found = _ADDRESS.fullmatch(self.url or "")
        return "".join(found.groups()) if found else None


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """``targets`` empty is the whole fleet. ``plugins`` are weights by name, for ``by`` "policy". ``slider`` None is the
    router's. A fallback target is never a candidate while a target can answer."""

    name: str
    by: RouteBy
    targets: tuple[Target, ...] = ()
    fallback: tuple[Target, ...] = ()
    plugins: dict[str, float] = {}
    slider: float | None = None
    decision: DecisionService | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """The targets' models, in their order; what a decision service chooses among."""
        return tuple(dict.fromkeys(target.model for target in self.targets))


class Routes(msgspec.Struct, frozen=True, kw_only=True):
    """All routes of the file, by name."""

    routes: dict[str, Route] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The virtual models, ``auto`` first."""
        return (AUTO, *(name for name in sorted(self.routes) if name != AUTO))

    def get(self, name: str | None) -> Route | None:
        """None where the task names no route, or one that was taken out of the file since: then the whole fleet is open."""
        return self.routes.get(name) if name is not None else None

    def knows(self, name: str) -> bool:
        return name == AUTO or name in self.routes


def route_by(targets: tuple[Target, ...], plugins: Mapping[str, float]) -> RouteBy:
    """The table of cases/lb-policies.md. Raises ValueError naming the targets of a mixture."""
    bare = [target.name for target in targets if not target.weight > 0]
    if targets and not bare:
        return "target_weight"
    if targets and len(bare) < len(targets):
        weighted = ", ".join(target.name for target in targets if target.weight > 0)
        raise ValueError(
            f"some targets have a weight ({weighted}) and some have none ({', '.join(bare)}); give all one, or none"
        )
    return "policy" if plugins else "round_robin"


def default_weights(names: tuple[str, ...]) -> dict[str, float]:
    return {name: PLUGINS[name].weight for name in names}
