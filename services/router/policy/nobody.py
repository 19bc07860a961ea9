"""Targets that nobody in the fleet can be meant by.

Answers "which targets of these routes are nobody's, and what may have been meant?", so that a name mistyped in routes.toml is
seen before a task waits for it. A machine that is silent, paused or busy is somebody: tasks wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas.errors import UnknownTarget
from services.router.fleet import Fleet
from services.router.nearest import known_models, nearest, resolve_model
from services.router.policy.filters import is_target, pairs_of
from services.router.policy.routes import Route, Routes, Target


def warnings(routes: Routes, fleet: Fleet) -> tuple[str, ...]:
    """One line for each target or fallback that nobody is meant by, in the order of the names."""
    return tuple(
        f"{name}.{kind}[{at}]: {why}"
        for name in sorted(routes.routes)
        for kind, targets in (("targets", routes.routes[name].targets), ("fallback", routes.routes[name].fallback))
        for at, target in enumerate(targets)
        if (why := nobody(target, fleet)) is not None
    )


def refuse_nowhere(route: Route, fleet: Fleet) -> None:
    """Raises UnknownTarget where neither a target nor a fallback of ``route`` exists: waiting would be in vain."""
    everybody = (*route.targets, *route.fallback)
    why = [words for target in everybody if (words := nobody(target, fleet)) is not None]
    if route.targets and len(why) == len(everybody):
        raise UnknownTarget(route.name, "; ".join(dict.fromkeys(why)))


def nobody(target: Target, fleet: Fleet) -> str | None:
    """Why nobody is meant, with the nearest names; None where somebody is."""
    if _somebody(target, fleet):
        return None
    return "; ".join(_why(target, fleet))


def _somebody(target: Target, fleet: Fleet) -> bool:
    model = resolve_model(fleet, target.model)
    return model is not None and any(is_target(target, pair) for pair in pairs_of(model, fleet.holders(model)))


def _why(target: Target, fleet: Fleet) -> Iterator[str]:
    has_model = resolve_model(fleet, target.model) is not None
    if not has_model:
        yield f"no worker holds the model {target.model!r}{_close(target.model, known_models(fleet))}"
    if target.worker is None:
        return
    called = {name for view in fleet.workers.values() for name in (view.id, view.name)}
    if target.worker not in called:
        shown = tuple(view.name for view in fleet.workers.values())
        yield f"no worker is called {target.worker!r}{_close(target.worker, shown)}"
    elif has_model:
        yield f"{target.worker} does not hold {target.model}"


def _close(name: str, known: tuple[str, ...]) -> str:
    close = nearest(name, known)
    return f" (nearest: {', '.join(close)})" if close else ""
