"""Who judges a pair?

Answers "which model, where, and if nobody can, why not?". Never a candidate itself, never one that failed the known pairs, a
relative only where nobody else is left: then its word counts little, and that is recorded. Pure; who is free was found out by
whoever made the seats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from schemas.bias import Judge, JudgeKey
from schemas.families import kin


class Seat(msgspec.Struct, frozen=True, kw_only=True):
    """A model on a machine that may be given bench work now. ``quality`` in [0, 1] and ``decode_tps`` are what is known."""

    model: str
    worker: str
    digest: str | None = None
    quantisation: str | None = None
    resident: bool | None = None
    quality: float | None = None
    decode_tps: float | None = None


class Chair(msgspec.Struct, frozen=True, kw_only=True):
    """The judge chosen, with its record where it has one; ``kin`` to a candidate or not."""

    seat: Seat
    judge: Judge | None
    kin: bool
    why: str

    @property
    def tested(self) -> bool:
        return self.judge is not None and self.judge.standing == "sound"


class NoJudge(msgspec.Struct, frozen=True):
    """Nobody can judge the pair, and why."""

    why: str


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """The fleet as a debt finds it: its seats, and every judge's record by (model, digest)."""

    seats: tuple[Seat, ...] = ()
    judges: Mapping[JudgeKey, Judge] = {}

    def seats_of(self, model: str) -> tuple[Seat, ...]:
        """Where it can be asked, best first: what is resident, then what is fast."""
        return tuple(sorted((seat for seat in self.seats if seat.model == model), key=_readiness))

    def record(self, seat: Seat) -> Judge | None:
        return self.judges.get((seat.model, seat.digest))

    def choose(self, own: Seat, peer: Seat) -> Chair | NoJudge:
        """Strangers before relatives, tested before untested, resident before others, then the best."""
        if not self.seats:
            return NoJudge("no machine may be given unasked work now")
        others = [seat for seat in self.seats if not _is_same(seat, own) and not _is_same(seat, peer)]
        if not others:
            return NoJudge(f"the fleet holds no third model that could judge between {own.model} and {peer.model}")
        able = [seat for seat in others if (record := self.record(seat)) is None or record.standing != "unsound"]
        if not able:
            return NoJudge(f"no other model can judge: {_failures(self.judges, others)}")
        seat = min(able, key=lambda seat: (_related(seat, own, peer), *self._rank(seat)))
        record, related = self.record(seat), _related(seat, own, peer)
        words = "the best that is no relative of either" if not related else "a relative: nobody else can judge"
        return Chair(seat=seat, judge=record, kin=related, why=words)

    def _rank(self, seat: Seat) -> tuple[object, ...]:
        record = self.record(seat)
        tested = record is not None and record.standing == "sound"
        return (
            not tested,
            bool(record is not None and "position" in record.flags),
            -(seat.quality or 0.0),
            *_readiness(seat),
        )


def _readiness(seat: Seat) -> tuple[bool, float, str, str]:
    return seat.resident is not True, -(seat.decode_tps or 0.0), seat.model, seat.worker


def _is_same(seat: Seat, other: Seat) -> bool:
    """By name, or by what lies under another name."""
    return seat.model == other.model or (seat.digest is not None and seat.digest == other.digest)


def _related(seat: Seat, own: Seat, peer: Seat) -> bool:
    return kin(seat.model, own.model) or kin(seat.model, peer.model)


def _failures(judges: Mapping[JudgeKey, Judge], seats: Iterable[Seat]) -> str:
    found = {seat.model: judges[seat.model, seat.digest].why for seat in seats if (seat.model, seat.digest) in judges}
    return "; ".join(f"{model}: {why}" for model, why in sorted(found.items()))
