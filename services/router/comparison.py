"""Two decisions side by side: what changed, and which part of it changed the choice.

Answers "who rose, who was pushed down, and by what?". Rank alone never shows that (S6): each pair's cost is compared with its
own former cost, part by part, and the part that moved the two rivals apart the most is named as the one that did it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from schemas.events import Candidate, Choice, TaskRouted
from services.router.decision_words import PART_NAMES, Names, Parts, named, pair, parts_of, seconds

_Key = tuple[str, str]
_FIELDS = Parts.__struct_fields__
_AS_IF = (
    (" went from ", " would go from "),
    ("What did it:", "What would do it:"),
    ("of the cost did it", "of the cost would do it"),
    ("The choice is the same", "The choice would be the same"),
    ("Chosen before:", "Chosen now:"),
    ("; now: ", "; then: "),
    (" costs ", " would cost "),
    (" is out: ", " would be out: "),
    (" is in, at", " would be in, at"),
    ("; before: ", "; now: "),
)
# Below a hundredth of a second a difference is rounding, not news.
_NOTICED_S = 0.01


def compare(before: TaskRouted, after: TaskRouted, names: Names | None = None, *, what_if: bool = False) -> list[str]:
    """Words for the difference between two decisions on the same kind of task; one line where nothing differs. With ``what_if``
    ``after`` was never decided: it is what would be."""
    told = _compared(before, after, names or {})
    return [_as_if(line) for line in told] if what_if else told


def _as_if(line: str) -> str:
    """The same of what would happen."""
    for is_so, would_be in _AS_IF:
        line = line.replace(is_so, would_be, 1)
    return line


def _compared(before: TaskRouted, after: TaskRouted, names: Names) -> list[str]:
    old, new = _by_pair(before), _by_pair(after)
    lines = [_choice_line(before, after, old, new, names)]
    lines += _policy_lines(before, after, names)
    sliders = (before.policy.weights.get("slider"), after.policy.weights.get("slider"))
    if sliders[0] != sliders[1]:
        lines.append(f"The slider went from {_plain(sliders[0])} to {_plain(sliders[1])} seconds a point of quality.")
    moved = [(new[key].cost_s - old[key].cost_s, key) for key in new if key in old]
    for by, key in sorted(moved, key=lambda item: (-abs(item[0]), item[1])):
        lines += _moved_line(old[key], new[key], by, names)
    lines += _came_and_went(before, after, old, new, names)
    return lines


def _choice_line(
    before: TaskRouted,
    after: TaskRouted,
    old: Mapping[_Key, Candidate],
    new: Mapping[_Key, Candidate],
    names: Names,
) -> str:
    was, is_ = before.choice, after.choice
    if was is None or is_ is None:
        return f"Chosen before: {_chosen(was, names)}; now: {_chosen(is_, names)}."
    was_key, is_key = (was.model, was.worker or ""), (is_.model, is_.worker or "")
    if was_key == is_key:
        return f"The choice is the same, {_chosen(is_, names)}."
    line = f"The choice went from {_chosen(was, names)} to {_chosen(is_, names)}."
    if was_key in old and was_key in new and is_key in old and is_key in new:
        if _rule(before) != _rule(after):
            return f"{line} What did it: another policy."
        return f"{line} {_what_did_it(old, new, was_key, is_key, names)}"
    return line


def _rule(routed: TaskRouted) -> tuple[str, str | None]:
    return routed.policy.name, routed.policy.route


def _policy_lines(before: TaskRouted, after: TaskRouted, names: Names) -> list[str]:
    if _rule(before) == _rule(after):
        return []
    (was, _), (is_, _) = _rule(before), _rule(after)
    lines = [f"The policy went from {_policy(before)} to {_policy(after)}."] if was != is_ else []
    lines = lines or [f"The route went from {_policy(before)} to {_policy(after)}."]
    told = [
        f"{_chosen(r.choice, names)} ({named(r.choice.reason, names)})" for r in (before, after) if r.choice is not None
    ]
    return lines + (
        [f"Their words: {'; '.join(told)}."] if any(c.votes for r in (before, after) for c in r.candidates) else []
    )


def _policy(routed: TaskRouted) -> str:
    route = routed.policy.route
    if route is None:
        return routed.policy.name
    return route if routed.policy.name == "policy" else f"{routed.policy.name} of route {route}"


def _what_did_it(
    old: Mapping[_Key, Candidate], new: Mapping[_Key, Candidate], was: _Key, is_: _Key, names: Names
) -> str:
    """The part whose change moved the former choice's cost up against the new one's the most."""
    pushes: list[tuple[float, str, _Key]] = []
    for key, sign in ((was, 1.0), (is_, -1.0)):
        a, b = parts_of(old[key]), parts_of(new[key])
        pushes += [(sign * (getattr(b, f) - getattr(a, f)), f, key) for f in _FIELDS]
    by, field, key = max(pushes)
    if old[key].fresh != new[key].fresh or by < _NOTICED_S:
        return "No part of the cost did it: a load became known or unknown, or equals were drawn by lot."
    causes = _causes(old[key], new[key], field) or f"{PART_NAMES[field]} part"
    rest = sum(max(push, 0.0) for push, *_ in pushes) - by
    alone = "alone" if rest < _NOTICED_S else f"most of all ({seconds(rest)} came from other parts)"
    return f"What did it: {pair(new[key], names)}, {causes}, worth {seconds(by)}, {alone}."


def _moved_line(old: Candidate, new: Candidate, by: float, names: Names) -> list[str]:
    a, b = parts_of(old), parts_of(new)
    told = []
    for field in _FIELDS:
        change = getattr(b, field) - getattr(a, field)
        if abs(change) >= _NOTICED_S:
            causes = _causes(old, new, field)
            told.append(f"{causes or PART_NAMES[field]} ({change:+.2f} s)")
    if old.fresh != new.fresh:
        told.append("its load is known again" if new.fresh else "its load is unknown now, so known ones come first")
    if not told:
        return []
    name = pair(new, names)
    if abs(by) < _NOTICED_S:
        return [f"{name} costs the same: {'; '.join(told)}."]
    return [f"{name} costs {seconds(abs(by))} {'less' if by < 0 else 'more'}: {'; '.join(told)}."]


def _causes(old: Candidate, new: Candidate, field: str) -> str:
    """The inputs behind one part that differ, as ``decode 12 → 40 tok/s``."""
    return ", ".join(_inputs(old, new, field))


def _inputs(old: Candidate, new: Candidate, field: str) -> Iterator[str]:
    match field:
        case "decode_s" | "prefill_s":
            yield from _speed_inputs(old, new, field.removesuffix("_s"))
        case "load_s":
            if old.resident != new.resident:
                yield f"{_residency(old.resident)} → {_residency(new.resident)}"
            if old.load.value != new.load.value and new.resident is not True:
                yield f"load {_figure(old.load.value)} → {_figure(new.load.value)} s"
        case "wait_s":
            a, b = old.predicted.wait_s, new.predicted.wait_s
            yield f"wait {'unknown' if a is None else seconds(a)} → {'unknown' if b is None else seconds(b)}"
        case "quality_s":
            a, b = 100 * (old.quality.value or 0.0), 100 * (new.quality.value or 0.0)
            yield f"quality {a:.0f} → {b:.0f} of 100" if a != b else f"quality {b:.0f} of 100 at another slider"
        case _:
            return


def _speed_inputs(old: Candidate, new: Candidate, rate: str) -> Iterator[str]:
    a, b = getattr(old, rate).value, getattr(new, rate).value
    if a != b:
        yield f"{rate} {_figure(a)} → {_figure(b)} tokens/s"
    if old.others_use != new.others_use:
        yield f"others' use {_share(old.others_use)} → {_share(new.others_use)}"
    lengths = [None if c.output_tokens is None else c.output_tokens.value for c in (old, new)]
    if rate == "decode" and lengths[0] != lengths[1]:
        yield f"expected length {_figure(lengths[0])} → {_figure(lengths[1])} tokens"
    if rate == "prefill" and old.prompt_tokens != new.prompt_tokens:
        yield f"prompt {old.prompt_tokens} → {new.prompt_tokens} tokens"


def _came_and_went(
    before: TaskRouted,
    after: TaskRouted,
    old: Mapping[_Key, Candidate],
    new: Mapping[_Key, Candidate],
    names: Names,
) -> list[str]:
    why_out = {(r.model, r.worker or ""): r.reason for r in after.removed}
    why_was_out = {(r.model, r.worker or ""): r.reason for r in before.removed}
    lines = []
    for key in old.keys() - new.keys():
        reason = named(why_out.get(key, "not among the recorded candidates now"), names)
        lines.append(f"{pair(old[key], names)} is out: {reason}.")
    for key in new.keys() - old.keys():
        reason = named(why_was_out.get(key, "was not among the recorded candidates"), names)
        lines.append(f"{pair(new[key], names)} is in, at a cost of {seconds(new[key].cost_s)}; before: {reason}.")
    return sorted(lines)


def _by_pair(routed: TaskRouted) -> dict[_Key, Candidate]:
    return {(candidate.model, candidate.worker): candidate for candidate in routed.candidates}


def _chosen(choice: Choice | None, names: Names) -> str:
    if choice is None:
        return "nobody"
    return choice.model if choice.worker is None else f"{choice.model} on {names.get(choice.worker, choice.worker)}"


def _plain(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g}"


def _figure(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{100 * value:.0f} %"


def _residency(resident: bool | None) -> str:
    return {True: "loaded", False: "not loaded", None: "perhaps not loaded"}[resident]
