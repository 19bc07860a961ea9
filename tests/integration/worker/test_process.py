"""The worker as a process of its own, beside a real llama.cpp server."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from schemas.errors import BackendError
from schemas.events import Options, TaskCompleted, TaskStarted, WorkerLeft, WorkerReported
from schemas.work import Body
from services.runtime.bus import Bus
from services.runtime.lifecycle import Lifecycle
from services.runtime.server import EmbeddedServer
from services.worker import __main__ as starting
from services.worker.backends.port import Backend
from support.eventually import PATIENCE_S, eventually
from support.llama import MODEL, llama
from support.stub_ollama import StubOllama
from support.worker_bench import Bench

ROOT = Path(__file__).parents[3]
LONG = Body(messages=({"role": "user", "content": "Tell me a long story about a mill."},))


@pytest.fixture
async def bench(bus: Bus) -> Bench:
    bench = Bench(bus)
    await bench.start()
    return bench


@asynccontextmanager
async def worker_process(folder: Path, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "services.worker", "--data", str(folder), *arguments),
        cwd=ROOT,
        env={**os.environ, "HEADRACE_LOG": "json", "HEADRACE_WORKER_HEARTBEAT_S": "0.5"},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_sigterm_finishes_the_answer_and_leaves_with_a_word(
    natsd: EmbeddedServer, bench: Bench, tmp_path: Path
) -> None:
    async with llama() as server:
        arguments = ("--server", natsd.url, "--backend", server.url, "--name", "desk")
        async with worker_process(tmp_path, *arguments) as process:
            report = await bench.until_said(WorkerReported)
            assert (report.name, report.backend, report.slots) == ("desk", "llama.cpp", 1)
            assert (report.models[0].name, report.models[0].bytes, report.models[0].context) == (MODEL, 96576768, 2048)
            await bench.confirm(MODEL, worker=report.worker)
            await bench.ready(worker=report.worker)
            await bench.release("t1", MODEL, body=LONG, options=Options(max_tokens=60))
            await eventually(lambda: bench.tokens)
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE_S):
                assert await process.wait() == 0
    end = await bench.until_said(TaskCompleted, "t1")
    assert end.tokens.output is not None and end.tokens.output > 20
    assert (end.times.source, end.tokens.cached) == ("backend", 0)
    assert end.times.prefill_s and end.times.decode_s and end.times.first_token_s and end.times.total_s
    assert end.times.prefill_s < end.times.first_token_s < end.times.total_s
    assert isinstance((await bench.events())[-1], WorkerLeft)


async def test_a_killed_worker_comes_back_as_the_same_one_in_a_new_boot(
    natsd: EmbeddedServer, bench: Bench, tmp_path: Path
) -> None:
    async with llama() as server:
        arguments = ("--server", natsd.url, "--backend", server.url)
        async with worker_process(tmp_path, *arguments) as process:
            first = await bench.until_said(WorkerReported)
            await bench.confirm(MODEL, worker=first.worker)
            await bench.ready(worker=first.worker)
            await bench.release("t1", MODEL, body=LONG, options=Options(max_tokens=400))
            started = await bench.until_said(TaskStarted, "t1")
            process.kill()
            await process.wait()
        async with worker_process(tmp_path, *arguments):

            async def second() -> WorkerReported | None:
                reports = await bench.said(WorkerReported)
                return reports[1] if len(reports) > 1 else None

            again = await eventually(second)
            assert again is not None
            assert (again.worker, again.boot != started.boot) == (first.worker, True)


async def test_a_second_worker_in_one_directory_says_what_is_wrong(natsd: EmbeddedServer, tmp_path: Path) -> None:
    arguments = ("--server", natsd.url, "--backend", "http://127.0.0.1:9")
    async with worker_process(tmp_path, *arguments):
        await eventually(lambda: (tmp_path / "worker-id").exists())
        async with worker_process(tmp_path, *arguments) as second:
            _, said = await second.communicate()
    assert second.returncode == 1
    assert b"another worker is using" in said


async def stopped_while_it_says(said: bytes, process: asyncio.subprocess.Process) -> None:
    """SIGTERM ends it well, though what it waits for never comes."""
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE_S):
        while said not in await process.stderr.readline():
            pass
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0


async def test_a_worker_without_a_backend_waits_for_one_and_can_be_stopped(
    natsd: EmbeddedServer, tmp_path: Path
) -> None:
    async with worker_process(tmp_path, "--server", natsd.url, "--backend", "http://127.0.0.1:9") as process:
        await stopped_while_it_says(b"backend_missing", process)


async def test_a_worker_that_no_router_made_streams_for_can_be_stopped(tmp_path: Path) -> None:
    async with (
        EmbeddedServer(tmp_path / "nats", sync="10s") as natsd,
        StubOllama({}) as backend,
        worker_process(tmp_path, "--server", natsd.url, "--backend", backend.url) as process,
    ):
        await stopped_while_it_says(b"no_streams", process)


async def test_each_place_without_a_backend_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    life, looks = Lifecycle(), 0

    async def detect(url: str, *, connect_s: float) -> Backend:
        nonlocal looks
        looks += 1
        if looks == 6:
            life.drain("enough")
        raise BackendError("disconnect", f"nothing answers at {url}")

    monkeypatch.setattr(starting, "AGAIN_S", 0.0)
    monkeypatch.setattr(starting, "detect", detect)
    with capture_logs() as logged:
        assert await starting.find_backend(("http://a", "http://b"), life, 1.0) is None
    assert [line["url"] for line in logged if line["action"] == "backend_missing"] == ["http://a", "http://b"]


async def test_a_wrong_argument_is_one_line_and_not_a_traceback(tmp_path: Path) -> None:
    async with worker_process(tmp_path, "--slots", "0") as process:
        _, said = await process.communicate()
    assert process.returncode == 1
    assert b"--slots" in said
    assert b"Traceback" not in said
