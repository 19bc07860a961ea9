"""Every judge's record, as the log up to now adds up to it.

Answers ``rpc.projector.judges``. The rows are all there is to it: ``schemas.bias`` makes the same of them anywhere. With them
go the known pairs that each has judged, so that none is asked twice.
"""

from __future__ import annotations

from typing import Any

import msgspec

from schemas.bias import Judges, Records, Seen
from schemas.judgements import Judgement
from services.projector.store import Store

ROWS = """
WITH written AS (SELECT DISTINCT unnest(tasks) AS task FROM judgements WHERE kind = 'pair')
SELECT kind, pair, judge, judge_digest, model, peer, domain, value, weight, picks, chars, kin, tasks, client
FROM judgements WHERE kind <> 'human' OR tasks[1] IN (SELECT task FROM written) ORDER BY seq"""
"""People's words count here only where a judge was asked about the same answers."""


def judges(store: Store) -> Records:
    folded = Judges(msgspec.convert(_without_nulls(row), Judgement) for row in store.ask(ROWS))
    records = folded.records()
    seen = (Seen(judge=r.model, digest=r.digest, known=tuple(sorted(folded.known(r.model, r.digest)))) for r in records)
    return Records(position=store.position, judges=records, seen=tuple(seen))


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}
