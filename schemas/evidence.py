"""Which of a cell's samples count, and how much?

Answers "what is the present state of this model on this machine, and what is only its past?". A model's change of digest or
quantisation, or a machine's change of speed, begins a new state; what was before stays as its prior, worth three samples at
most, and half a one where it was refuted. Pure and in integers, like all of the fold; ``services.projector.evidence_sql`` is the
same in SQL. Never the present time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec

from schemas.samples import UNIT, Sample
from schemas.weights import weight

FREE_LEAST_U = 250_000
"""Below a quarter of the machine, an observed rate says more about the other user than about the machine."""

DRIFT_BEFORE = 20
DRIFT_BEFORE_LEAST = 5
DRIFT_RUN = 3
DRIFT_TENTHS = 18
DRIFT_TOKENS_LEAST = 8
"""A machine has changed when 3 rates in a row are all above 1.8 times, or all below a 1.8th of, the median of the up to 20
before them, at least 5 (ROUTING.md, B3.2). Answers of a few tokens and attempts that shared the machine prove nothing."""

PRIOR_HALVES, DRIFT_PRIOR_HALVES = 6, 1
"""How many halves of a sample of the present state all earlier ones of a kind are worth together, at the restart (ROUTING.md,
B3.2). Speeds that were refuted count least: with three samples' worth, a machine throttled 4x kept its rank for up to 10 runs,
and was denied it for 20 once let go, for slow samples take most of the time; with half a one it is 3 to 4, and 7
(``simulation.evidence.throttle``)."""

PERSONAL = frozenset({"thumb", "signal"})
"""Whoever says it again about the same task has changed his mind, or was heard twice: only the latest word counts."""
SET = frozenset({"check", "judge"})
"""What a suite asks the same file again gets the same answer: only the latest grade, or the judge's latest verdict, counts."""

