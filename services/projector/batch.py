"""Events to rows: what one event adds to each table.

Answers "which rows is this event?". Pure: every row is a function of the event, its sequence and its time of storage, so a
replay makes the same rows. All tables are append-only; whatever must be one row per something is a view or a recomputation
(``views``, ``cells_sql``). An event that cannot be read or used becomes a row of ``dead``; nothing is dropped, nothing stops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from schemas import events
from schemas.codec import UnknownEvent, decode
from schemas.errors import InvalidEvent
from schemas.exchange import TIME_HEADER, origin
from schemas.samples import Sample, sample_of
from services.projector.details import candidates_of, judgement_rows, worker_row
from services.projector.rows import CandidateRow, DeadRow, FactRow, JudgementRow, KeyRow, SampleRow, WorkerRow
from services.runtime.stored import StoredMessage

DEAD_DATA_CHARS = 4_096
"""Enough to see what an unreadable event was; the whole of it stays in EVENTS."""


class Keys:
    """Numbers for attribute combinations and for cells; the same log gives the same numbers."""

    def __init__(self, rows: Iterable[KeyRow] = ()) -> None:
        self._cids: dict[tuple[object, ...], tuple[int, int]] = {}
        self._cells: dict[tuple[str, str, str | None], int] = {}
        for row in rows:
            self._cids[tuple(row[2:])] = (row.cid, row.cell)
            self._cells[row.model, row.domain, row.worker] = row.cell

    def number(self, sample: Sample, new: list[KeyRow]) -> tuple[int, int]:
        """(cid, cell) of a sample; a combination not seen before is appended to ``new``."""
        key = (
            sample.model,
            sample.domain,
            sample.worker,
            sample.digest,
            sample.quantisation,
            sample.model_bytes,
            sample.language,
            sample.task_kind,
            sample.client,
            sample.lane,
            sample.context,
            sample.capability,
            sample.backend,
            sample.gpu,
        )
        found = self._cids.get(key)
        if found is None:
            cell = self._cells.setdefault(key[:3], len(self._cells) + 1)
            found = self._cids[key] = (len(self._cids) + 1, cell)
            new.append(KeyRow._make((*found, *key)))
        return found


class Batch:
    """The rows of some messages. ``touched`` are the cells whose statistics they change."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self.keys: list[KeyRow] = []
        self.samples: list[SampleRow] = []
        self.facts: list[FactRow] = []
        self.candidates: list[CandidateRow] = []
        self.workers: list[WorkerRow] = []
        self.judgements: list[JudgementRow] = []
        self.dead: list[DeadRow] = []
        self.touched: set[int] = set()

    def add(self, message: StoredMessage) -> None:
        seq, at_us, headers = message.seq, message.at_us, message.headers
        try:
            if headers is not None and TIME_HEADER in headers:
                at_us = origin(seq, at_us, headers)[1]
            event = decode(message.data)
            if isinstance(event, UnknownEvent):
                self.park(message, f"version {event.v} is not known here", event.type, event.v)
                return
            sample = sample_of(event, seq, at_us)
        except InvalidEvent as error:
            self.park(message, str(error))
            return
        if sample is not None:
            self.add_sample(sample)
        fact_of = FACT_OF.get(type(event))
        if fact_of is not None:
            self.facts.append(fact_of(event, seq, at_us))
        if isinstance(event, events.TaskRouted | events.TaskReleased):
            self.candidates.extend(candidates_of(event, seq, at_us))
        elif isinstance(event, events.WorkerReported | events.WorkerLeft):
            self.workers.append(worker_row(event, seq, at_us))
        elif isinstance(event, events.QualityJudged | events.BenchCompleted):
            self.judgements.extend(judgement_rows(event, seq, at_us))

    def park(self, message: StoredMessage, reason: str, type_: str | None = None, v: int | None = None) -> None:
        data = message.data[: 4 * DEAD_DATA_CHARS].decode(errors="replace")[:DEAD_DATA_CHARS].replace("\0", "�")
        self.dead.append(
            DeadRow(
                seq=message.seq,
                at_us=message.at_us,
                subject=message.subject,
                type=type_,
                v=v,
                reason=reason.replace("\0", "�"),
                data=data,
            )
        )

    def add_sample(self, s: Sample) -> None:
        cid, cell = self._keys.number(s, self.keys)
        self.touched.add(cell)
        self.samples.append(
            SampleRow(
                s.seq,
                s.at_us,
                cid,
                s.kind,
                s.task,
                s.attempt,
                s.ok,
                s.outcome,
                s.finish_reason,
                s.resident,
                s.concurrency,
                s.others_u,
                s.queue_us,
                s.load_us,
                s.prefill_tok,
                s.prefill_us,
                s.decode_tok,
                s.decode_us,
                s.output_tok,
                s.prompt_tok,
                s.cached_tok,
                s.thinking_tok,
                s.prompt_chars,
                s.first_token_us,
                s.total_us,
                s.quality_u,
                s.quality_w_u,
                s.source,
                s.judge,
                s.peer,
                s.topic,
            )
        )


