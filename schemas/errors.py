"""Everything Headrace raises on purpose. Each message says what happened, the offending value and the way out.

HeadraceError
├── InvalidToken      a name or subject that cannot be encoded or decoded
├── InvalidEvent      bytes that are not an event
├── UnknownModel      nobody in the fleet holds the model
├── UnknownRoute      routes.toml has no such virtual model
├── UnknownTarget     a route none of whose targets anybody in the fleet is meant by
├── UnknownRun        a run of the suites that no benchmarker knows (any more)
├── CannotRun         a demand for a run that cannot be met, and the field in the way
├── SettingsError     a setting that is missing or wrong, named by its key
├── ServerError       the nats-server could not start or stay up
├── BusError          a publish or request that got no answer, or a refusal
├── StoreError        the projection's file cannot be opened or healed
└── BackendError      a backend's failure, classified (failure, retryable)
    └── NoSuchModel   a model that the place where it was looked for does not have
"""

from __future__ import annotations


class HeadraceError(Exception):
    """Base of all errors that Headrace raises on purpose."""


class InvalidToken(HeadraceError, ValueError):
    """A name or subject that cannot be encoded or decoded."""


class InvalidEvent(HeadraceError, ValueError):
    """Bytes that are not an event."""


class UnknownModel(HeadraceError, LookupError):
    """Nobody in the fleet holds the model; ``nearest`` are the closest names there are. ``open_to_auto``: who asks may leave the
    choice to the router."""

    def __init__(self, model: str, nearest: tuple[str, ...] = (), *, open_to_auto: bool = False) -> None:
        hint = f"; nearest: {', '.join(nearest)}" if nearest else "; the fleet holds no model yet"
        hint += '; "auto" leaves the choice to the router' if open_to_auto and nearest else ""
        super().__init__(f"no worker holds the model {model!r}{hint}")
        self.model = model
        self.nearest = nearest


class UnknownRoute(HeadraceError, LookupError):
    """``routes.toml`` has no such virtual model; ``nearest`` are the closest names there are."""

    def __init__(self, route: str, nearest: tuple[str, ...] = ()) -> None:
        super().__init__(f"no route is called {route!r}; nearest: {', '.join(nearest)}; GET /routes lists them")
        self.route = route
        self.nearest = nearest


class UnknownTarget(HeadraceError, LookupError):
    """Nobody in the fleet is meant by any target of the route; ``why`` names each, with the nearest names."""

    def __init__(self, route: str, why: str) -> None:
        super().__init__(
            f"route {route!r} leads nowhere: {why}; mend it in routes.toml or start the worker; GET /routes lists the targets"
        )
        self.route = route


class UnknownRun(HeadraceError, LookupError):
    """A run of the suites that no benchmarker knows, or none knows any more."""


class CannotRun(HeadraceError, ValueError):
    """A demand for a run of the suites that cannot be met; ``field`` is the part of it that is in the way."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class SettingsError(HeadraceError, ValueError):
    """A setting that is missing or wrong; the message names its key."""


class ServerError(HeadraceError, RuntimeError):
    """The nats-server could not start or stay up."""


class BusError(HeadraceError, RuntimeError):
    """A publish or request that got no answer, or a refusal; ``code`` is the server's error code where it sent one."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class StoreError(HeadraceError, RuntimeError):
    """The projection's file cannot be opened or healed."""


class BackendError(HeadraceError, RuntimeError):
    """A backend's failure, classified as one of the event union's FailureClass values."""

    def __init__(self, failure: str, detail: str, *, retryable: bool = True) -> None:
        super().__init__(f"{failure}: {detail}")
        self.failure = failure
        self.detail = detail
        self.retryable = retryable


class NoSuchModel(BackendError, LookupError):
    """A model to be fetched that the place where it was looked for does not have; ``detail`` is in the server's words."""

    def __init__(self, detail: str) -> None:
        super().__init__("rejected", detail)
