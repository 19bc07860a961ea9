"""Events to rows that are not samples or facts: the pairs of a decision, a worker's report, a word about answers.

Answers "which rows of detail is this event?". Pure, as ``batch``, which it is a part of.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from schemas import events
from schemas.events import type_of
from schemas.judgements import judgement_of
from services.projector.rows import CandidateRow, JudgementRow, WorkerRow


def judgement_rows(event: events.QualityJudged | events.BenchCompleted, seq: int, at_us: int) -> Iterable[JudgementRow]:
    """One or none."""
    if (judgement := judgement_of(event)) is not None:
        yield JudgementRow(seq=seq, at_us=at_us, **structs.asdict(judgement))


def candidates_of(event: events.TaskRouted | events.TaskReleased, seq: int, at_us: int) -> Iterable[CandidateRow]:
    task, decision = event.task, type_of(event)
    for rank, c in enumerate(event.candidates, start=1):
        predicted, decode_, prefill, quality = c.predicted, c.decode, c.prefill, c.quality
        yield CandidateRow(
            seq,
            at_us,
            task,
            decision,
            c.model,
            c.worker,
            None,
            rank,
            c.cost_s,
            predicted.wait_s,
            predicted.load_s,
            predicted.prefill_s,
            predicted.decode_s,
            predicted.sharing_s,
            predicted.total_s,
            decode_.value,
            decode_.level,
            decode_.n,
            decode_.age_s,
            prefill.value,
            prefill.level,
            prefill.n,
            quality.value,
            quality.level,
            quality.n,
            c.uncertainty,
            c.others_use,
            None if c.others_weight is None else c.others_weight.value,
            None if c.slowdown is None else c.slowdown.value,
            c.others_s,
            c.resident,
            c.fresh,
        )
    for gone in event.removed if isinstance(event, events.TaskRouted) else ():
        yield CandidateRow(seq, at_us, task, decision, gone.model, gone.worker, gone.reason)


def worker_row(event: events.WorkerReported | events.WorkerLeft, seq: int, at_us: int) -> WorkerRow:
    if isinstance(event, events.WorkerLeft):
        return WorkerRow(
            seq=seq, at_us=at_us, worker=event.worker, boot=event.boot, left=True, reason=event.reason or None
        )
    return WorkerRow(
        seq=seq,
        at_us=at_us,
        worker=event.worker,
        boot=event.boot,
        left=False,
        name=event.name,
        host=event.host,
        backend=event.backend,
        backend_version=event.backend_version,
        gpu=event.gpu,
        local=event.local,
        slots=event.slots,
        supports=event.supports,
        models=event.models,
    )