# Rows that are made by the million are made by position, in the order of their fields: by name costs ten times as much.


def _submitted(event: events.TaskSubmitted, seq: int, at_us: int) -> FactRow:
    wants = event.wants
    return FactRow(
        seq,
        at_us,
        event.task,
        "task.submitted",
        None,
        wants.model,
        wants.worker,
        None,
        None,
        None,
        None,
        None,
        event.client,
        event.session,
        event.kind,
        event.urgency,
        event.domain.label,
        event.language,
        wants.route,
        event.sizes.prompt_tokens,
        event.parent,
        event.message,
    )


def _routed(event: events.TaskRouted, seq: int, at_us: int) -> FactRow:
    choice = event.choice
    if choice is None:
        return FactRow(seq, at_us, event.task, "task.routed")
    return FactRow(seq, at_us, event.task, "task.routed", None, choice.model, choice.worker, choice.reason or None)


def _released(event: events.TaskReleased, seq: int, at_us: int) -> FactRow:
    return FactRow(
        seq,
        at_us,
        event.task,
        "task.released",
        event.attempt,
        event.model,
        event.expected_worker,
        event.reason,
        None,
        event.lane,
        event.waited_s,
        event.predicted.total_s,
    )


def _started(event: events.TaskStarted, seq: int, at_us: int) -> FactRow:
    return FactRow(seq, at_us, event.task, "task.started", event.attempt, event.model, event.worker)


def _attempt_failed(event: events.AttemptFailed, seq: int, at_us: int) -> FactRow:
    reason = event.detail or None
    return FactRow(
        seq, at_us, event.task, "attempt.failed", event.attempt, event.model, event.worker, reason, event.failure
    )


def _failed(event: events.TaskFailed, seq: int, at_us: int) -> FactRow:
    reason = event.detail or None
    return FactRow(seq, at_us, event.task, "task.failed", event.attempts, None, None, reason, event.failure)


def _dead(event: events.TaskDead, seq: int, at_us: int) -> FactRow:
    return FactRow(seq, at_us, event.task, "task.dead", event.attempts, None, None, event.detail or None)


def _cancelled(event: events.TaskCancelled, seq: int, at_us: int) -> FactRow:
    return FactRow(seq, at_us, event.task, "task.cancelled", None, None, None, event.reason or None)


FACT_OF: dict[type[events.Event], Callable[[Any, int, int], FactRow]] = {
    events.TaskSubmitted: _submitted,
    events.TaskRouted: _routed,
    events.TaskReleased: _released,
    events.TaskStarted: _started,
    events.AttemptFailed: _attempt_failed,
    events.TaskFailed: _failed,
    events.TaskDead: _dead,
    events.TaskCancelled: _cancelled,
}
