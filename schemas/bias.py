"""Each judge's record: how often it is right where the truth is known, and what else than the answers explains its choices.

Answers "how much does this judge's word count, and why?". A judge whose word was never tested counts nothing; one that fails
the known pairs never will, until it is another model (its digest). Position, length and family are measured on every pair, told
with their intervals, and taken off where they are proven. Pure: the same rows give the same record, in any process.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from schemas.families import kin
from schemas.judgements import Judgement

Standing = Literal["untried", "sound", "unsound"]
Flag = Literal["position", "length", "self"]

KNOWN_EACH = 8
KNOWN_MISSES = 1
"""Of 8 pairs whose right answer is the shorter, and of 8 whose right answer is the longer, a sound judge misses at most one each.
A coin that keeps to its word in both orders gets there once in 800, whoever goes by length or by order never."""
KNOWN_LEAST = 6
"""Asked of every judge, also of one that has failed by then: fewer do not prove which habit it has."""

KIN_WEIGHT = 0.25
"""A judge's word about its own family: FastChat's GPT-4 preferred itself in 87 % of its pairs (cases/reports.md, 57)."""
KIN_AGAINST_LEAST = 2
"""It counts only once the judge has decided against its own family this often: before, nothing tells it from "always us"."""

PROVEN_LEAST = 6
"""Below six even a coin looks biased more than once in 32."""
LENGTH_RATIO = 1.1
"""Answers whose lengths differ by less prove nothing about length."""
Z = 1.96


class Share(msgspec.Struct, frozen=True):
    """``k`` of ``n``, with Wilson's 95 % interval; the share itself is None where n is 0."""

    k: int = 0
    n: int = 0
    share: float | None = None
    low: float = 0.0
    high: float = 1.0


def share(k: int, n: int) -> Share:
    if n == 0:
        return Share()
    centre, spread = (k + Z * Z / 2) / (n + Z * Z), Z * math.sqrt(k * (n - k) / n + Z * Z / 4) / (n + Z * Z)
    return Share(k, n, k / n, max(0.0, centre - spread), min(1.0, centre + spread))


