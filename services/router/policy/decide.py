"""One decision: from a task, the fleet and the statistics to candidates, removals and a choice.

Answers "which model, and probably which worker, should answer?". Everything that the answer depended on is in the result, so
that it can be computed again from the log. A task's worker is settled only when it starts; this is the provisional choice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from schemas.errors import UnknownModel
from schemas.events import Candidate, Choice, Policy, Removal, TaskRouted, WorkerInput
from schemas.statistics import UNKNOWN_WAIT_S, Statistics, factor
from services.router.fleet import Fleet, WorkerView
from services.router.nearest import known_models, nearest, resolve_model
from services.router.policy.filters import Pair, keep, pairs_of, unsaid
from services.router.policy.picker import order
from services.router.policy.request import RouteRequest
from services.router.policy.routes import Route
from services.router.policy.routing import Routing, numbers, routed_words, vote_on
from services.router.policy.scorer import score
from services.router.policy.settle import Settled, settle
from services.router.policy.votes import EXACT, Tally

POLICY = "least_completion"
# 32 candidates with all their parts are about 25 KiB of the 64 that an event may have; removals are short.
RECORDED_CANDIDATES = 32
RECORDED_REMOVALS = 64
EQUALS_NAMED = 3
# Enough for every fleet that Headrace is for, at about 400 bytes each; the workers of recorded candidates come first.
RECORDED_INPUTS = 48


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Everything ``task.routed`` says, but for who says it and when."""

    policy: Policy
    position: int
    inputs: tuple[WorkerInput, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    omitted: int = 0
    removed: tuple[Removal, ...] = ()
    choice: Choice | None = None
    seed: int = 0
    target: str | None = None
    service_s: float | None = None

    def routed(self, task: str, *, id: str, at: float, by: str, epoch: int, cause: str | None = None) -> TaskRouted:
        return TaskRouted(id=id, at=at, by=by, cause=cause, task=task, epoch=epoch, **msgspec.structs.asdict(self))


def decide(
    request: RouteRequest,
    fleet: Fleet,
    stats: Statistics,
    *,
    seed: int,
    now_us: int,
    slider: float,
    routing: Routing | None = None,
) -> Decision:
    """The decision on ``request``; its slider goes before the route's, that before ``slider``. ``now_us`` only makes ages.

    Raises UnknownModel, with the nearest names, where nobody holds the model asked for, heard lately or not.
    """
    settled = settle(routing.route, request, fleet, routing.counts) if routing is not None else Settled(())
    request = msgspec.structs.replace(request, targets=settled.allowed)
    slider = slider_of(request, routing.route if routing is not None else None, slider)
    pairs = _pairs(request, fleet)
    kept, removed = keep(pairs, request)
    ordered = order((score(pair, request, stats, slider=slider, now_us=now_us) for pair in kept), seed)
    weights = {"slider": slider, "others_factor_least": factor(None), "unknown_wait_s": UNKNOWN_WAIT_S}
    policy, choice = Policy(name=POLICY, weights=weights), _choice(ordered, fleet, settled)
    if routing is not None:
        slots = {view.id: view.slots for view in fleet.workers.values()}
        ordered, counted = vote_on(request, routing, ordered, slots, seed)
        by = POLICY if routing.route.by == "policy" and counted.is_silent else routing.route.by
        policy = Policy(name=by, weights=weights | numbers(routing, settled), route=routing.route.name)
        choice = _choice(ordered, fleet, settled) if counted.is_silent else _voted(ordered, counted, fleet)
        if choice is not None and (words := routed_words(routing.route, settled)):
            choice = msgspec.structs.replace(choice, reason=f"{words}; {choice.reason}")
    if choice is not None and (words := _unsaid(choice, kept, request)):
        choice = msgspec.structs.replace(choice, reason=f"{choice.reason}; nobody says whether it takes {words}")
    recorded = tuple(ordered[:RECORDED_CANDIDATES])
    return Decision(
        policy=policy,
        position=stats.position,
        inputs=tuple(_input(fleet.workers[name], routing) for name in _told(recorded, removed)),
        candidates=recorded,
        omitted=len(ordered) - len(recorded),
        removed=_removals(request, fleet, removed),
        choice=choice,
        seed=seed,
        target=settled.drawn.name if settled.drawn is not None else None,
        service_s=min(map(_service_s, ordered), default=None),
    )


def _unsaid(choice: Choice, kept: Sequence[Pair], request: RouteRequest) -> str:
    chosen = (pair for pair in kept if (pair.model, pair.worker.id) == (choice.model, choice.worker))
    return next((unsaid(pair, request) for pair in chosen), "")


def _service_s(candidate: Candidate) -> float:
    """What it takes there once it runs, the model loaded: the queue's order rests on the least of them."""
    return (candidate.predicted.prefill_s or 0.0) + (candidate.predicted.decode_s or 0.0)


def _pairs(request: RouteRequest, fleet: Fleet) -> list[Pair]:
    asked = request.wants.model
    if asked is None:
        return [pair for model in fleet.models() for pair in pairs_of(model, fleet.holders(model))]
    model = resolve_model(fleet, asked)
    if model is None:
        raise UnknownModel(asked, nearest(asked, known_models(fleet)))
    return pairs_of(model, fleet.holders(model))


def _told(recorded: Sequence[Candidate], removed: Sequence[tuple[Pair, str]]) -> list[str]:
    """The workers whose state decided something: whoever could answer, and whoever was removed, by id."""
    chosen = sorted({candidate.worker for candidate in recorded})
    others = sorted({pair.worker.id for pair, _ in removed} - set(chosen))
    return sorted(chosen + others[: max(0, RECORDED_INPUTS - len(chosen))])


def _input(worker: WorkerView, routing: Routing | None) -> WorkerInput:
    given = worker_input(worker)
    return given if routing is None else msgspec.structs.replace(given, in_flight=routing.in_flight.get(worker.id, 0))


def worker_input(worker: WorkerView) -> WorkerInput:
    """What a decision knew about a worker, as the log keeps it."""
    return WorkerInput(
        worker=worker.id,
        free=worker.free,
        slots=worker.slots,
        running=worker.running,
        waiting_s=worker.wait_s,
        others_use=worker.others_use,
        others_reason=worker.others_reason,
        resident=None if worker.resident is None else tuple(sorted(worker.resident)),
        credit_age_s=worker.credit_age_s,
        alive=worker.alive,
        fresh=worker.fresh,
        draining=worker.draining,
        paused=worker.paused,
    )


def _removals(request: RouteRequest, fleet: Fleet, removed: Sequence[tuple[Pair, str]]) -> tuple[Removal, ...]:
    """The removed pairs, and those who do not hold the model asked for or are not there at all."""
    found = [Removal(model=pair.model, worker=pair.worker.id, reason=reason) for pair, reason in removed]
    asked, worker = request.wants.model, request.wants.worker
    if asked is not None and (model := resolve_model(fleet, asked)) is not None:
        found += [
            Removal(model=model, worker=view.id, reason="model: does not hold it")
            for view in fleet.workers.values()
            if model not in view.models
        ]
    if worker is not None and not any(worker in (view.id, view.name) for view in fleet.workers.values()):
        close = ", ".join(nearest(worker, (view.name for view in fleet.workers.values())))
        reason = f"worker: nobody is called {worker}; nearest: {close or 'the fleet is empty'}"
        found.insert(0, Removal(model=asked or "*", worker=None, reason=reason))
    found.sort(key=lambda r: (r.worker is not None, r.model, r.worker or ""))
    if len(found) > RECORDED_REMOVALS:
        rest = len(found) - RECORDED_REMOVALS + 1
        found[RECORDED_REMOVALS - 1 :] = [Removal(model="*", worker=None, reason=f"and {rest} more pairs")]
    return tuple(found)


def slider_of(request: RouteRequest, route: Route | None, default: float) -> float:
    """The request's own, else its route's, else the router's."""
    if request.slider is not None:
        return request.slider
    return default if route is None or route.slider is None else route.slider


def _voted(ordered: Sequence[Candidate], counted: Tally, fleet: Fleet) -> Choice | None:
    if not ordered:
        return None
    best = ordered[0]
    words = "; ".join(
        f"{name} {best.votes.get(name, 0.0):.2f}: {counted.words[name]}" for name in sorted(counted.words)
    )
    reason = f"{_votes(best):.2f} votes ({_with_names(words, ordered, fleet)})"
    equals = [c for c in ordered[1:] if c.fresh == best.fresh and round(_votes(c) - _votes(best), EXACT) == 0.0]
    if equals:
        names = [_rival(each, best, fleet) for each in equals[:EQUALS_NAMED]]
        more = f" and {len(equals) - EQUALS_NAMED} more" if len(equals) > EQUALS_NAMED else ""
        reason += f"; as many as {', '.join(names)}{more}; drawn by lot"
    return Choice(model=best.model, worker=best.worker, reason=reason)


def _with_names(words: str, ordered: Sequence[Candidate], fleet: Fleet) -> str:
    """Plugins know a machine by its id alone; people do not."""
    ids = "|".join(sorted(re.escape(each.worker) for each in ordered))
    return re.sub(rf"(?<![\w-])({ids})(?![\w-])", lambda found: fleet.workers[found[0]].name, words)


def _votes(candidate: Candidate) -> float:
    return sum(candidate.votes.values())


def _rival(other: Candidate, best: Candidate, fleet: Fleet) -> str:
    name = fleet.workers[other.worker].name
    return name if other.model == best.model else f"{other.model} on {name}"


def _choice(ordered: Sequence[Candidate], fleet: Fleet, settled: Settled) -> Choice | None:
    if not ordered:
        return None
    best = ordered[0]
    return Choice(model=best.model, worker=best.worker, reason=_reason(best, ordered[1:], fleet, settled))


def _reason(best: Candidate, others: Sequence[Candidate], fleet: Fleet, settled: Settled) -> str:
    """One line for a header: why the first is first."""
    if not fleet.workers[best.worker].alive:
        return f"nobody who could answer was heard lately; waits for {fleet.workers[best.worker].name}"
    total = best.predicted.total_s or 0.0
    if not others:  # where a target was drawn, others can answer as well: it is not their turn
        return f"{'' if settled.allowed else 'the only one that can answer; '}{_s(total)} predicted"
    second = others[0]
    rival = _rival(second, best, fleet)
    if best.fresh and not second.fresh:
        return f"{_s(total)} predicted; the load of {rival} is unknown"
    if second.cost_s == best.cost_s:
        return f"{_s(total)} predicted, the same as {rival}; drawn by lot"
    more = second.cost_s - best.cost_s
    told_more = _s(more) if more >= 0.01 else "less than 0.01 s"
    if second.model == best.model:
        return f"{_s(total)} predicted, the least; {rival} would cost {told_more} more"
    quality, points = best.quality, 100 * (best.quality.value or 0.0)
    guessed = "a guessed " if quality.level == "prior" or quality.n == 0 else ""
    told = f"{_s(total)} predicted at {guessed}quality {'of ' if guessed else ''}{points:.0f} of 100"
    return f"{told}, the least cost; {rival} would cost {told_more} more"


def _s(value: float) -> str:
    """Below a second a tenth is too coarse to tell two machines apart."""
    return f"{value:.2f} s" if value < 1.0 else f"{value:.1f} s"
