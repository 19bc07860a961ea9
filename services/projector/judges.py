"""Every judge's record, as the log up to now adds up to it.

Answers ``rpc.projector.judges``. The rows are all there is to it: ``schemas.bias`` makes the same of them anywhere. With them go
the pairs that were judged, so that whoever picks the next one knows who has met whom on what.
"""

from __future__ import annotations

from typing import Any

import msgspec

from schemas.bias import Judge, Judges
from schemas.judgements import Judgement
from services.projector.store import Store

ROWS = """
WITH written AS (SELECT DISTINCT unnest(tasks) AS task FROM judgements WHERE kind = 'pair')
SELECT kind, pair, judge, judge_digest, model, peer, domain, value, weight, picks, chars, kin, tasks, client
FROM judgements WHERE kind <> 'human' OR tasks[1] IN (SELECT task FROM written) ORDER BY seq"""
"""People's words count here only where a judge was asked about the same answers."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The known pairs that a judge has given its word on."""

    judge: str
    digest: str | None
    known: tuple[str, ...]


class JudgesAnswer(msgspec.Struct, kw_only=True):
    position: int
    judges: tuple[Judge, ...]
    seen: tuple[Seen, ...]


def judges(store: Store) -> JudgesAnswer:
    folded = Judges(msgspec.convert(_without_nulls(row), Judgement) for row in store.ask(ROWS))
    records = folded.records()
    seen = (Seen(judge=r.model, digest=r.digest, known=tuple(sorted(folded.known(r.model, r.digest)))) for r in records)
    return JudgesAnswer(position=store.position, judges=records, seen=tuple(seen))


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}