class Judge(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's record. ``shorter`` and ``longer`` are how often it was right where the right answer was that one.

    ``malformed`` and ``missing`` are of the answers that it was asked for; ``turned`` pairs whose verdict changed with the order,
    ``first`` those among them that went to whichever stood first; ``lengthy`` decided pairs that went to the longer answer,
    ``own`` to its own family; ``human`` those that a person decided alike.
    """

    model: str
    digest: str | None = None
    standing: Standing = "untried"
    pairs: int = 0
    counted: int = 0
    shorter: Share = Share()
    longer: Share = Share()
    malformed: Share = Share()
    missing: Share = Share()
    turned: Share = Share()
    first: Share = Share()
    lengthy: Share = Share()
    own: Share = Share()
    human: Share = Share()
    flags: tuple[Flag, ...] = ()
    why: str = ""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The known pairs that a judge has given its word on."""

    judge: str
    digest: str | None = None
    known: tuple[str, ...] = ()


class Records(msgspec.Struct, frozen=True, kw_only=True):
    """What ``rpc.projector.judges`` answers: every judge's record, as the log up to ``position`` adds up to it."""

    position: int = 0
    judges: tuple[Judge, ...] = ()
    seen: tuple[Seen, ...] = ()


JudgeKey = tuple[str, str | None]


class Judges:
    """Folds rows, one by one, in the log's order; ``records`` says what they add up to."""

    def __init__(self, rows: Iterable[Judgement] = ()) -> None:
        self._pairs: dict[JudgeKey, dict[str | None, Judgement]] = {}
        self._known: dict[JudgeKey, dict[str | None, Judgement]] = {}
        self._thumbs: dict[str, dict[str | None, float]] = {}
        self._choices: dict[tuple[str, ...], float] = {}
        for row in rows:
            self.add(row)

    def add(self, row: Judgement) -> None:
        """A pair that comes twice counts once; of a known pair, and of a person's thumb, the latest word counts."""
        if row.kind == "human":
            self._person(row)
        elif row.judge is not None:
            kept = self._pairs if row.kind == "pair" else self._known
            kept.setdefault((row.judge, row.judge_digest), {})[row.pair] = row

    def records(self) -> tuple[Judge, ...]:
        """By name; a digest that is no longer anybody's stays on record."""
        keys = sorted({*self._pairs, *self._known}, key=lambda key: (key[0], key[1] or ""))
        return tuple(self._record(key) for key in keys)

    def known(self, model: str, digest: str | None) -> frozenset[str]:
        """The known pairs that it has given its word on. One that got no answer is to be asked again."""
        rows = self._known.get((model, digest), {})
        return frozenset(name for name, row in rows.items() if name is not None and "missing" not in row.picks)

    def _person(self, row: Judgement) -> None:
        if row.value is None:
            return
        if row.peer is not None and len(row.tasks) == 2:
            one, other = row.tasks
            self._choices[one, other], self._choices[other, one] = row.value, 1.0 - row.value
        else:
            self._thumbs.setdefault(row.tasks[0], {})[row.client] = row.value

    def _record(self, key: JudgeKey) -> Judge:
        pairs, known = list(self._pairs.get(key, {}).values()), list(self._known.get(key, {}).values())
        shorter = _right(row for row in known if row.chars[0] < row.chars[1])
        longer = _right(row for row in known if row.chars[0] > row.chars[1])
        read = [row for row in (*pairs, *known) if not {"malformed", "missing"} & set(row.picks)]
        turned = [row for row in read if row.picks[0] != row.picks[1]]
        by_place = [row for row in turned if "tie" not in row.picks]
        decided = [row for row in pairs if row.value in (0.0, 1.0)]
        told = [
            row for row in (*pairs, *known) if row.value in (0.0, 1.0)
        ]  # known pairs are as often right when shorter
        unlike = [row for row in told if len(row.chars) == 2 and is_unlike(*row.chars)]
        sided = [(row, side) for row in decided if (side := kin_side(key[0], row.model, row.peer)) is not None]
        asked = [seen for row in (*pairs, *known) for seen in row.picks]
        record = Judge(
            model=key[0],
            digest=key[1],
            pairs=len(pairs),
            counted=sum(row.weight > 0 for row in pairs),
            shorter=shorter,
            longer=longer,
            malformed=share(asked.count("malformed"), len(asked)),
            missing=share(asked.count("missing"), len(asked)),
            turned=share(len(turned), len(read)),
            first=share(sum(row.picks[0] == "own" for row in by_place), len(by_place)),
            lengthy=share(sum((row.chars[0] > row.chars[1]) == (row.value == 1.0) for row in unlike), len(unlike)),
            own=share(sum((side == "own") == (row.value == 1.0) for row, side in sided), len(sided)),
            human=self._agreement(decided),
        )
        standing, why = _standing(record)
        return msgspec.structs.replace(record, standing=standing, flags=_flags(record), why=why)

    def _agreement(self, decided: Iterable[Judgement]) -> Share:
        alike = [(row.value == 1.0) == (liked > 0) for row in decided if (liked := self._liked(row.tasks))]
        return share(sum(alike), len(alike))

    def _liked(self, tasks: tuple[str, ...]) -> float:
        """Above 0 where people preferred the first answer, below where the second; 0 where they did not say."""
        if tasks in self._choices:
            return self._choices[tasks] - 0.5
        thumbs = [self._thumbs.get(task) for task in tasks]
        if len(thumbs) != 2 or thumbs[0] is None or thumbs[1] is None:
            return 0.0
        one, other = (sum(said.values()) / len(said) for said in (thumbs[0], thumbs[1]))
        return one - other


def weigh(
    judge: Judge | None, own: tuple[str, int], peer: tuple[str, int], value: float | None
) -> tuple[float, bool, str]:
    """(weight, kin, why) of a verdict on two (model, length of its answer). ``value`` is the own side's, None unread.

    The weight is in [0, 1] and the same whichever side is called own. A judge never counts about itself.
    """
    if judge is None:
        return 0.0, False, "never tested on known pairs"
    related = kin(judge.model, own[0]) or kin(judge.model, peer[0])
    if judge.model in (own[0], peer[0]):
        return 0.0, True, "it would judge itself"
    if judge.standing != "sound":
        return 0.0, related, judge.why
    if value is None:
        return 0.0, related, "no verdict"
    if "position" in judge.flags:
        return 0.0, related, "it goes by the order"
    weight, words = 1.0, []
    longer_won = (own[1] > peer[1]) == (value == 1.0)
    if "length" in judge.flags and value != 0.5 and is_unlike(own[1], peer[1]) and longer_won:
        low = judge.lengthy.low
        weight *= min(1.0, (1.0 - low) / low)  # as many longer wins are taken off as length alone explains
        words.append("it likes longer answers")
    if related:
        weight *= KIN_WEIGHT
        words.append("related")
        if (side := kin_side(judge.model, own[0], peer[0])) is not None:
            if judge.own.n - judge.own.k < KIN_AGAINST_LEAST:
                return 0.0, True, "it has not yet decided against its own family often enough"
            if "self" in judge.flags and (side == "own") == (value == 1.0):
                return 0.0, True, "it favours its own family"
    return weight, related, ", ".join(words)


def kin_side(judge: str, own: str | None, peer: str | None) -> Literal["own", "peer"] | None:
    """Which side alone is of the judge's family; None where both or neither are: then it has nobody to favour."""
    mine, theirs = own is not None and kin(judge, own), peer is not None and kin(judge, peer)
    return None if mine == theirs else "own" if mine else "peer"


def is_unlike(one: int, other: int) -> bool:
    return max(one, other) > LENGTH_RATIO * min(one, other)


def by_key(records: Iterable[Judge]) -> Mapping[JudgeKey, Judge]:
    return {(record.model, record.digest): record for record in records}


def _right(known: Iterable[Judgement]) -> Share:
    answered = [row for row in known if "missing" not in row.picks]
    return share(sum(row.picks == ("own", "own") for row in answered), len(answered))


def _standing(record: Judge) -> tuple[Standing, str]:
    """A pair that it calls a tie, turns with the order or answers unreadably is missed: it could not tell."""
    asked = record.shorter.n + record.longer.n
    if asked >= KNOWN_LEAST:
        for which, found in (("shorter", record.shorter), ("longer", record.longer)):
            if found.n - found.k > KNOWN_MISSES:
                words = f"it found the right answer in {found.k} of {found.n} known pairs where that is the {which}"
                return "unsound", words
    if min(record.shorter.n, record.longer.n) < KNOWN_EACH:
        return "untried", f"it has judged {asked} of {2 * KNOWN_EACH} known pairs so far"
    return "sound", f"it was right in {record.shorter.k + record.longer.k} of {asked} known pairs"


def _flags(record: Judge) -> tuple[Flag, ...]:
    """Each is a share proven above a half: of verdicts that turn with the order, of wins of the longer answer, of its family."""
    flags: list[Flag] = ["position"] if record.turned.n >= PROVEN_LEAST and record.turned.low > 0.5 else []
    flags += ["length"] if record.lengthy.n >= PROVEN_LEAST and record.lengthy.low > 0.5 else []
    flags += ["self"] if record.own.n >= PROVEN_LEAST and record.own.low > 0.5 else []
    return tuple(flags)
