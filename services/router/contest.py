"""What a comparison is made of: who could answer, who could not, who judges. Values only; ``compare`` has the rules."""

from __future__ import annotations

import msgspec

from schemas.bias import Judge
from schemas.events import Candidate, Removal


class Eligible(msgspec.Struct, frozen=True, kw_only=True):
    """``candidates`` are the pairs that could answer now, the least cost first; ``removed`` the others that were meant."""

    candidates: tuple[Candidate, ...]
    removed: tuple[Removal, ...]


class Referee(msgspec.Struct, frozen=True, kw_only=True):
    """Who judges two answers, with its record where it has one."""

    model: str
    digest: str | None = None
    record: Judge | None = None
