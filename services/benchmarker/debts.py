"""What is worth measuring next, each with its reason and what it may gain.

Answers "what does the fleet not know about itself?" from the machines, the statistics and what people use. Pure; it starts
nothing and knows no budget (``budget``). Every holder of a model is looked at, never only the one that would win: else the winner
would stay the only one that is ever measured.

A gain is in seconds for each real task: how much sooner it might be answered, or how much its answer's quality, at a second a
point, might be wrong. It orders debts and means no more than that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

import msgspec

from schemas.events import ModelInfo
from schemas.prediction import TYPICAL_PROMPT_TOKENS, Effective
from schemas.statistics import Statistics, effective
from services.benchmarker.state import FREE_REASONS, Fleet, Machine
from services.benchmarker.use import ANY_DOMAIN, Use

US = 1_000_000
STALE_S = 7 * 86_400.0
RECENT_S = 600.0
"""A machine that was measured so lately and only went away for a moment is not measured again."""
UNCERTAIN = 0.3
"""Standard deviation of ln(speed): three samples of the machine bring it below (ROUTING.md B3.2)."""
JUDGED_LEAST, JUDGED_MOST = 3.0, 8.0
"""Every model is judged so often in each domain in use; those that may yet be its best, some more: the third judgement leaves the
best of six to chance, and each further one says less (``simulation.evidence.quality``)."""
POINTS_SD = 30.0
"""How far the quality of a model that nobody judged may be from the mean, in points of 100."""
RETRY_S, RETRY_MOST_S = 30.0, 3600.0
LOADED_MOST = 3
"""Ollama drives a model out when a fourth comes, whatever the memory."""
ROOM, ROOM_BYTES = 1.2, 500_000_000
"""What a model needs besides its weights: its context and the backend's own buffers."""

Reason = Literal[
    "joined", "woke", "new_model", "unmeasured", "stale", "uncertain", "digest", "drift", "unjudged"
]  # fmt: skip


class Debt(msgspec.Struct, frozen=True, kw_only=True):
    """``free``: apart from the budget. ``loads``: the model is not known to be in memory; ``evicts``: it would drive another one
    out of it."""

    kind: Literal["probe", "quality"]
    model: str
    worker: str
    domain: str
    reason: Reason
    gain: float
    free: bool = False
    loads: bool = False
    evicts: bool = False


class _Place(NamedTuple):
    """A model on a machine that is there. ``joins``: a probe may be owed for what happened to the machine."""

    model: str
    worker: str
    machine: Machine
    info: ModelInfo
    loads: bool
    evicts: bool
    joins: bool = True


def debts(fleet: Fleet, stats: Statistics, use: Use, now_us: int, *, stale_s: float = STALE_S) -> tuple[Debt, ...]:
    """Best first: what is apart from the budget, what is in memory, then by falling gain."""
    return [*thinking(fleet, stats, use, now_us, stale_s=stale_s)][-1] or ()


def thinking(
    fleet: Fleet, stats: Statistics, use: Use, now_us: int, *, stale_s: float = STALE_S
) -> Iterator[tuple[Debt, ...] | None]:
    """``debts``, a little with each step, the last of which has them; between two the fleet and the statistics may change."""
    share = use.in_use(now_us)
    places = list(_places(fleet, stats, share, now_us))
    yield None
    gains: dict[tuple[str, str, str], float] = {}
    for pair, gained in _gains(places, stats, use, share, now_us):
        gains |= {(*pair, worker): seconds for worker, seconds in gained}
        yield None
    found: list[Debt] = []
    for place in places:
        found += _probes(place, stats, use, share, gains, now_us, stale_s)
        yield None
    for some in _unjudged(places, stats, share, now_us):
        found += some
        yield None
    yield tuple(sorted(found, key=lambda d: (not d.free, d.loads, -d.gain, d.model, d.domain, d.worker)))


def _places(fleet: Fleet, stats: Statistics, share: Mapping[tuple[str, str], float], now_us: int) -> Iterator[_Place]:
    """Only what is in memory, fits beside it, or is used is measured; the rest keeps the estimate of the machine's bandwidth."""
    used: dict[str, float] = {}
    for (model, _), part in share.items():
        used[model] = used.get(model, 0.0) + part
    for worker, machine in sorted(fleet.machines.items()):
        if machine.left:
            continue
        first = _measured_first(machine, stats, used, now_us)
        for info in machine.report.models:
            if not answers(machine, info):
                continue
            is_there, is_first = resident(machine, info), info.name == first
            if is_there or fits(machine, info):
                yield _Place(info.name, worker, machine, info, loads=not is_there, evicts=False)
            elif is_first or info.name in used:
                joins = is_first or is_there is not None
                yield _Place(info.name, worker, machine, info, loads=True, evicts=not is_first, joins=joins)


