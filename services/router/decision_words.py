"""One decision in words and numbers.

Answers "why this model, why this machine, and from what evidence?" from a ``task.routed`` alone. Seconds and differences, never
a rank by itself; each number says how many samples it rests on, from where and how old; what is unknown is said to be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from schemas.events import Candidate, Measure, Removal, TaskRouted
from schemas.prediction import factor

Names = Mapping[str, str]
_IDS = re.compile(r"[A-Za-z0-9_-]+")
# More rivals or removals than this are counted, not told: an explanation must fit on a screen.
_TOLD = 5
_LEVELS = {
    "cell": "of this model, domain and machine",
    "model_domain": "of this model and domain",
    "model_worker": "of this model on this machine",
    "worker": "of other models on this machine, scaled by size",
    "model": "of this model elsewhere",
    "family": "of this model's family",
}


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate's cost, taken apart; the fields add up to ``cost_s``. ``others_s`` is what its model takes from the tasks
    waiting behind, ``quality_s`` is negative: what its quality is worth."""

    wait_s: float
    load_s: float
    prefill_s: float
    decode_s: float
    sharing_s: float
    others_s: float
    quality_s: float


PART_NAMES = {
    "wait_s": "wait",
    "load_s": "load",
    "prefill_s": "prefill",
    "decode_s": "decode",
    "sharing_s": "sharing",
    "others_s": "tasks behind",
    "quality_s": "quality",
}


def parts_of(candidate: Candidate) -> Parts:
    """An unknown wait is what is left of the total, which counted it as its worst case."""
    p = candidate.predicted
    load, prefill, decode, sharing = (value or 0.0 for value in (p.load_s, p.prefill_s, p.decode_s, p.sharing_s))
    total = p.total_s if p.total_s is not None else (p.wait_s or 0.0) + load + prefill + decode + sharing
    return Parts(
        wait_s=total - load - prefill - decode - sharing if p.wait_s is None else p.wait_s,
        load_s=load,
        prefill_s=prefill,
        decode_s=decode,
        sharing_s=sharing,
        others_s=candidate.others_s or 0.0,
        quality_s=candidate.cost_s - total - (candidate.others_s or 0.0),
    )


def pair(candidate: Candidate | Removal, names: Names) -> str:
    worker = candidate.worker
    return candidate.model if worker is None else f"{candidate.model} on {names.get(worker, worker)}"


def named(text: str, names: Names) -> str:
    """``text`` with the workers' names for their ids, as in the words of a reason."""
    return _IDS.sub(lambda found: names.get(found[0], found[0]), text) if names else text


def seconds(value: float) -> str:
    return f"{value:.2f} s" if abs(value) < 10 else f"{value:.0f} s"


def provenance(measure: Measure) -> str:
    """``31 samples of this model, domain and machine, the last 40 s ago``, or that it is a guess."""
    if measure.level == "prior" or measure.n == 0:
        return "never measured, a starting guess"
    age = "" if measure.age_s is None else f", the last {_age(measure.age_s)} ago"
    return f"{measure.n} sample{'' if measure.n == 1 else 's'} {_LEVELS[measure.level]}{age}"


def decision_words(routed: TaskRouted, names: Names | None = None) -> list[str]:
    """The choice, its parts, what it knew them from, its rivals part by part, what was unknown, and who was left out."""
    names = names or {}
    words = [_choice_line(routed, names)]
    if routed.candidates:
        best = next((c for c in routed.candidates if _is_chosen(c, routed)), routed.candidates[0])
        slider = routed.policy.weights.get("slider", 1.0)
        words += [_cost_line(best, slider), *_evidence_lines(best)]
        rivals = [c for c in routed.candidates if c is not best]
        words += [_rival_line(rival, best, names) for rival in rivals[:_TOLD]]
        more = len(rivals) - len(rivals[:_TOLD]) + routed.omitted
        if more:
            words.append(f"{more} more could have answered at a higher cost.")
        words += _unknown_lines(routed, names)
    return words + _removal_lines(routed.removed, names)


def _is_chosen(candidate: Candidate, routed: TaskRouted) -> bool:
    choice = routed.choice
    return choice is not None and (candidate.model, candidate.worker) == (choice.model, choice.worker)


def _choice_line(routed: TaskRouted, names: Names) -> str:
    choice = routed.choice
    if choice is None:
        return "Nobody could be chosen: no machine that is known can answer this."
    where = "" if choice.worker is None else f" on {names.get(choice.worker, choice.worker)}"
    return f"{choice.model}{where} was chosen: {named(choice.reason, names) or 'no reason was recorded'}."


def _cost_line(best: Candidate, slider: float) -> str:
    parts, total = parts_of(best), best.predicted.total_s or 0.0
    wait = f"wait {seconds(parts.wait_s)}" + (
        " (unknown, counted as the worst)" if best.predicted.wait_s is None else ""
    )
    line = f"Predicted {seconds(total)}: {wait}, load {seconds(parts.load_s)}, prefill {seconds(parts.prefill_s)}, "
    line += f"decode {seconds(parts.decode_s)}"
    if parts.sharing_s:
        line += f", sharing {seconds(parts.sharing_s)}"
    if parts.others_s:
        line += f"; it takes {seconds(parts.others_s)} from the tasks behind it"
    points = 100.0 * (best.quality.value or 0.0)
    return f"{line}. Its quality of {points:.0f} points is worth {seconds(-parts.quality_s)} at {slider:g} s a point."