Why = Literal["digest", "quantisation", "drift"]
Weighed = tuple[Sample, int, bool]
"""A sample, its weight, and whether it is of the present state."""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A cell's samples divided: ``now`` those of its present state, ``before`` the earlier ones, both in stream order.

    ``why`` says what divided them, None where nothing did. Failures and verdicts without weight from before count no more."""

    digest: str | None
    quantisation: str | None
    why: Why | None
    now: tuple[Sample, ...]
    before: tuple[Sample, ...]


class Restart(msgspec.Struct, frozen=True, kw_only=True):
    """Why and since which sample a cell counts anew, how many judgements and executions there were before, and the decode rate
    of the last 20 of them, in thousandths of tokens/s."""

    why: Why
    seq: int
    at_us: int
    n: int
    rate: int | None = None


def divide(ordered: Sequence[Sample]) -> State:
    """The state that ``ordered``, all samples of one cell in stream order, leave it in."""
    counted = _latest_words(ordered)
    digest, digest_until = _identity(counted, lambda s: s.digest)
    quantisation, quantisation_until = _identity(counted, lambda s: s.quantisation)
    until = max(digest_until, quantisation_until)

    def present(s: Sample) -> bool:
        same_file = digest is None or s.digest in (None, digest)
        return s.seq > until and same_file and (quantisation is None or s.quantisation in (None, quantisation))

    drifted = _drifted([s for s in counted if present(s)])
    why: Why | None = None
    if drifted:
        why = "drift"
    elif until:
        why = "digest" if digest_until == until else "quantisation"
    now, before = [], []
    for s in counted:
        if present(s) and (s.kind != "speed" or s.seq >= drifted):
            now.append(s)
        elif lane(s) in ("speed", "quality"):
            before.append(s)
    return State(digest=digest, quantisation=quantisation, why=why, now=tuple(now), before=tuple(before))


def restart_of(state: State) -> Restart | None:
    """What to show of it, once there is something of the present state."""
    kinds = ("speed",) if state.why == "drift" else ("speed", "quality")
    first = next((s for s in state.now if lane(s) in kinds), None)
    if state.why is None or first is None:
        return None
    ran = [s for s in state.before if s.kind == "speed"][-DRIFT_BEFORE:]
    decoded = [(s.decode_tok, s.decode_us) for s in ran if s.decode_tok is not None and s.decode_us]
    tokens, us = sum(tok for tok, _ in decoded), sum(us for _, us in decoded)
    rate = tokens * 1000 * UNIT // us if us > 0 else None
    return Restart(why=state.why, seq=first.seq, at_us=first.at_us, n=len(state.before), rate=rate)


def lane(sample: Sample) -> str:
    """Its kind; a judgement without weight, such as a malformed verdict, is ``void``: it is counted and ages nothing."""
    void = sample.kind == "quality" and (sample.quality_u is None or not sample.quality_w_u)
    return "void" if void else sample.kind


def weighed(state: State, kind: str) -> list[Weighed]:
    """The samples of one kind, oldest first; ages count from the kind's own latest time.

    A pair ages with the younger pairs against the same peer: both of its sides forget it at the same pace, however often the
    other models meet. What was before the restart weighs so many halves of a sample together then, and less and less afterwards.
    """
    before, now = ([s for s in some if lane(s) == kind] for some in (state.before, state.now))
    latest = max((s.at_us for s in (*before, *now)), default=0)
    younger: Counter[str | None] = Counter()
    found: list[Weighed] = []
    for sample, is_now in (*((s, True) for s in reversed(now)), *((s, False) for s in reversed(before))):
        found.append((sample, weight(younger[sample.peer], latest - sample.at_us), is_now))
        younger[sample.peer] += 1
    total = sum(w for _, w, is_now in found if not is_now)
    if total:
        halves = DRIFT_PRIOR_HALVES if kind == "speed" and state.why == "drift" else PRIOR_HALVES
        most = halves * weight(len(now), latest - max(s.at_us for s in before)) // 2
        found = [(s, w if is_now else w * min(total, most) // total, is_now) for s, w, is_now in found]
    return found[::-1]


def free_us(us: int, others_u: int | None) -> int:
    """The time it would have taken alone. Unknown use corrects nothing: silence must not make a machine look faster."""
    return us * max(UNIT - (others_u or 0), FREE_LEAST_U) // UNIT


def _latest_words(ordered: Sequence[Sample]) -> list[Sample]:
    """Without the words that a later one about the same replaced."""
    words = [(s, _word(s)) for s in ordered]
    latest = {word: s.seq for s, word in words if word is not None}
    return [s for s, word in words if word is None or latest[word] == s.seq]


def _word(s: Sample) -> tuple[str | None, ...] | None:
    """What a later sample with the same one replaces; None counts each time. What cannot be read replaces no verdict."""
    if s.source in PERSONAL and s.task is not None:
        return s.source, s.task, s.judge, s.peer
    if s.source in SET and s.topic is not None and lane(s) == "quality":
        return s.source, s.topic, s.judge if s.source == "judge" else None, s.peer, s.digest
    return None


def _identity(ordered: Iterable[Sample], of: Callable[[Sample], str | None]) -> tuple[str | None, int]:
    """What the model is now by one attribute, and the last sequence at which it was something else.

    What ran decides; a judgement that comes late for what was before resets nothing. Only a cell that was never run takes its
    judgements' word."""
    known = [s for s in ordered if of(s) is not None]
    deciding = [s for s in known if s.kind == "speed"] or [s for s in known if lane(s) == "quality"]
    if not deciding:
        return None, 0
    now = of(deciding[-1])
    return now, max((s.seq for s in deciding if of(s) != now), default=0)


def _drifted(ordered: Sequence[Sample]) -> int:
    """The sequence from which the machine's speed is another one; 0 where it always was the present one.

    New rates are told from old ones until most of the 20 before are new; the first of those told in a row is where it began.
    """
    rates = [
        (s.seq, s.decode_tok * 1000 * UNIT // free_us(s.decode_us, s.others_u))
        for s in ordered
        if s.kind == "speed"
        and s.decode_tok is not None
        and s.decode_us is not None
        and s.decode_us > 3
        and s.decode_tok >= DRIFT_TOKENS_LEAST
        and s.concurrency in (None, 1)
    ]
    began = 0
    for end in range(len(rates), DRIFT_BEFORE_LEAST + DRIFT_RUN - 1, -1):
        run = rates[end - DRIFT_RUN : end]
        before = sorted(rate for _, rate in rates[max(0, end - DRIFT_RUN - DRIFT_BEFORE) : end - DRIFT_RUN])
        median = before[(len(before) - 1) // 2]
        slowest, fastest = min(rate for _, rate in run), max(rate for _, rate in run)
        if 10 * slowest > DRIFT_TENTHS * median or DRIFT_TENTHS * fastest < 10 * median:
            began = run[0][0]
        elif began:
            break
    return began