def _measured_first(machine: Machine, stats: Statistics, used: Mapping[str, float], now_us: int) -> str | None:
    """Where nobody says what is in memory, one probe after a join is all: of the model that is used most, else of the first. Each
    further one might load a model and drive another one out. None where some model has told its speed since."""
    unknown = [i.name for i in machine.report.models if answers(machine, i) and resident(machine, i) is None]
    told = (measured_us(machine, stats, i.name, machine.report.worker, now_us) for i in machine.report.models)
    last_us = max((us for us in told if us is not None), default=None)
    since_us = max(machine.boot_us, machine.woke_us)
    if not unknown or (last_us is not None and (last_us >= since_us or now_us - last_us < RECENT_S * US)):
        return None
    return max(unknown, key=lambda model: used.get(model, 0.0))


def answers(machine: Machine, info: ModelInfo) -> bool:
    """It makes text, and the machine supports what it needs."""
    only_embeds = info.capability == "embedding" or set(info.capabilities) == {"embedding"}
    return not only_embeds and info.capability in machine.report.supports


def resident(machine: Machine, info: ModelInfo) -> bool | None:
    """Whether it is in memory; None where the backend does not say, unless it holds nothing else."""
    told = machine.load.resident if machine.load is not None else None
    if told is not None:
        return info.name in told or info.backend_name in told
    return True if len(machine.report.models) == 1 else info.resident


def fits(machine: Machine, info: ModelInfo) -> bool:
    """It can be loaded without driving anything out: free memory is known, after what ran there last, and enough."""
    load = machine.load
    if load is None or machine.load_us <= machine.ended_us:
        return False
    if info.bytes is None or load.resident is None or len(load.resident) >= LOADED_MOST:
        return False
    free = load.ram_available_bytes
    if load.gpus and not any(gpu.unified for gpu in load.gpus):
        rooms = [
            gpu.vram_total_bytes - gpu.vram_used_bytes
            for gpu in load.gpus
            if gpu.vram_total_bytes is not None and gpu.vram_used_bytes is not None
        ]
        free = max(rooms, default=None)
    return free is not None and free >= ROOM * info.bytes + ROOM_BYTES


# -- speed -------------------------------------------------------------------------------------------------------------


def _probes(
    place: _Place,
    stats: Statistics,
    use: Use,
    share: dict[tuple[str, str], float],
    gains: dict[tuple[str, str, str], float],
    now_us: int,
    stale_s: float,
) -> Iterator[Debt]:
    model, worker, machine = place.model, place.worker, place.machine
    tries, tried_us = machine.tried.get(model, (0, 0))
    if tries and now_us < tried_us + min(RETRY_S * 2 ** min(tries, 10), RETRY_MOST_S) * US:
        return
    domains = [domain for name, domain in share if name == model]
    last_us = measured_us(place.machine, stats, model, worker, now_us)
    unmeasured = [d for d in domains if not stats.pool("decode", "c", model, d, worker).n]
    whole = sum(gains.get((model, d, worker), 0.0) for d in domains)

    def debt(reason: Reason, domain: str, gain: float) -> Debt:
        return Debt(
            kind="probe", model=model, worker=worker, domain=domain, reason=reason, gain=gain,
            free=reason in FREE_REASONS, loads=place.loads, evicts=place.evicts,
        )  # fmt: skip

    if place.joins and (reason := _happened(place, last_us, now_us)) is not None:
        yield debt(reason, (*unmeasured, *domains, ANY_DOMAIN)[0], whole)
        return
    if not domains:
        return
    if machine.drift_us > (last_us or 0):
        yield debt("drift", domains[0], whole)
    elif last_us is not None and now_us - last_us > stale_s * US:
        yield debt("stale", domains[0], whole)
    elif last_us is not None and whole > 0.0:
        known = _expected(place, stats, domains[0], now_us)
        if known.uncertainty >= UNCERTAIN:
            yield debt("uncertain", domains[0], whole)
    for domain in unmeasured:
        yield debt("unmeasured", domain, gains.get((model, domain, worker), 0.0))


