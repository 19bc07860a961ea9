"""What the router says no to, for a surface to put into its own form: each with what the client may do about it."""

from __future__ import annotations

from schemas.errors import HeadraceError


class Busy(HeadraceError):
    """A full queue or a fleet that cannot take the task now: 429 or 503 with ``retry_after_s`` and the numbers it was made of."""

    def __init__(
        self, message: str, *, retry_after_s: float, status: int = 429, numbers: dict[str, float] | None = None
    ) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.status = status
        self.numbers = numbers or {}


class TooLarge(HeadraceError, ValueError):
    """A request above a limit: 413. Sending it again does not help."""


class Unsupported(HeadraceError, ValueError):
    """Nobody who was asked for can do it (tools, images, embeddings, a context): 400. ``able`` are the models that can."""

    def __init__(self, message: str, *, field: str | None = None, able: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.field = field
        self.able = able


class UnknownWorker(HeadraceError, LookupError):
    """Nobody in the fleet is called so; ``nearest`` are the closest names there are."""

    def __init__(self, worker: str, nearest: tuple[str, ...] = ()) -> None:
        hint = f"nearest: {', '.join(nearest)}" if nearest else "the fleet has no worker yet"
        super().__init__(f"no worker is called {worker[:64]!r}; {hint}")
        self.nearest = nearest


class UnknownDomain(HeadraceError, LookupError):
    """Nothing was measured of such a domain, and none is built in; ``nearest`` are the closest names there are."""

    def __init__(self, domain: str, nearest: tuple[str, ...] = ()) -> None:
        super().__init__(f"nothing was measured of a domain {domain[:64]!r}; nearest: {', '.join(nearest)}")
        self.nearest = nearest
