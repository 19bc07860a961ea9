"""What servers do wrong, over the wire, and how each of it is called.

Every fault was reported of a real server; a deterministic stub plays it in Ollama's format and in OpenAI's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

import pytest

from schemas.errors import BackendError
from schemas.events import Options
from schemas.work import Body
from services.runtime.clock import SystemClock
from services.worker.backends.detect import detect
from services.worker.backends.ollama import Ollama
from services.worker.backends.openai import OpenAI
from services.worker.backends.openai_body import LLAMA_CPP
from services.worker.backends.port import Backend, BackendRequest, Chunk, Finish
from services.worker.watchdogs import Limits, watched
from support.backends import (
    DONE,
    Fin,
    Gate,
    Hang,
    Reset,
    Script,
    Step,
    Stub,
    line,
    ollama_done,
    ollama_frame,
    ollama_stand_in,
    openai_frame,
    openai_usage,
    vllm_stand_in,
)

SSE = "text/event-stream"
QUICK = Limits(first_byte_s=0.6, stall_s=0.4, total_s=60.0)
CALL = {"name": "weather", "arguments": {"city": "東京"}}


class Faulty:
    """A stub with a backend on it; ``play`` sends one request against one script."""

    def __init__(self, stub: Stub, backend: Backend) -> None:
        self.stub, self.backend = stub, backend
        self.is_ollama = backend.kind == "ollama"

    def text(self, text: str) -> bytes:
        return ollama_frame(text) if self.is_ollama else openai_frame(text)

    def end(self, reason: str = "stop") -> list[Step]:
        return (
            [ollama_done(done_reason=reason)] if self.is_ollama else [openai_frame(None, reason), openai_usage(), DONE]
        )

    async def play(
        self, steps: Sequence[Step], *, status: int = 200, limits: Limits | None = None
    ) -> list[Chunk | Finish]:
        self.stub.scripts.append(Script(steps, status, "application/x-ndjson" if self.is_ollama else SSE))
        request = BackendRequest(model="m", body=Body(messages=({"role": "user", "content": "?"},)), options=Options())
        stream = self.backend.chat(request)
        if limits is not None:
            stream = watched(stream, limits, SystemClock())
        async with aclosing(stream):
            return [piece async for piece in stream]

    async def fails(self, steps: Sequence[Step], *, status: int = 200, limits: Limits | None = None) -> BackendError:
        with pytest.raises(BackendError) as caught:
            await self.play(steps, status=status, limits=limits)
        return caught.value


@pytest.fixture(params=["ollama", "vllm"])
async def faulty(request: pytest.FixtureRequest) -> AsyncIterator[Faulty]:
    async with ollama_stand_in() if request.param == "ollama" else vllm_stand_in() as stub:
        backend = await detect(stub.url)
        yield Faulty(stub, backend)
        await backend.aclose()


@pytest.fixture
async def ollama() -> AsyncIterator[Faulty]:
    async with ollama_stand_in() as stub:
        backend = Ollama(stub.url)
        yield Faulty(stub, backend)
        await backend.aclose()


@pytest.fixture
async def llama_cpp() -> AsyncIterator[Faulty]:
    async with vllm_stand_in() as stub:
        backend = OpenAI(stub.url, LLAMA_CPP)
        yield Faulty(stub, backend)
        await backend.aclose()


def joined(pieces: list[Chunk | Finish]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Chunk))


async def test_case_31_a_stream_that_stops_is_a_stall_and_is_closed_upstream(faulty: Faulty) -> None:
    error = await faulty.fails([faulty.text("Hel"), Hang()], limits=QUICK)
    assert (error.failure, error.retryable) == ("stall", True)
    await faulty.stub.client_gone.wait()


async def test_a_server_that_never_answers_is_a_timeout_of_the_first_byte(faulty: Faulty) -> None:
    error = await faulty.fails([Hang()], limits=QUICK)
    assert error.failure == "timeout"
    assert "first" in error.detail


async def test_case_17_a_short_total_limit_closes_the_stream_upstream(faulty: Faulty) -> None:
    error = await faulty.fails([faulty.text("a"), Hang()], limits=Limits(total_s=0.1))
    assert error.failure == "timeout"
    assert "total" in error.detail
    await faulty.stub.client_gone.wait()


async def test_keep_alive_comments_are_no_sign_of_life(llama_cpp: Faulty) -> None:
    error = await llama_cpp.fails([openai_frame("a"), *[b":\n\n", b": ping\n\n"] * 50, Hang()], limits=QUICK)
    assert error.failure == "stall"


async def test_progress_of_the_prompt_is_a_sign_of_life_only_while_it_progresses(llama_cpp: Faulty) -> None:
    same = line({"model": "m", "choices": [], "prompt_progress": {"total": 9, "processed": 4}})
    error = await llama_cpp.fails([b"data: " + same + b"\n"] * 30 + [Hang()], limits=QUICK)
    assert error.failure == "timeout"


async def test_a_reset_connection_is_a_disconnect(faulty: Faulty) -> None:
    error = await faulty.fails([faulty.text("a"), Reset()])
    assert (error.failure, error.retryable) == ("disconnect", True)


async def test_a_connection_that_ends_before_http_does_is_a_disconnect(faulty: Faulty) -> None:
    assert (await faulty.fails([faulty.text("a"), Fin()])).failure == "disconnect"
    assert (await faulty.fails([Fin()])).failure == "disconnect"


async def test_a_clean_end_without_the_servers_word_is_no_success(faulty: Faulty) -> None:
    error = await faulty.fails([faulty.text("a"), faulty.text("b")])
    assert (error.failure, error.retryable) == ("protocol", True)
    assert "without" in error.detail


async def test_done_without_a_finish_reason_is_no_success(llama_cpp: Faulty) -> None:
    assert (await llama_cpp.fails([openai_frame("a"), DONE])).failure == "protocol"


async def test_garbage_in_a_stream_is_a_protocol_failure_that_shows_it(faulty: Faulty) -> None:
    error = await faulty.fails([faulty.text("a"), b"<html>502 Bad Gateway</html>\n"])
    assert error.failure == "protocol"
    assert "502 Bad Gateway" in error.detail


async def test_a_dead_child_of_llama_cpps_router_mode_is_a_disconnect(llama_cpp: Faulty) -> None:
    error = await llama_cpp.fails([openai_frame("a"), b"proxy error: Failed to read connection\n"])
    assert error.failure == "disconnect"


async def test_an_error_in_mid_stream_is_classified_by_its_words(faulty: Faulty) -> None:
    for words, failure in (
        ("llama runner process has terminated: exit status 2", "disconnect"),
        ("CUDA error: out of memory", "oom"),
        ("model requires more system memory (9.1 GiB) than is available (3.2 GiB)", "oom"),
        ("token repeat limit reached", "protocol"),
    ):
        frame = {"error": words} if faulty.is_ollama else {"error": {"message": words, "type": "server_error"}}
        data = line(frame) if faulty.is_ollama else b"data: " + line(frame) + b"\n"
        assert (await faulty.fails([faulty.text("a"), data])).failure == failure, words


@pytest.mark.parametrize(
    ("status", "error", "failure", "retryable"),
    [
        (503, "server busy, please try again.  maximum pending requests exceeded", "busy", True),
        (503, {"message": "Loading model", "type": "unavailable_error", "code": 503}, "busy", True),
        (429, "slow down", "busy", True),
        (404, "model 'x' not found", "rejected", True),
        (400, "model 'x' not found", "rejected", True),
        (400, {"message": "too long", "type": "exceed_context_size_error", "n_ctx": 2048}, "rejected", False),
        (400, "invalid option", "rejected", False),
        (500, {"message": "input exceeds the maximum context", "type": "server_error"}, "rejected", False),
        (500, "unable to allocate CUDA0 buffer", "oom", True),
        (500, "llama runner process has terminated", "disconnect", True),
        (500, "something else", "protocol", True),
        (501, "not supported", "rejected", False),
        (502, "<html>Bad Gateway</html>", "protocol", True),
    ],
)
async def test_http_errors_say_whose_fault_it_was(
    faulty: Faulty, status: int, error: object, failure: str, retryable: bool
) -> None:
    caught = await faulty.fails([line({"error": error})], status=status)
    assert (caught.failure, caught.retryable) == (failure, retryable)
    assert str(status) in caught.detail


async def test_characters_may_be_split_between_packets(faulty: Faulty) -> None:
    whole = b"".join([faulty.text("東京は日本の首都です"), *[step for step in faulty.end() if isinstance(step, bytes)]])
    pieces = await faulty.play([bytes([byte]) for byte in whole])
    assert joined(pieces) == "東京は日本の首都です"


async def test_line_separators_inside_a_text_do_not_split_it(faulty: Faulty) -> None:
    text = "a\u2028b\u0085c\x0cd\x1ee"
    assert joined(await faulty.play([faulty.text(text), *faulty.end()])) == text


async def test_windows_line_ends_and_a_missing_last_one_are_read(llama_cpp: Faulty) -> None:
    frames = openai_frame("a") + openai_frame(None, "stop")
    pieces = await llama_cpp.play([frames.replace(b"\n", b"\r\n") + b"data: [DONE]"])
    assert joined(pieces) == "a"


async def test_case_33_thinking_arrives_as_thinking(faulty: Faulty) -> None:
    frame = ollama_frame("", thinking="hm") if faulty.is_ollama else openai_frame(None, reasoning_content="hm")
    pieces = await faulty.play([frame, frame, *faulty.end("length")])
    assert [piece.thinking for piece in pieces if isinstance(piece, Chunk)] == ["hm", "hm"]
    assert all(piece.is_token for piece in pieces if isinstance(piece, Chunk))


async def test_case_35_tool_calls_come_split_whole_or_only_in_the_last_frame(faulty: Faulty) -> None:
    if faulty.is_ollama:
        shapes = [
            [ollama_frame("", tool_calls=[{"function": CALL}]), ollama_done()],
            [ollama_done(message={"role": "assistant", "content": "", "tool_calls": [{"function": CALL}]})],
        ]
    else:
        first = {"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": ""}}
        parts = [{"index": 0, "function": {"arguments": part}} for part in ('{"city": ', '"東京"}')]
        whole = {**first, "function": {"name": "weather", "arguments": '{"city": "東京"}'}}
        end = faulty.end("tool_calls")
        shapes = [
            [openai_frame(None, tool_calls=[first]), *[openai_frame(None, tool_calls=[part]) for part in parts], *end],
            [openai_frame(None, tool_calls=[whole]), *end],
            [openai_frame(None, "tool_calls", tool_calls=[whole]), DONE],
        ]
    for shape in shapes:
        pieces = await faulty.play(shape)
        deltas = [call for piece in pieces if isinstance(piece, Chunk) for call in piece.tool_calls]
        assert {delta["index"] for delta in deltas} == {0}
        assert "".join(delta["function"].get("name", "") for delta in deltas) == "weather"
        arguments = "".join(delta["function"]["arguments"] for delta in deltas)
        assert arguments.replace(" ", "") == '{"city":"東京"}'


async def test_ollamas_figures_become_microseconds_and_absent_ones_stay_absent(ollama: Faulty) -> None:
    finish = (await ollama.play([ollama_frame("a"), ollama_done(prompt_eval_cached_count=12)]))[-1]
    assert isinstance(finish, Finish)
    timings = finish.timings
    assert (timings.load_us, timings.prefill_us, timings.decode_us) == (100_000, 200_000, 400_000)
    assert timings.queue_us == 200_000  # what the parts leave of the total
    assert (finish.tokens.prompt, finish.tokens.cached, finish.tokens.output) == (20, 12, 4)

    none = dict.fromkeys(("prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration", "load_duration"))
    finish = (await ollama.play([ollama_frame("a"), ollama_done(**none)]))[-1]
    assert isinstance(finish, Finish)
    assert (finish.tokens.prompt, finish.tokens.cached, finish.tokens.output) == (None, None, None)
    assert (finish.timings.load_us, finish.timings.prefill_us, finish.timings.decode_us) == (None, None, None)
    assert finish.timings.queue_us is None


async def test_llama_cpps_own_timings_are_taken(llama_cpp: Faulty) -> None:
    timings = {"cache_n": 24, "prompt_n": 9, "prompt_ms": 73.1, "predicted_n": 3, "predicted_ms": 26.6}
    finish = (await llama_cpp.play([openai_frame("a", "stop"), openai_usage(timings=timings), DONE]))[-1]
    assert isinstance(finish, Finish)
    assert (finish.timings.prefill_us, finish.timings.decode_us) == (73_100, 26_600)
    assert finish.tokens.cached == 24


async def test_case_29_a_slow_load_within_the_first_byte_limit_is_waited_for(faulty: Faulty) -> None:
    """Closing during a load aborts it, and a retry begins it anew: the limit for the first token stands alone."""
    gate = Gate()
    limits = Limits(first_byte_s=30.0, stall_s=0.01)
    asyncio.get_running_loop().call_later(0.1, gate.opened.set)  # ten times the stall limit
    at_once = faulty.text("a") + b"".join(faulty.end())
    pieces = await faulty.play([gate, at_once], limits=limits)
    assert joined(pieces) == "a"


async def test_ollama_is_never_asked_to_reload_or_to_keep_a_model(ollama: Faulty) -> None:
    await ollama.play([ollama_frame("a"), ollama_done()])
    (sent,) = ollama.stub.chats()
    assert "keep_alive" not in sent
    assert "num_ctx" not in sent["options"]
    assert sent["truncate"] is False


async def test_openai_style_messages_reach_ollama_in_its_own_form(ollama: Faulty) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    messages = (
        {"role": "user", "content": [{"type": "text", "text": "look"}, image]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    )
    extra = {"response_format": {"type": "json_object"}, "stop": ["\n"], "think": False}
    ollama.stub.scripts.append(Script([ollama_done()]))
    body = Body(messages=messages, extra=extra)
    request = BackendRequest(model="m", body=body, options=Options(temperature=0.5, seed=7, max_tokens=9))
    async with aclosing(ollama.backend.chat(request)) as stream:
        assert [piece async for piece in stream]
    (sent,) = ollama.stub.chats()
    assert sent["messages"][0] == {"role": "user", "content": "look", "images": ["AAAA"]}
    assert sent["messages"][1]["tool_calls"][0]["function"] == {"name": "f", "arguments": {"x": 1}}
    assert (sent["format"], sent["think"]) == ("json", False)
    assert sent["options"] == {"stop": ["\n"], "temperature": 0.5, "seed": 7, "num_predict": 9}