def _happened(place: _Place, last_us: int | None, now_us: int) -> Reason | None:
    """What happened to the machine since the model was last measured there."""
    machine, held = place.machine, place.machine.held.get(place.model)
    since_us = held.since_us if held is not None else 0
    if held is not None and (last_us is None or last_us < since_us):
        if held.renewed:
            return "digest"
        return "new_model" if since_us > machine.boot_us else "joined"
    if last_us is None:
        return "joined"
    if now_us - last_us < RECENT_S * US:
        return None
    if last_us < machine.woke_us:
        return "woke"
    return "joined" if last_us < machine.boot_us else None


def measured_us(machine: Machine, stats: Statistics, model: str, worker: str, now_us: int) -> int | None:
    """When the model last told its speed there: by the statistics, or by a completion that they may not know yet."""
    age_s = stats.pool("decode", "mw", model, worker).age_s(now_us)
    known = [us for us in (None if age_s is None else now_us - int(age_s * US), machine.measured.get(model)) if us]
    return max(known, default=None)


def _expected(place: _Place, stats: Statistics, domain: str, now_us: int) -> Effective:
    return effective(stats, place.model, domain, place.worker, model_bytes=place.info.bytes, now_us=now_us)


def _gains(
    places: list[_Place], stats: Statistics, use: Use, share: dict[tuple[str, str], float], now_us: int
) -> Iterator[tuple[tuple[str, str], list[tuple[str, float]]]]:
    """((model, domain), by worker) -> what a task may gain by knowing that machine better: of a slower one, that it may be the
    fastest after all; of the fastest, that it may not be."""
    holders: dict[str, list[_Place]] = {}
    for place in places:
        holders.setdefault(place.model, []).append(place)
    for (model, domain), part in share.items():
        prompt = use.prompt_of(model, domain) or TYPICAL_PROMPT_TOKENS
        rows = []
        for place in holders.get(model, ()):
            known = _expected(place, stats, domain, now_us)
            rows.append((seconds(known, prompt), known.uncertainty, place.worker))
        rows.sort()
        found: list[tuple[str, float]] = []
        for index, (taken_s, sd, worker) in enumerate(rows):
            if index:
                saved_s = rows[0][0] - taken_s * math.exp(-sd)
            else:
                saved_s = taken_s * math.exp(sd) - rows[1][0] if len(rows) > 1 else 0.0
            found.append((worker, part * max(0.0, saved_s)))
        yield (model, domain), found


def seconds(known: Effective, prompt_tokens: float, output_tokens: float | None = None) -> float:
    """Of one answer on the free machine with the model in memory."""
    output = output_tokens if output_tokens is not None else known.output_tokens.value or 0.0
    return prompt_tokens / (known.prefill.value or 1.0) + output / (known.decode.value or 1.0)


# -- quality -----------------------------------------------------------------------------------------------------------


def _unjudged(
    places: list[_Place], stats: Statistics, share: dict[tuple[str, str], float], now_us: int
) -> Iterator[list[Debt]]:
    """By domain: each model in what people use, also where it was never chosen: a better one must be found out."""
    if len({place.model for place in places}) < 2:
        return  # nothing to choose from
    by_domain: dict[str, float] = {}
    for (_, domain), part in share.items():
        by_domain[domain] = by_domain.get(domain, 0.0) + part
    for domain, part in by_domain.items():
        best = _points(places, stats, domain, now_us)
        first, second = sorted(best.values())[-1:-3:-1]
        found: list[Debt] = []
        for place in places:
            judged = stats.pool("quality", "md", place.model, domain).weight()
            sd = POINTS_SD / math.sqrt(1.0 + judged)
            away = abs(best[place.model] - (second if best[place.model] == first else first))
            if not place.evicts and (round(judged) < JUDGED_LEAST or (round(judged) < JUDGED_MOST and away < sd)):
                reason: Reason = "unjudged" if round(judged) < JUDGED_LEAST else "uncertain"
                found.append(Debt(
                    kind="quality", model=place.model, worker=place.worker, domain=domain, reason=reason,
                    gain=part * (sd if reason == "unjudged" else sd - away),
                ))  # fmt: skip
        yield found


def _points(places: list[_Place], stats: Statistics, domain: str, now_us: int) -> dict[str, float]:
    """In points of 100."""
    held = {place.model: place for place in places}
    return {m: 100.0 * (_expected(place, stats, domain, now_us).quality.value or 0.0) for m, place in held.items()}