def _asked_for(best: Candidate) -> str:
    """How much of the expected answer the client's limit leaves, from the seconds that were predicted for it."""
    rate, seconds_ = best.decode.value, best.predicted.decode_s
    if best.output_tokens is None or not rate or seconds_ is None or best.output_tokens.value is None:
        return ""
    asked = round(seconds_ * rate * _share(best))
    return f", of which at most {asked} are asked for" if asked < round(best.output_tokens.value) else ""


def _share(best: Candidate) -> float:
    """What others leave of the machine's speed, as the prediction had it."""
    weight = best.others_weight.value if best.others_weight is not None else None
    known = best.use_known.value if best.use_known is not None else None
    return factor(best.others_use, 1.0 if weight is None else weight, 1.0 if known is None else known)


def _speed(measure: Measure, best: Candidate) -> str:
    """A rate is kept as of a machine without other users; what is left of it now is what the prediction counts on."""
    if measure.value is None or best.others_use == 0.0:
        return f"{_number(measure.value)} tokens/s"
    return f"{_number(measure.value * _share(best))} tokens/s now, {_number(measure.value)} without other users"


def _evidence_lines(best: Candidate) -> list[str]:
    lines = [
        f"Decode {_speed(best.decode, best)} ({provenance(best.decode)}).",
        f"Prefill {_speed(best.prefill, best)} ({provenance(best.prefill)}).",
        f"Quality {100 * (best.quality.value or 0.0):.0f} of 100 ({provenance(best.quality)}).",
    ]
    if best.resident is not True:
        state = "not loaded" if best.resident is False else "perhaps not loaded (unknown)"
        lines.append(
            f"The model is {state}; loading takes {seconds(best.load.value or 0.0)} ({provenance(best.load)})."
        )
    if best.output_tokens is not None and best.output_tokens.value is not None:
        length = f"{best.output_tokens.value:.0f} tokens are expected ({provenance(best.output_tokens)})"
        prompt = "" if best.prompt_tokens is None else f", after a prompt of about {best.prompt_tokens}"
        lines.append(f"{length}{_asked_for(best)}{prompt}.")
    if best.decode.level in ("model", "prior", "worker"):
        lines.append("This model was never measured on this machine: its speed is a guess, until this answer is in.")
    if best.others_use:
        lines.append(f"Somebody else uses {100 * best.others_use:.0f} % of the machine, which slows it down.")
    if best.uncertainty is not None:
        spread = 2.718281828**best.uncertainty
        lines.append(f"The speed is sure to a factor of {spread:.1f}; that is shown here and changes no cost.")
    return lines


def _rival_line(rival: Candidate, best: Candidate, names: Names) -> str:
    mine, its = parts_of(best), parts_of(rival)
    differences = sorted(
        ((getattr(its, f) - getattr(mine, f), f) for f in Parts.__struct_fields__), key=lambda d: (-abs(d[0]), d[1])
    )
    told = [_difference(field, by) for by, field in differences if abs(by) >= 0.005]
    total, by = rival.predicted.total_s or 0.0, rival.cost_s - best.cost_s
    what = ", ".join(told) or "no part differs"
    told_total = f"{pair(rival, names)}: {seconds(total)} predicted"
    if best.votes:
        told_total += f", {sum(rival.votes.values()):.2f} votes"
    if abs(by) < 0.005:
        return f"{told_total}, the same cost ({what})."
    stale = " but its load is unknown, and known ones come first" if by < 0 and not rival.fresh else ""
    return f"{told_total}, costs {seconds(abs(by))} {'more' if by > 0 else 'less'} ({what}){stale}."


def _difference(field: str, by: float) -> str:
    if field == "quality_s":
        return f"{'lower' if by > 0 else 'higher'} quality {by:+.2f} s"
    return f"{PART_NAMES[field]} {by:+.2f} s"


def _unknown_lines(routed: TaskRouted, names: Names) -> list[str]:
    """What was not known of each machine; each counts as its worst case."""
    reasons = {item.worker: item.others_reason for item in routed.inputs}
    lines: dict[str, str] = {}
    for candidate in routed.candidates[: _TOLD + 1]:
        missing = []
        if not candidate.fresh:
            missing.append("its load is older than 15 s or was never heard")
        if candidate.predicted.wait_s is None:
            missing.append("the wait for a free slot")
        if candidate.others_use is None:
            reason = reasons.get(candidate.worker)
            missing.append(f"others' use of it{f' ({reason})' if reason else ''}")
        if candidate.resident is None:
            missing.append("which models are loaded")
        if missing:
            name = names.get(candidate.worker, candidate.worker)
            lines.setdefault(
                candidate.worker, f"Unknown of {name}: {', '.join(missing)}. Each counts as its worst case."
            )
    return list(lines.values())


def _removal_lines(removed: Iterable[Removal], names: Names) -> list[str]:
    everyone = list(removed)
    lines = [f"Left out: {pair(removal, names)}, {named(removal.reason, names)}." for removal in everyone[:_TOLD]]
    if len(everyone) > _TOLD:
        lines.append(f"Left out: {len(everyone) - _TOLD} more.")
    return lines


def _number(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _age(age_s: float) -> str:
    for unit, length in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if age_s >= 2 * length:
            return f"{age_s / length:.0f} {unit}"
    return f"{age_s:.0f} s"
