"""How many at once: model, client and backend, all or nothing.

Answers "may this release take its permits?". Counts come from the log (``RouterState.held``) plus what this plan has taken; a
waiting task holds none, so there is no hold-and-wait and no deadlock.
"""

from __future__ import annotations

from dataclasses import dataclass, field


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


@dataclass
class Counts:
    """Permits held now, plus those taken in this plan."""

    limits: Limits
    held: dict[str, int]

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
            return f"{kind}_full: {name} has {held} running, which is its limit"
        total = self.limits.kind(permit).total
        return f"{kind}_full: all together have {total} running, which is the limit of all"

    def take(self, permits: tuple[str, ...]) -> None:
        for permit in permits:
            self.held[permit] = self.held.get(permit, 0) + 1
