"""A recorded decision, computed again from the log alone.

Answers "does what was decided follow from what was known?", bit for bit. What the router had only heard (loads, credits) is in
the decision's own ``inputs``; everything else is the log up to ``folded``, and the statistics up to ``position``. The functions
that ran then run again; whatever they say otherwise is a difference, never a tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from schemas.events import TaskRouted, TaskSubmitted, WorkerInput
from schemas.statistics import Statistics
from services.router.dispatch.worker_record import WorkerRecord
from services.router.fleet import Fleet, WorkerView
from services.router.policy.decide import decide
from services.router.policy.plugin import LastServed
from services.router.policy.plugins import PLUGINS
from services.router.policy.request import request_of
from services.router.policy.routes import Route, Target
from services.router.policy.routing import CACHED, Routing

Workers = Mapping[str, WorkerRecord]


def routed_again(submitted: TaskSubmitted, routed: TaskRouted, workers: Workers, stats: Statistics) -> TaskRouted:
    """``routed`` with everything that can be computed put in anew. ``workers`` is the fold of the log up to ``routed.folded``,
    ``stats`` that up to ``routed.position``. Which target a route drew is taken as recorded."""
    inputs = {given.worker: given for given in routed.inputs}
    decision = decide(
        request_of(submitted),
        fleet_then(workers, inputs),
        stats,
        seed=routed.seed,
        now_us=int(routed.at * 1e6),
        slider=routed.policy.weights["slider"],
        routing=routing_then(routed) if routed.policy.route is not None else None,
    )
    known = [candidate for candidate in decision.candidates if candidate.worker in inputs]
    again = msgspec.structs.replace(
        routed,
        position=decision.position,
        inputs=decision.inputs,
        candidates=tuple(known[: len(routed.candidates)] if routed.omitted else known),
        removed=decision.removed,
        choice=decision.choice,
        service_s=routed.service_s if routed.omitted else decision.service_s,
    )
    if {given.worker for given in decision.inputs} != inputs.keys():
        again = _as_far_as_recorded(routed, again)
    if routed.policy.route is not None:
        again = _without_the_file(routed, again)
    return again


def _as_far_as_recorded(routed: TaskRouted, again: TaskRouted) -> TaskRouted:
    """Of more machines than are recorded, only those that are can be judged."""
    inputs = {given.worker: given for given in again.inputs}
    known: set[str | None] = {given.worker for given in routed.inputs}
    removed = {(removal.model, removal.worker): removal for removal in again.removed if removal.worker in known}
    return msgspec.structs.replace(
        again,
        inputs=tuple(inputs.get(given.worker, given) for given in routed.inputs),
        removed=tuple(removed.get((removal.model, removal.worker), removal) for removal in routed.removed),
    )


def _without_the_file(routed: TaskRouted, again: TaskRouted) -> TaskRouted:
    """What a route says about its targets is in its file, which the log does not have: the words, and who is no target."""
    choice, recorded = again.choice, routed.choice
    if choice is not None and recorded is not None:
        choice = msgspec.structs.replace(choice, reason=recorded.reason)
    return msgspec.structs.replace(again, choice=choice, removed=routed.removed, inputs=routed.inputs)


def fleet_then(workers: Workers, inputs: Mapping[str, WorkerInput]) -> Fleet:
    """The fleet as the decision saw it. Of a machine without inputs only the report is known."""
    return Fleet(
        workers={
            worker: _view(worker, record, inputs.get(worker)) for worker, record in workers.items() if not record.left
        }
    )


def _view(worker: str, record: WorkerRecord, given: WorkerInput | None) -> WorkerView:
    report = record.report
    view = WorkerView(
        id=worker,
        name=report.name,
        boot=report.boot,
        supports=report.supports,
        models={model.name: model for model in report.models},
        slots=report.slots,
        local=report.local,
        backend=report.backend,
        backend_id=report.backend_id,
        alive=False,
        fresh=False,
    )
    if given is None:
        return view
    return msgspec.structs.replace(
        view,
        slots=view.slots if given.slots is None else given.slots,
        free=given.free,
        running=given.running,
        wait_s=given.waiting_s,
        resident=None if given.resident is None else frozenset(given.resident),
        others_use=given.others_use,
        others_reason=given.others_reason,
        credit_age_s=given.credit_age_s,
        alive=given.alive,
        fresh=given.fresh,
        draining=given.draining,
        paused=given.paused,
        paused_until_us=record.paused_until_us,
    )


def routing_then(routed: TaskRouted) -> Routing:
    """The route as far as the log has it: whom it allowed, its plugins' weights, who is busy with what, and the session."""
    weights = routed.policy.weights
    allowed = tuple(Target(model=candidate.model, worker=candidate.worker) for candidate in routed.candidates)
    session = next((name for name in weights if name.startswith(CACHED)), None)
    last = None
    if session is not None:
        model, _, worker = session.removeprefix(CACHED).rpartition(" on ")
        last = LastServed(model=model, worker=worker, tokens=int(weights[session]))
    return Routing(
        route=Route(
            name=routed.policy.route or "",
            by="policy",
            targets=allowed,
            plugins={name: weight for name, weight in weights.items() if name in PLUGINS},
        ),
        last=last,
        in_flight={given.worker: given.in_flight or 0 for given in routed.inputs},
    )
