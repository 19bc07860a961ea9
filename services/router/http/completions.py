"""Plain completions: ``/v1/completions``, a prompt without a chat template, or several side by side (docs/http/openai.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from schemas.events import Options, Tokens
from schemas.work import Answer, Body
from services.router.fleet import Fleet
from services.router.http.asking import Limit, Name, RoutedConstraints, Seed, Share, Temperature, given, limit_of
from services.router.http.chat_reply import DONE, Told, error_chunk, usage_of
from services.router.http.chat_request import Choices, StreamOptions, asker_of, task_of
from services.router.http.live import Timing
from services.router.http.problems import Problem
from services.router.http.reading import BadRequest, read_json, typed
from services.router.http.speaking import Whole, now_s, summed
from services.router.http.streaming import Streamed
from services.router.http.submitting import SIDE_BY_SIDE_MAX, copies, submit_all
from services.router.port import NewTask, RouterPort, TaskStatus, TokenUpdate

PATH = "/v1/completions"
DEFAULT_MAX_TOKENS = 16
"""OpenAI's own, here and nowhere else: whoever leaves it out of a plain completion gets that many everywhere."""

_encode = msgspec.json.Encoder().encode


class CompletionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that the router reads; others (``suffix``, ``logprobs``, ``echo``) go to the backend as they came."""

    prompt: Any
    model: Name | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Limit | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    seed: Seed | None = None
    n: Choices | None = None
    prompt_cache_key: str | None = None
    headrace: RoutedConstraints | None = None


TAKEN = frozenset(CompletionRequest.__struct_fields__)


def completion_routes(router: RouterPort, timing: Timing) -> APIRouter:
    routes = APIRouter()

    @routes.post(PATH)
    async def complete(request: Request) -> Response:
        asked, tasks = completion_tasks(await read_json(request), request.headers, router.fleet())
        submitted = await submit_all(router, tasks)
        if not asked.stream:
            return Whole(router, submitted, timing, partial(_whole, asked.n or 1))
        wants_usage = bool(asked.stream_options and asked.stream_options.include_usage)
        made = now_s()
        pieces = [TextPieces(submitted[0].task, made, at, usage=wants_usage) for at in range(len(submitted))]
        return Streamed(router, submitted, timing, pieces, choices=asked.n or 1)

    return routes


def completion_tasks(
    values: dict[str, Any], headers: Mapping[str, str], fleet: Fleet
) -> tuple[CompletionRequest, list[NewTask]]:
    """One task for each prompt and choice, in OpenAI's order. Raises BadRequest naming the field."""
    request = typed(values, CompletionRequest)
    prompts = _prompts(request.prompt)
    n = request.n or 1
    if len(prompts) * n > SIDE_BY_SIDE_MAX:
        raise BadRequest(f"{len(prompts)} prompts with n {n} are more than {SIDE_BY_SIDE_MAX} completions", "prompt")
    options = Options(
        max_tokens=_limit(request),
        temperature=request.temperature,
        top_p=request.top_p,
        seed=request.seed,
    )
    asker = asker_of(headers, PATH, request.headrace, request.prompt_cache_key)
    extra = given(values, TAKEN)
    tasks: list[NewTask] = []
    for prompt in prompts:
        task = task_of(Body(prompt=prompt, extra=extra), options, request.model, request.headrace, asker, fleet)
        tasks += copies(msgspec.structs.replace(task, kind="completion"), n)
    return request, tasks


def _limit(request: CompletionRequest) -> int | None:
    said = request.headrace.max_tokens if request.headrace is not None else None
    if request.max_tokens is None:
        return DEFAULT_MAX_TOKENS if said is None else limit_of(said, "headrace.max_tokens")
    return limit_of(request.max_tokens, "max_tokens")


def _prompts(prompt: Any) -> list[str]:
    if isinstance(prompt, str):
        return [prompt]
    if not isinstance(prompt, list) or not prompt:
        raise BadRequest("prompt: expected a text or a list of texts", "prompt")
    if not all(isinstance(each, str) for each in prompt):
        raise BadRequest(
            "prompt holds tokens; they mean something to one model's tokeniser only: send texts, which any model can read",
            "prompt",
        )
    return prompt


def _whole(n: int, answers: Sequence[Answer], created: int, told: Told) -> dict[str, Any]:
    return {
        "id": f"cmpl-{told.task}",
        "object": "text_completion",
        "created": created,
        "model": answers[0].model,
        "choices": [
            {
                "text": answer.text,
                "index": at,
                "logprobs": legacy_logprobs(answer.logprobs),
                "finish_reason": answer.finish_reason or "stop",
            }
            for at, answer in enumerate(answers)
        ],
        "usage": usage_of(summed([answer.tokens for answer in answers], n)),
        "headrace": told,
    }


def legacy_logprobs(entries: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The parallel lists that plain completions have."""
    if not entries:
        return None
    offsets, at = [], 0
    for entry in entries:
        offsets.append(at)
        at += len(entry.get("token") or "")
    return {
        "tokens": [entry.get("token") for entry in entries],
        "token_logprobs": [entry.get("logprob") for entry in entries],
        "top_logprobs": [
            {top.get("token"): top.get("logprob") for top in entry.get("top_logprobs") or ()} for entry in entries
        ],
        "text_offset": offsets,
    }


class TextPieces:
    """The chunks of one completion: a Speech."""

    def __init__(self, task: str, created: int, index: int, *, usage: bool) -> None:
        self._id, self._created, self._index, self._usage = f"cmpl-{task}", created, index, usage

    def set_model(self, model: str) -> None:
        head = {"id": self._id, "object": "text_completion", "created": self._created, "model": model}
        self._head = b"data: " + _encode(head)[:-1] + b',"choices":['
        self._text = self._head + b'{"index":%d,"logprobs":null,"finish_reason":null,"text":' % self._index

    def begin(self) -> bytes:
        return b""

    def moved(self, status: TaskStatus) -> bytes:
        return b""

    def token(self, update: TokenUpdate) -> bytes:
        if not update.logprobs:
            return b"".join((self._text, _encode(update.text), b"}]}\n\n"))
        logprobs = legacy_logprobs(update.logprobs)
        choice = {"index": self._index, "logprobs": logprobs, "finish_reason": None, "text": update.text}
        return b"".join((self._head, _encode(choice), b"]}\n\n"))

    def end(self, answer: Answer | None, reason: str | None, told: Told) -> bytes:
        reason = (answer.finish_reason if answer is not None else reason) or "stop"
        choice = {"index": self._index, "text": "", "logprobs": None, "finish_reason": reason}
        return b"".join((self._head, _encode(choice), b'],"headrace":', _encode(told), b"}\n\n"))

    def tail(self, tokens: Tokens | None) -> bytes:
        if not self._usage:
            return DONE
        return b"".join((self._head, b'],"usage":', _encode(usage_of(tokens)), b"}\n\n", DONE))

    def error(self, problem: Problem) -> bytes:
        return error_chunk(problem) + DONE
