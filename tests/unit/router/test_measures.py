from __future__ import annotations

from schemas.events import Wants
from services.router.dispatch.permits import Limit, Limits
from services.router.dispatch.planner import plan
from services.router.measures import ALL, Measures, Permits, measures
from services.router.tally import Tally
from support.dispatching import Dispatch

LIMITS = Limits(model=Limit(default=1), client=Limit(names={"bot": 2}), backend=Limit(total=4))


def measured(dispatch: Dispatch) -> Measures:
    seen = plan(dispatch.state, dispatch.live, dispatch.now, dispatch.limits)
    return measures(dispatch.state, seen, dispatch.limits, Tally())


def permit(found: Measures, kind: str, name: str) -> Permits:
    return next(p for p in found.permits if (p.kind, p.name) == (kind, name))


def test_what_waits_what_holds_it_and_what_is_taken() -> None:
    dispatch = Dispatch(LIMITS)
    dispatch.join("w1", free=2)
    for n in range(3):
        dispatch.submit(f"t{n}", wants=Wants(model="m"), urgency="batch" if n else "interactive")
    dispatch.settle()
    found = measured(dispatch)
    assert found.waiting == {"interactive": 0, "batch": 2, "background": 0}
    assert found.held == {"model_full": 2}
    assert (found.released, found.running) == (1, 0)
    dispatch.start("t0", "w1")
    assert (measured(dispatch).released, measured(dispatch).running) == (0, 1)


def test_models_and_backends_are_shown_by_name_and_clients_only_where_they_have_a_limit_of_their_own() -> None:
    dispatch = Dispatch(LIMITS)
    dispatch.join("w1")
    dispatch.submit("t0", client="anybody")
    dispatch.settle()
    found = measured(dispatch)
    assert permit(found, "model", "m") == Permits(kind="model", name="m", held=1, limit=1)
    assert permit(found, "client", ALL) == Permits(kind="client", name=ALL, held=1, limit=None)
    assert permit(found, "client", "bot").limit == 2
    assert permit(found, "backend", ALL).limit == 4
    assert "anybody" not in {p.name for p in found.permits}


def test_a_backend_is_shown_once_by_its_machines_name_with_the_limit_that_was_given_to_that_name() -> None:
    dispatch = Dispatch(Limits(backend=Limit(names={"desk": 2})))
    dispatch.join("w1", free=2, backend_id="4f2a91c07e1b", name="desk")
    dispatch.submit("t0")
    dispatch.settle()
    shown = [p for p in measured(dispatch).permits if p.kind == "backend" and p.name != ALL]
    assert shown == [Permits(kind="backend", name="desk", held=1, limit=2)]
