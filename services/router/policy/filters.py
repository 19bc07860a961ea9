"""Which (model, worker) pairs cannot answer a task, each with its reason.

Answers "who is out, and why?". A hard filter's word is final. A soft one is a preference: it removes nobody where it would
remove everybody, so a stale or sleeping fleet makes a task wait and never makes its model unknown (case 24). A filter looks
at one pair only, so no pair's fate depends on how good another is. Reasons are ``code: words``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec

from schemas.events import ModelInfo
from services.router.fleet import Fleet, WorkerView
from services.router.nearest import is_called, resolve_model
from services.router.policy.needs import WORDS, says
from services.router.policy.request import RouteRequest
from services.router.policy.routes import AUTO, Target

EMBEDDING = "embedding"
# The prompt's size is an estimate from characters, but none is wrong by more than a factor of two.
ESTIMATE_ERROR = 2


class Pair(msgspec.Struct, frozen=True):
    """A worker and a model that it holds. ``digest`` is the one in force for that model on that kind of backend."""

    model: str
    worker: WorkerView
    info: ModelInfo
    digest: str | None = None


Filter = Callable[[Pair, RouteRequest], str | None]


def pairs_of(model: str, holders: Iterable[WorkerView]) -> list[Pair]:
    """All pairs of one model, with the digest that most of its holders have (of equals, the smaller).

    Digests can be compared between backends of one kind only: Ollama's is a manifest's, llama.cpp has none."""
    workers = sorted(holders, key=lambda worker: worker.id)
    votes: dict[str, Counter[str]] = {}
    for worker in workers:
        digest = worker.models[model].digest
        if digest is not None:
            votes.setdefault(worker.backend, Counter())[digest] += 1
    in_force = {kind: min(counts, key=lambda d: (-counts[d], d)) for kind, counts in votes.items()}
    return [Pair(model, worker, worker.models[model], in_force.get(worker.backend)) for worker in workers]


def does_what_is_asked(pair: Pair, request: RouteRequest) -> str | None:
    """Embeddings come from embedding models only, and those answer nothing else."""
    info = pair.info
    embeds = info.capability == EMBEDDING or EMBEDDING in info.capabilities
    if request.kind == EMBEDDING:
        return None if embeds else f"kind: {pair.model} makes no embeddings"
    only_embeds = info.capability == EMBEDDING or set(info.capabilities) == {EMBEDDING}
    return f"kind: {pair.model} makes embeddings only" if only_embeds else None


def has_capability(pair: Pair, request: RouteRequest) -> str | None:
    """The worker supports what the model needs, and one of the two offers what the client asked for."""
    needs, supports = pair.info.capability, pair.worker.supports
    if needs != EMBEDDING and needs not in supports:
        return f"capability: needs {needs}, has {', '.join(supports) or 'none'}"
    asked = request.wants.capability
    if asked is not None and asked not in (*supports, *pair.info.capabilities, needs):
        return f"capability: {asked} was asked for, has {', '.join((*supports, *pair.info.capabilities)) or 'none'}"
    return None


def lacks_nothing_needed(pair: Pair, request: RouteRequest) -> str | None:
    """Out is whose backend says that it cannot."""
    for need in request.needs:
        if says(pair.info, need) is False:
            return f"{need}: {pair.model} takes no {WORDS[need]}"
    return None


def declares_what_is_needed(pair: Pair, request: RouteRequest) -> str | None:
    """Who does not say whether it can comes after whoever does; it serves where nobody says so."""
    words = unsaid(pair, request)
    return f"undeclared: does not say whether it takes {words}, others do" if words else None


def unsaid(pair: Pair, request: RouteRequest) -> str:
    """What is needed and its backend says nothing of, for a sentence; empty where it says it all."""
    words = [WORDS[need] for need in request.needs if says(pair.info, need) is None]
    if request.wants.context is not None and pair.info.context is None:
        words.append(f"{request.wants.context} tokens of context")
    return " and ".join(words)


def is_the_worker_asked_for(pair: Pair, request: RouteRequest) -> str | None:
    asked = request.wants.worker
    if asked is None or asked in (pair.worker.id, pair.worker.name):
        return None
    return f"worker: the client asked for {asked}"


def is_a_target(pair: Pair, request: RouteRequest) -> str | None:
    """Among the targets that the route allows now; a route without targets allows everybody."""
    if not request.targets or any(is_target(target, pair) for target in request.targets):
        return None
    return f"target: route {request.wants.route or AUTO} goes to {', '.join(t.name for t in request.targets)}"


def is_target(target: Target, pair: Pair) -> bool:
    """By any name of the model, and the worker's name or id where the target has one."""
    if target.worker is not None and target.worker not in (pair.worker.id, pair.worker.name):
        return False
    return target.model == pair.model or is_called(pair.info, target.model)


