"""One word about answers as a row: a judged pair, a pair whose truth is known, or what a person thought.

Answers "what does this event say about a judge?". A row carries everything that a judge's record is computed from, so any
process that has the rows comes to the same record (``schemas.bias``). It holds lengths and choices, never a text.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from schemas.events import AnyEvent, BenchCompleted, Pick, QualityJudged

JudgementKind = Literal["pair", "known", "human"]

KNOWN = "known-pairs"
"""The suite of pairs of which one answer is known to be right: what tells a judge from somebody with a habit."""
FIRST_SIDE = ".a"
"""A judged pair is two facts that mirror each other; this one stands for both."""


class Judgement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``picks`` and ``chars`` are the own side's first: ``model``'s of a pair, the right answer's of a known one.

    ``value`` is a person's, or a verdict's where both orders could be read. ``tasks`` are those that wrote the answers.
    """

    kind: JudgementKind
    pair: str | None = None
    judge: str | None = None
    judge_digest: str | None = None
    model: str | None = None
    peer: str | None = None
    domain: str | None = None
    value: float | None = None
    weight: float = 0.0
    picks: tuple[Pick, ...] = ()
    chars: tuple[int, ...] = ()
    kin: bool = False
    tasks: tuple[str, ...] = ()
    client: str | None = None


def judgement_of(event: AnyEvent) -> Judgement | None:
    """The row that ``event`` is, or None. A judge's verdict on one answer alone says nothing about its habits: None."""
    if isinstance(event, BenchCompleted):
        return _known(event) if event.suite == KNOWN and len(event.picks) == len(event.chars) == 2 else None
    if not isinstance(event, QualityJudged):
        return None
    if event.source == "judge":
        return _pair(event) if event.id.endswith(FIRST_SIDE) and len(event.picks) == 2 and event.judge else None
    return _human(event) if event.source == "thumb" and event.tasks else None


def _known(event: BenchCompleted) -> Judgement:
    return Judgement(
        kind="known",
        pair=event.prompt,
        judge=event.model,
        judge_digest=event.digest,
        domain=event.domain,
        value=event.grade,
        picks=event.picks,
        chars=event.chars,
    )


def _pair(event: QualityJudged) -> Judgement:
    read = not {"malformed", "missing"} & set(event.picks)
    return Judgement(
        kind="pair",
        pair=event.pair,
        judge=event.judge,
        judge_digest=event.judge_digest,
        model=event.model,
        peer=event.peer,
        domain=event.domain,
        value=event.value if read else None,
        weight=event.weight,
        picks=event.picks,
        chars=event.chars,
        kin=event.kin,
        tasks=event.tasks,
    )


def _human(event: QualityJudged) -> Judgement:
    return Judgement(
        kind="human",
        pair=event.pair,
        model=event.model,
        peer=event.peer,
        domain=event.domain,
        value=event.value,
        weight=event.weight,
        tasks=event.tasks,
        client=event.client,
    )
