"""What the log says of a run: everything a statistic may be keyed by, and nothing that was not known."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from schemas import codec
from schemas.errors import BackendError
from schemas.events import Options, TaskStarted, Tokens
from schemas.subjects import answer_subject
from schemas.work import Body, WorkItem, encode_wire
from services.worker.answer import Assembled, Ran
from services.worker.backends.port import BackendTimings, Chunk, Finish, Identity
from services.worker.completion import LOAD_US_MIN, Context, completed, failed, request_chars
from services.worker.timings import Seen
from support.builders import DESK, MODEL, QWEN, TASK, build

ITEM = WorkItem(
    task=TASK, attempt=2, epoch=4, model=QWEN, capability="gpu_inference", lane="any", domain="code", language="en",
    urgency="batch", client="me", session="s-1", options=Options(max_tokens=50), body="task.in.me.t",
)  # fmt: skip
STARTED = build(TaskStarted, task=TASK, attempt=2, worker=DESK, model=QWEN)
STAMP = build(TaskStarted, task=TASK, id="fresh", at=STARTED.at + 9)
BODY = Body(prompt="Sort these.")
OLLAMA = Identity(kind="ollama", version="0.12", backend_id="b-1")


def context(**changes: Any) -> Context:
    usual: dict[str, Any] = {"item": ITEM, "started": STARTED, "model": MODEL, "identity": OLLAMA}
    return Context(**(usual | changes))


def held(resident: bool | None) -> Context:
    return context(model=msgspec.structs.replace(MODEL, resident=resident))


def ran(*pieces: str, **finish: Any) -> Ran:
    assembled = Assembled()
    for piece in pieces or ("def ", "f(): ..."):
        assembled.add(Chunk(text=piece))
    seen = Seen(sent=10.0, first_token=11.0, last_token=13.0, ended=13.0)
    return Ran(assembled=assembled, finish=Finish(**({"finish_reason": "stop"} | finish)), seen=seen)


def test_a_completion_says_what_a_statistic_may_be_keyed_by_and_survives_the_codec() -> None:
    end, _ = completed(
        context(gpu="RTX", others_use=0.25), STAMP, ran(model="qwen3:8b-q4_K_M"), BODY, is_new_prompt=True
    )
    assert (end.id, end.cause, end.task, end.attempt) == ("fresh", STARTED.id, TASK, 2)
    assert (end.worker, end.model, end.backend_model, end.digest) == (DESK, QWEN, "qwen3:8b-q4_K_M", MODEL.digest)
    assert (end.backend, end.backend_version, end.capability, end.lane) == ("ollama", "0.12", "gpu_inference", "any")
    assert (end.domain, end.language, end.urgency, end.client) == ("code", "en", "batch", "me")
    assert (end.outcome, end.gpu, end.others_use, end.prompt_chars) == ("ok", "RTX", 0.25, 11)
    assert codec.decode(codec.encode(end)) == end


def test_the_answer_is_stored_where_the_fact_says_in_the_size_that_it_says() -> None:
    end, answer = completed(context(), STAMP, ran("a", "b"), BODY, is_new_prompt=True)
    assert (answer.text, answer.worker, answer.outcome) == ("ab", DESK, end.outcome)
    assert end.answer is not None
    assert (end.answer.subject, end.answer.bytes) == (answer_subject("me", TASK, 2), len(encode_wire(answer)))


def test_pieces_stand_in_for_tokens_only_where_nobody_counted() -> None:
    counted, _ = completed(context(), STAMP, ran("a", "b", tokens=Tokens(output=7)), BODY, is_new_prompt=True)
    silent, _ = completed(context(), STAMP, ran("a", "b"), BODY, is_new_prompt=True)
    assert (counted.tokens.output, silent.tokens.output, silent.tokens.prompt) == (7, 2, None)


@pytest.mark.parametrize(("limit", "outcome"), [(4, "ok"), (900, "truncated"), (None, "truncated")])
def test_a_cut_at_the_limit_that_the_backend_was_given_is_told_and_no_fault_of_the_model(
    limit: int | None, outcome: str
) -> None:
    unlimited = context(item=msgspec.structs.replace(ITEM, options=Options()))
    cut = ran(finish_reason="length", limit=limit, tokens=Tokens(output=4))
    end, answer = completed(unlimited, STAMP, cut, BODY, is_new_prompt=True)
    assert (end.outcome, end.finish_reason, answer.finish_reason) == (outcome, "length", "length")


@pytest.mark.parametrize(
    ("resident", "load_us", "cached"),
    [(False, LOAD_US_MIN, 0), (False, LOAD_US_MIN - 1, None), (True, LOAD_US_MIN, None), (None, LOAD_US_MIN, None)],
)
def test_only_a_model_that_was_really_loaded_had_surely_nothing_cached(
    resident: bool | None, load_us: int, cached: int | None
) -> None:
    run = ran(timings=BackendTimings(load_us=load_us))
    end, _ = completed(held(resident), STAMP, run, BODY, is_new_prompt=True)
    assert end.tokens.cached == cached


@pytest.mark.parametrize(("is_new", "cached", "measured"), [(True, None, True), (False, None, False), (False, 3, True)])
def test_prefill_of_an_unknown_number_of_tokens_is_unknown(is_new: bool, cached: int | None, measured: bool) -> None:
    run = ran(tokens=Tokens(cached=cached), timings=BackendTimings(prefill_us=300_000))
    end, _ = completed(held(True), STAMP, run, BODY, is_new_prompt=is_new)
    assert (end.times.prefill_s is not None) is measured


def test_an_answer_of_another_model_is_called_substituted_and_vectors_are_never_empty_text() -> None:
    other, _ = completed(context(), STAMP, ran(model="llama3"), BODY, is_new_prompt=True)
    vectors, _ = completed(context(), STAMP, ran("", vectors=((0.5, 0.25),)), BODY, is_new_prompt=True)
    assert (other.outcome, vectors.outcome) == ("substituted", "ok")


def test_a_failure_is_a_sample_of_its_own() -> None:
    error = BackendError("stall", "x" * 900)
    event = failed(context(), STAMP, error, tokens=3, phase="decode", elapsed_s=61.5)
    assert (event.failure, event.retryable, event.tokens, event.cause) == ("stall", error.retryable, 3, STARTED.id)
    assert (event.model, event.digest, event.domain) == (QWEN, MODEL.digest, "code")
    assert (event.phase, event.elapsed_s, len(event.detail)) == ("decode", 61.5, 500)


def test_a_failure_of_a_model_that_is_gone_has_no_digest() -> None:
    error = BackendError("rejected", "model not found")
    event = failed(context(model=None), STAMP, error, tokens=0, phase="loading", elapsed_s=0.1)
    assert (event.model, event.digest) == (QWEN, None)


@pytest.mark.parametrize(
    ("body", "chars"),
    [
        (Body(prompt="four"), 4),
        (Body(inputs=("ab", "c")), 3),
        (Body(messages=({"role": "user", "content": "hi"}, {"role": "assistant", "content": None})), 2),
        (Body(messages=({"role": "user", "content": [{"type": "text", "text": "abc"}, {"type": "image_url"}]},)), 3),
    ],
)
def test_only_the_prompts_own_characters_are_counted(body: Body, chars: int) -> None:
    assert request_chars(body) == chars
