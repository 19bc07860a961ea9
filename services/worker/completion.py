"""The facts that end an attempt, out of everything that is known about it.

Answers "what must the log say about this run?". A fact carries every attribute that a statistic may ever be keyed by. Pure.
"""

from __future__ import annotations

import msgspec

from schemas.errors import BackendError
from schemas.events import (
    AttemptFailed,
    FailureClass,
    ModelInfo,
    Outcome,
    PayloadRef,
    Phase,
    TaskCompleted,
    TaskStarted,
    Tokens,
)
from schemas.subjects import answer_subject
from schemas.work import Answer, Body, WorkItem, encode_wire
from services.worker.answer import Ran
from services.worker.attempts import failure
from services.worker.backends.port import Identity
from services.worker.outcome import outcome_of
from services.worker.timings import times_of

LOAD_US_MIN = 200_000
"""A warm model still shows up to 0.11 s of load; above this something was really loaded, so its prompt cache was empty."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What was known when the attempt was claimed. ``model`` None: this worker no longer holds it."""

    item: WorkItem
    started: TaskStarted
    model: ModelInfo | None
    identity: Identity
    gpu: str | None = None
    others_use: float | None = None


def request_chars(body: Body) -> int:
    """The characters of the prompt itself, which teach the estimate of its tokens."""
    chars = len(body.prompt or "") + sum(len(text) for text in body.inputs)
    for message in body.messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        chars += sum(len(part.get("text") or "") for part in parts if isinstance(part, dict))
    return chars


def completed(
    context: Context, stamp: TaskStarted, ran: Ran, body: Body, *, is_new_prompt: bool
) -> tuple[TaskCompleted, Answer]:
    """The terminal fact and the answer that is stored before it. ``stamp`` brings a fresh id and time."""
    item, model, finish = context.item, context.model, ran.finish
    assert model is not None  # nothing ran without it
    tokens = _tokens(ran, was_resident=model.resident)
    times = times_of(finish.timings, ran.seen, was_resident=model.resident)
    if tokens.cached is None and not is_new_prompt:
        times = msgspec.structs.replace(times, prefill_s=None)  # for an unknown number of tokens
    outcome = _outcome(item, model, ran, tokens)
    answer = Answer(
        task=item.task,
        attempt=item.attempt,
        model=item.model,
        worker=context.started.worker,
        text=ran.assembled.text,
        thinking=ran.assembled.thinking,
        tool_calls=ran.assembled.tool_calls,
        logprobs=ran.assembled.logprobs,
        vectors=finish.vectors,
        finish_reason=finish.finish_reason,
        stopped_by=finish.stopped_by,
        outcome=outcome,
        tokens=tokens,
    )
    reference = PayloadRef(subject=answer_subject(item.client, item.task, item.attempt), bytes=len(encode_wire(answer)))
    started = context.started
    end = TaskCompleted(
        id=stamp.id, at=stamp.at, by=stamp.by, cause=started.id, task=item.task, attempt=item.attempt,
        worker=started.worker, boot=started.boot, model=item.model, backend_model=finish.model or model.backend_name,
        digest=model.digest, quantisation=model.quantisation, model_bytes=model.bytes,
        backend=context.identity.kind, backend_version=context.identity.version, domain=item.domain,
        language=item.language, kind=item.kind, urgency=item.urgency, capability=item.capability, lane=item.lane,
        client=item.client, session=item.session, context=model.context, resident=model.resident,
        concurrency=started.concurrency, outcome=outcome, finish_reason=finish.finish_reason, tokens=tokens, times=times,
        answer=reference, gpu=context.gpu, others_use=context.others_use, prompt_chars=request_chars(body),
    )  # fmt: skip
    return end, answer


def _outcome(item: WorkItem, model: ModelInfo, ran: Ran, tokens: Tokens) -> Outcome:
    finish = ran.finish
    if finish.vectors:
        return "ok"
    return outcome_of(
        text=ran.assembled.text,
        has_tool_calls=bool(ran.assembled.tool_calls),
        finish_reason=finish.finish_reason,
        expected_models={model.name, model.backend_name, *model.aliases},
        answered_by=finish.model,
        output_tokens=tokens.output,
        limit=finish.limit if finish.limit is not None else item.options.max_tokens,
        language=item.language,
        domain=item.domain,
    )


def failed(
    context: Context, stamp: TaskStarted, error: BackendError, *, tokens: int, phase: Phase, elapsed_s: float
) -> AttemptFailed:
    """A classified failure, with what ran and for how long."""
    kind: FailureClass = msgspec.convert(error.failure, FailureClass)
    event = failure(context.item, stamp, kind, retryable=error.retryable, tokens=tokens, detail=error.detail[:500])
    return described(event, context, phase=phase, elapsed_s=elapsed_s)


def described(event: AttemptFailed, context: Context, *, phase: Phase | None, elapsed_s: float | None) -> AttemptFailed:
    """A failure as a sample of its own."""
    return msgspec.structs.replace(
        event,
        cause=context.started.id,
        model=context.item.model,
        digest=context.model.digest if context.model else None,
        domain=context.item.domain,
        phase=phase,
        elapsed_s=elapsed_s,
    )


def _tokens(ran: Ran, *, was_resident: bool | None) -> Tokens:
    """The backend's counts. A model that was really loaded for this request had nothing cached."""
    tokens, load_us = ran.finish.tokens, ran.finish.timings.load_us
    if tokens.cached is None and was_resident is False and load_us is not None and load_us >= LOAD_US_MIN:
        tokens = msgspec.structs.replace(tokens, cached=0)
    if tokens.output is None and ran.assembled.pieces:
        tokens = msgspec.structs.replace(tokens, output=ran.assembled.pieces)
    return tokens
