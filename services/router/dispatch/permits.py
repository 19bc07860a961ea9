"""How many at once: model, client and backend, all or nothing.

Answers "may this release take its permits?". Counts come from the log (``RouterState.held``) plus what this plan has taken; a
waiting task holds none, so there is no hold-and-wait and no deadlock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from services.router.dispatch.state import RouterState
from services.router.nearest import is_called


@dataclass(frozen=True)
class Limit:
    """One kind's limits: a default for every name, exceptions by name, and a total over all names. None is unlimited."""

    default: int | None = None
    names: dict[str, int] = field(default_factory=dict)
    total: int | None = None

    def of(self, name: str) -> int | None:
        return self.names.get(name, self.default)


UNBOUND = Limit()


@dataclass(frozen=True)
class Limits:
    model: Limit = Limit()
    client: Limit = Limit()
    backend: Limit = Limit()

    def kind(self, permit: str) -> Limit:
        limit: Limit = getattr(self, permit.split(":", 1)[0])
        return limit


UNLIMITED = Limits()


def named(limits: Limits, state: RouterState) -> Limits:
    """``limits`` by the names that permits carry. People name a backend by the machine beside it, as they read it or by its id,
    and a model by any of its names; where several of them mean one, the least number counts."""
    if not limits.model.names and not limits.backend.names:
        return limits
    reports = {worker: record.report for worker, record in state.workers.items() if not record.left}
    infos = {info.name: info for report in reports.values() for info in report.models}

    def models(name: str) -> set[str]:
        return {name} if name in infos else {model for model, info in infos.items() if is_called(info, name)}

    def backends(name: str) -> set[str]:
        wanted = name.casefold()
        beside = [w for w, report in reports.items() if wanted in (w.casefold(), report.name.casefold())]
        return {state.backend_permit(worker).removeprefix("backend:") for worker in beside}

    return replace(limits, model=_meant(limits.model, models), backend=_meant(limits.backend, backends))


def backend_names(state: RouterState) -> dict[str, str]:
    """What people call each backend: the machines beside it, by the id that its permits carry. No two are called the same."""
    beside: dict[str, list[str]] = {}
    for worker, record in state.workers.items():
        if not record.left:
            beside.setdefault(state.backend_permit(worker).removeprefix("backend:"), []).append(record.report.name)
    called = {backend: " and ".join(sorted(names)) for backend, names in beside.items()}
    often = Counter(called.values())
    return {backend: name if often[name] == 1 else f"{name} ({backend})" for backend, name in called.items()}


def counts_of(limits: Limits, state: RouterState) -> Counts:
    """What the log says is held, under ``limits`` as people write them."""
    return Counts(named(limits, state), state.held, backend_names(state) if limits.backend != UNBOUND else {})


def _meant(limit: Limit, meant: Callable[[str], set[str]]) -> Limit:
    """A name that means nobody yet stays as it is."""
    if not limit.names:
        return limit
    names: dict[str, int] = {}
    for name, most in limit.names.items():
        for each in meant(name) or {name}:
            names[each] = min(most, names.get(each, most))
    return replace(limit, names=names)


@dataclass
class Counts:
    """Permits held now, plus those taken in this plan. ``shown`` are the names that people read, where a permit has another."""

    limits: Limits
    held: dict[str, int]
    shown: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.held = dict(self.held)

    def lacking(self, permits: tuple[str, ...]) -> str | None:
        """The first permit that cannot be had, None when all can."""
        wanted: dict[str, int] = {}
        for permit in permits:
            kind, name = permit.split(":", 1)
            limit = self.limits.kind(permit)
            cap = limit.of(name)
            if cap is not None and self.held.get(permit, 0) >= cap:
                return permit
            if limit.total is not None:
                held = sum(n for p, n in self.held.items() if p.startswith(f"{kind}:"))
                if held + wanted.get(kind, 0) >= limit.total:
                    return permit
            wanted[kind] = wanted.get(kind, 0) + 1
        return None

    def full(self, permit: str) -> str | None:
        """Why ``permit`` cannot be had, ``code: words``; None when it can."""
        kind, name = permit.split(":", 1)
        if self.limits.kind(permit) == UNBOUND or self.lacking((permit,)) is None:
            return None
        cap, held = self.limits.kind(permit).of(name), self.held.get(permit, 0)
        if cap is not None and held >= cap:
            return f"{kind}_full: {self.shown.get(name, name)} has {held} running, which is its limit"
        total = self.limits.kind(permit).total
        return f"{kind}_full: all together have {total} running, which is the limit of all"

    def take(self, permits: tuple[str, ...]) -> None:
        for permit in permits:
            self.held[permit] = self.held.get(permit, 0) + 1
