"""What a decision on a task of a route needs besides the fleet and the statistics, and how the route's plugins vote in it.

Answers "which targets, and in which order?". Everything comes from the log (counts, sessions, live attempts) and the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from schemas.events import TARGET_SHARE, Candidate
from services.router.policy.drawing import shares
from services.router.policy.picker import tie_break
from services.router.policy.plugin import Case, Contender, LastServed, Pairing
from services.router.policy.request import RouteRequest
from services.router.policy.routes import Route
from services.router.policy.settle import Counts, Settled
from services.router.policy.votes import EXACT, Tally, best_of, tally

CACHED = "cached:"


def no_counts(targets: object) -> dict[str, int]:
    return {}


class Routing(msgspec.Struct, frozen=True, kw_only=True):
    """``in_flight`` are the router's live attempts by worker; ``last`` is where the task's session was answered last."""

    route: Route
    counts: Counts = no_counts
    last: LastServed | None = None
    in_flight: Mapping[str, int] = {}


def case_of(request: RouteRequest, last: LastServed | None) -> Case:
    return Case(session=request.session, prompt_tokens=request.prompt_tokens, verdict=request.verdict, last=last)


def vote_on(
    request: RouteRequest, routing: Routing, ordered: Sequence[Candidate], slots: Mapping[str, int], seed: int
) -> tuple[list[Candidate], Tally]:
    """``ordered`` by the votes of the route's plugins, each candidate with its own; unchanged where all abstain."""
    pairings = [_pairing(c, routing.in_flight.get(c.worker, 0), slots.get(c.worker, 1)) for c in ordered]
    counted = tally(case_of(request, routing.last), pairings, routing.route.plugins)
    if counted.is_silent:
        return list(ordered), counted
    voted = [
        (round(total, EXACT), msgspec.structs.replace(candidate, votes=votes))
        for candidate, votes, total in zip(ordered, counted.votes, counted.totals, strict=True)
    ]
    voted.sort(key=lambda each: (not each[1].fresh, -each[0], tie_break(seed, each[1].model, each[1].worker)))
    return [candidate for _, candidate in voted], counted


def prefer(
    request: RouteRequest, route: Route, last: LastServed | None, offers: Sequence[Contender], seed: int
) -> int | None:
    """At release: which of the planner's offers the route wants; None where it has no plugins, or all of them abstain."""
    if not route.plugins:
        return None
    return best_of(tally(case_of(request, last), offers, route.plugins), offers, seed)


def numbers(routing: Routing, settled: Settled) -> dict[str, float]:
    """What the log keeps of a route's policy: weights of plugins, or shares of the targets drawn from."""
    found = dict(routing.route.plugins)
    if settled.among:
        found |= {f"{TARGET_SHARE}{name}": share for name, share in shares(settled.among).items()}
    if routing.last is not None:
        found[f"{CACHED}{routing.last.model} on {routing.last.worker}"] = float(routing.last.tokens)
    return found


def routed_words(route: Route, settled: Settled) -> str:
    """Why just these targets, for the choice's reason; empty where the plugins say it all."""
    said = [f"route {route.name}: {settled.reason}"] if settled.reason else []
    if settled.drawn is not None:
        share = shares(settled.among)[settled.drawn.name]
        said.append(f"it is the turn of {settled.drawn.name} ({100 * share:.0f} % of {route.name})")
    return "; ".join(said)


def _pairing(candidate: Candidate, in_flight: int, slots: int) -> Pairing:
    """Parts that nobody knows are in the cost as their worst case already; a wait stays unknown."""
    predicted = candidate.predicted
    return Pairing(
        model=candidate.model,
        worker=candidate.worker,
        wait_s=predicted.wait_s,
        load_s=predicted.load_s or 0.0,
        prefill_s=predicted.prefill_s or 0.0,
        decode_s=predicted.decode_s or 0.0,
        sharing_s=predicted.sharing_s or 0.0,
        quality=candidate.quality.value or 0.0,
        cost_s=candidate.cost_s,
        fresh=candidate.fresh,
        in_flight=in_flight,
        slots=slots,
    )
