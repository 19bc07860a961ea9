"""What a row of each table looks like.

Answers "what is stored for an event?". Columns and their types are in ``tables``; a test holds the two equal. Rows travel to
DuckDB as JSON under short keys. A field without a value is left out there, and NULL in the table.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from schemas import events
from services.projector.tables import CANDIDATES, DEAD, FACTS, JUDGEMENTS, SAMPLES, WORKERS, short


class SampleRow(msgspec.Struct, frozen=True, omit_defaults=True, rename=short(SAMPLES)):
    """A row of ``samples``; its attributes are in ``cell_key`` under ``cid``."""

    seq: int
    at_us: int
    cid: int
    kind: str
    task: str | None = None
    attempt: int | None = None
    ok: bool | None = None
    outcome: str | None = None
    finish_reason: str | None = None
    resident: bool | None = None
    concurrency: int | None = None
    others_u: int | None = None
    queue_us: int | None = None
    load_us: int | None = None
    prefill_tok: int | None = None
    prefill_us: int | None = None
    decode_tok: int | None = None
    decode_us: int | None = None
    output_tok: int | None = None
    prompt_tok: int | None = None
    cached_tok: int | None = None
    thinking_tok: int | None = None
    prompt_chars: int | None = None
    first_token_us: int | None = None
    total_us: int | None = None
    quality_u: int | None = None
    quality_w_u: int | None = None
    source: str | None = None
    judge: str | None = None
    peer: str | None = None
    topic: str | None = None


class KeyRow(NamedTuple):
    """A row of ``cell_key``: one combination of attributes; ``cell`` numbers its (model, domain, worker)."""

    cid: int
    cell: int
    model: str
    domain: str
    worker: str | None
    digest: str | None
    quantisation: str | None
    model_bytes: int | None
    language: str | None
    task_kind: str | None
    client: str | None
    lane: str | None
    context: int | None
    capability: str | None
    backend: str | None
    gpu: str | None


class FactRow(msgspec.Struct, frozen=True, omit_defaults=True, rename=short(FACTS)):
    """A row of ``task_facts``: one event of a task's life, completions apart (they are rows of ``samples``)."""

    seq: int
    at_us: int
    task: str
    type: str
    attempt: int | None = None
    model: str | None = None
    worker: str | None = None
    reason: str | None = None
    failure: str | None = None
    lane: str | None = None
    waited_s: float | None = None
    predicted_s: float | None = None
    client: str | None = None
    session: str | None = None
    task_kind: str | None = None
    urgency: str | None = None
    domain: str | None = None
    language: str | None = None
    route: str | None = None
    prompt_tokens: int | None = None
    parent: str | None = None
    message: str | None = None


class CandidateRow(msgspec.Struct, frozen=True, omit_defaults=True, rename=short(CANDIDATES)):
    """A row of ``candidates``: one pair of one decision, with the reason where it was removed."""

    seq: int
    at_us: int
    task: str
    decision: str
    model: str
    worker: str | None = None
    removed: str | None = None
    rank: int | None = None
    cost_s: float | None = None
    wait_s: float | None = None
    load_s: float | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    sharing_s: float | None = None
    total_s: float | None = None
    decode_tps: float | None = None
    decode_level: str | None = None
    decode_n: int | None = None
    decode_age_s: float | None = None
    prefill_tps: float | None = None
    prefill_level: str | None = None
    prefill_n: int | None = None
    quality: float | None = None
    quality_level: str | None = None
    quality_n: int | None = None
    uncertainty: float | None = None
    others_use: float | None = None
    others_weight: float | None = None
    slowdown: float | None = None
    others_s: float | None = None
    resident: bool | None = None
    fresh: bool | None = None


class WorkerRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=short(WORKERS)):
    """A row of ``worker_reports``: a report or a leave."""

    seq: int
    at_us: int
    worker: str
    boot: str
    left: bool
    reason: str | None = None
    name: str | None = None
    host: str | None = None
    backend: str | None = None
    backend_version: str | None = None
    gpu: str | None = None
    local: bool | None = None
    slots: int | None = None
    supports: tuple[str, ...] | None = None
    models: tuple[events.ModelInfo, ...] | None = None


class JudgementRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=short(JUDGEMENTS)):
    """A row of ``judgements``: a ``schemas.judgements.Judgement`` with its place in the log."""

    seq: int
    at_us: int
    kind: str
    pair: str | None = None
    judge: str | None = None
    judge_digest: str | None = None
    model: str | None = None
    peer: str | None = None
    domain: str | None = None
    value: float | None = None
    weight: float | None = None
    picks: tuple[str, ...] | None = None
    chars: tuple[int, ...] | None = None
    kin: bool | None = None
    tasks: tuple[str, ...] | None = None
    client: str | None = None


class DeadRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=short(DEAD)):
    """A row of ``dead``: an event that this program cannot read or use, and why."""

    seq: int
    at_us: int
    subject: str
    type: str | None = None
    v: int | None = None
    reason: str
    data: str
