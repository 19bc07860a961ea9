"""One prompt to many: who takes part in a comparison, what each answer cost, and which answers are set beside each other.

Answers "who may answer this now, and who not, and why?". Unlike a decision it prefers nobody: every pair that could answer takes
part. A judge is of another family than whoever it judges, where the fleet has one. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import msgspec

from schemas.bias import Judge, JudgeKey
from schemas.errors import UnknownModel
from schemas.events import Candidate, Removal, Wants
from schemas.families import kin
from schemas.judging import Side
from schemas.statistics import Statistics, effective
from schemas.work import Answer
from services.router.contest import Eligible, Referee
from services.router.fleet import Fleet
from services.router.nearest import known_models, nearest, resolve_model
from services.router.policy.filters import EMBEDDING, HARD, SOFT, Pair, pairs_of
from services.router.policy.request import RouteRequest
from services.router.policy.scorer import score
from services.router.port import TaskStatus

ENTRIES_MOST = 32
"""More columns nobody reads, and each is a whole answer's work for its machine."""
PAIRS_MOST = 15
"""Six models against each other; each pair costs its judge two answers."""


def eligible(
    request: RouteRequest,
    fleet: Fleet,
    stats: Statistics,
    *,
    models: Sequence[str] = (),
    workers: Sequence[str] = (),
    slider: float,
    now_us: int,
) -> Eligible:
    """Every pair of ``models`` and ``workers`` (ids; none means all). Raises UnknownModel for a model that nobody holds."""
    kept: list[Candidate] = []
    removed: list[Removal] = []
    for model in _resolved(models, fleet):
        for pair in pairs_of(model, fleet.holders(model)):
            if workers and pair.worker.id not in workers:
                continue
            asked = msgspec.structs.replace(request, wants=_pinned(request.wants, pair))
            reason = next(filter(None, (each(pair, asked) for each in (*HARD, *SOFT))), None)
            if reason is None:
                kept.append(score(pair, asked, stats, slider=slider, now_us=now_us))
            else:
                removed.append(Removal(model=model, worker=pair.worker.id, reason=reason))
    kept.sort(key=lambda candidate: (candidate.cost_s, candidate.model, candidate.worker))
    beyond = [
        Removal(model=c.model, worker=c.worker, reason=f"room: a comparison has at most {ENTRIES_MOST} answers")
        for c in kept[ENTRIES_MOST:]
    ]
    return Eligible(candidates=tuple(kept[:ENTRIES_MOST]), removed=(*removed, *beyond))


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """Where an answer's seconds went. ``took_s`` is from its submission to its end, ``cost_s`` what that is at the predicted
    quality: seconds, less the seconds that the quality is worth."""

    wait_s: float | None
    load_s: float | None
    prefill_s: float | None
    decode_s: float | None
    first_token_s: float | None
    took_s: float | None
    tokens_per_s: float | None
    cost_s: float | None


def spent(status: TaskStatus, predicted: Candidate | None) -> Spent | None:
    """None while it has not completed."""
    if status.state != "completed":
        return None
    times, tokens = status.times, status.tokens
    total = times.total_s if times is not None else None
    took = total + (status.waited_s or 0.0) if total is not None else None
    output, decode = (tokens.output if tokens else None), (times.decode_s if times else None)
    cost = None
    if took is not None and predicted is not None and predicted.predicted.total_s is not None:
        cost = predicted.cost_s - predicted.predicted.total_s + took
    return Spent(
        wait_s=status.waited_s,
        load_s=times.load_s if times else None,
        prefill_s=times.prefill_s if times else None,
        decode_s=decode,
        first_token_s=times.first_token_s if times else None,
        took_s=took,
        tokens_per_s=output / decode if output and decode else None,
        cost_s=cost,
    )


def referee(
    fleet: Fleet,
    stats: Statistics,
    records: Mapping[JudgeKey, Judge],
    models: Sequence[str],
    domain: str,
    *,
    wanted: str | None,
    now_us: int,
) -> Referee | None:
    """The judge between ``models``: ``wanted``, else one that is neither, a stranger before a relative, tested before untested,
    then the best, of equals the largest. None where there is none. Raises UnknownModel for a ``wanted`` that nobody holds."""
    there = [w for w in fleet.workers.values() if w.alive and not w.paused and not w.draining]
    held = {name: info for w in there for name, info in w.models.items() if info.capability != EMBEDDING}

    def seated(name: str) -> Referee:
        digest = held[name].digest if name in held else None
        return Referee(model=name, digest=digest, record=records.get((name, digest)))

    def rank(name: str) -> tuple[bool, bool, float, int, str]:
        record = seated(name).record
        quality = effective(stats, name, domain, "", model_bytes=None, now_us=now_us).quality.value or 0.0
        is_tested = record is not None and record.standing == "sound"
        related = any(kin(name, model) for model in models)
        return related, not is_tested, -quality, -(held[name].bytes or 0), name

    if wanted is not None:
        return seated(_resolved((wanted,), fleet)[0])
    able = [n for n in held if n not in models and ((r := seated(n).record) is None or r.standing != "unsound")]
    return seated(min(able, key=rank)) if able else None


def sides(answers: Mapping[str, Answer], digests: Mapping[str, str | None]) -> list[tuple[Side, Side]]:
    """The pairs to judge: of each two models one answer each, the first with a text. ``answers`` are by task, in order."""
    first: dict[str, Side] = {}
    for task, answer in answers.items():
        if answer.text.strip() and answer.model not in first:
            side = Side(model=answer.model, task=task, chars=len(answer.text), digest=digests.get(task))
            first[answer.model] = side
    return list(combinations(first.values(), 2))[:PAIRS_MOST]


def _resolved(models: Sequence[str], fleet: Fleet) -> tuple[str, ...]:
    """Canonical names; all of the fleet's where none is given."""
    if not models:
        return fleet.models()
    found: dict[str, None] = {}
    for name in models:
        model = resolve_model(fleet, name)
        if model is None:
            raise UnknownModel(name, nearest(name, known_models(fleet)))
        found[model] = None
    return tuple(found)


def _pinned(wants: Wants, pair: Pair) -> Wants:
    """As its task will want it; who names the machine gets the file that it holds."""
    return msgspec.structs.replace(wants, model=pair.model, worker=pair.worker.id, route=None)