def has_the_context(pair: Pair, request: RouteRequest) -> str | None:
    """A context asked for is exact; an estimated one removes only what no estimate can be wrong about. Unknown passes."""
    context = pair.info.context
    if context is None:
        return None
    if not request.wants.context_flexible and (reason := has_the_context_asked_for(pair, request)) is not None:
        return reason
    if request.prompt_tokens > ESTIMATE_ERROR * context:
        return f"context: the prompt has about {request.prompt_tokens} tokens, {pair.model} has {context}"
    return None


def has_the_context_asked_for(pair: Pair, request: RouteRequest) -> str | None:
    """Of a wish, who has less comes after whoever has it, or may have it."""
    asked, context = request.wants.context, pair.info.context
    if asked is None or context is None or asked <= context:
        return None
    return f"context: {asked} tokens were asked for, {pair.model} has {context}"


def has_the_digest(pair: Pair, request: RouteRequest) -> str | None:
    """Another digest under the same name is another model; only a client that names the worker gets it."""
    digest = pair.info.digest
    if digest is None or pair.digest is None or digest == pair.digest or request.wants.worker is not None:
        return None
    return f"digest: holds {_short(digest)} under this name, most holders have {_short(pair.digest)}"


def is_not_leaving(pair: Pair, request: RouteRequest) -> str | None:
    return "draining: takes no new work" if pair.worker.draining else None


def is_not_paused(pair: Pair, request: RouteRequest) -> str | None:
    return f"paused: takes no new work {pair.worker.pause_words}" if pair.worker.paused else None


def is_heard(pair: Pair, request: RouteRequest) -> str | None:
    return None if pair.worker.alive else "silent: was not heard lately"


def has_room_for_the_answer(pair: Pair, request: RouteRequest) -> str | None:
    context = pair.info.context
    need = request.prompt_tokens + (request.max_tokens or 0)
    if context is None or need <= context:
        return None
    return f"room: prompt and answer may need {need} tokens, {pair.model} has {context}"


HARD: tuple[Filter, ...] = (
    is_a_target,
    is_the_worker_asked_for,
    does_what_is_asked,
    lacks_nothing_needed,
    has_capability,
    has_the_context,
    has_the_digest,
)
THERE: tuple[Filter, ...] = (is_not_leaving, is_not_paused, is_heard)
SUITING: tuple[Filter, ...] = (has_the_context_asked_for, declares_what_is_needed)
SOFT: tuple[Filter, ...] = (*THERE, has_room_for_the_answer)


def keep(pairs: Sequence[Pair], request: RouteRequest) -> tuple[list[Pair], list[tuple[Pair, str]]]:
    """The pairs that may answer, and the removed ones each with its first reason."""
    removed: list[tuple[Pair, str]] = []
    kept = list(pairs)
    for is_hard, filters in ((True, HARD), (False, (*SOFT, *SUITING))):
        for filter_ in filters:
            reasons = [(pair, filter_(pair, request)) for pair in kept]
            passed = [pair for pair, reason in reasons if reason is None]
            if passed or is_hard:
                removed += [(pair, reason) for pair, reason in reasons if reason is not None]
                kept = passed
    return kept, removed


def allowed_models(fleet: Fleet, request: RouteRequest) -> tuple[str, ...]:
    """By their names of today: one that was canonical when the task came may be an alias now."""
    asked = request.wants.model
    return tuple(fleet.models()) if asked is None else (resolve_model(fleet, asked) or asked,)


def may_serve(model: str, fleet: Fleet, request: RouteRequest) -> tuple[str, ...]:
    """The holders of ``model`` that pass every hard filter, by id; silent and draining ones are among them."""
    pairs = pairs_of(model, fleet.holders(model))
    return tuple(pair.worker.id for pair in pairs if lack(pair, request) is None)


def lack(pair: Pair, request: RouteRequest) -> str | None:
    """Its first reason why it may never serve the request; None where it may, be it silent or draining."""
    return next((reason for filter_ in HARD if (reason := filter_(pair, request)) is not None), None)


def best_suited(
    pairs: tuple[tuple[str, tuple[str, ...]], ...], fleet: Fleet, request: RouteRequest
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Of (model, holders) that may serve: those that have the window wished for and declare what is needed, each where one of
    them is there; else all."""
    if not request.needs and request.wants.context is None:
        return pairs
    for filter_ in SUITING:
        suiting = {
            model: tuple(worker for worker in workers if filter_(_pair(model, worker, fleet), request) is None)
            for model, workers in pairs
        }
        found = ((model, worker) for model, workers in suiting.items() for worker in workers)
        if any(is_there(_pair(model, worker, fleet), request) for model, worker in found):
            pairs = tuple((model, workers) for model, workers in suiting.items() if workers)
    return pairs


def is_there(pair: Pair, request: RouteRequest) -> bool:
    """Heard lately, and taking new work."""
    return all(filter_(pair, request) is None for filter_ in THERE)


def _pair(model: str, worker: str, fleet: Fleet) -> Pair:
    view = fleet.workers[worker]
    return Pair(model, view, view.models[model])


def _short(digest: str) -> str:
    return digest.removeprefix("sha256:")[:12]
