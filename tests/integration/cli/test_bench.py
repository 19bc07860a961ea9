"""``headrace bench`` as a person types it, over a whole Headrace with a real model."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from schemas.events import BenchCompleted, QualityJudged, TaskCancelled, TaskSubmitted, Terminal
from services.cli.client import RouterClient
from services.cli.exits import Exit
from services.cli.parts import BackendAt
from services.cli.stack import Stack
from services.runtime.bus import Bus
from support.eventually import eventually
from support.llama import MODEL, llama
from support.routers import whole_log

DOMAIN = "general"


@pytest.fixture
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    config = tmp_path / "headrace.toml"
    config.write_text("[benchmarker]\non = false\n")
    async with AsyncExitStack() as opened:
        server = await opened.enter_async_context(llama())
        yield await opened.enter_async_context(
            Stack(
                tmp_path / "data", backends=[BackendAt("desk", server.url)], config=config, sync="10s", benchmarker=True
            )
        )


async def headrace(stack: Stack, *words: str) -> Process:
    command = (sys.executable, "-m", "services.cli", *words, "--router", stack.router_url)
    return await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)


async def interruptible(stack: Stack, *words: str) -> Process:
    """Also where these tests run in the background, whose children a shell lets ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return await headrace(stack, *words)
    finally:
        signal.signal(signal.SIGINT, before)


async def test_a_run_grades_a_real_model_and_its_grades_become_statistics(stack: Stack) -> None:
    process = await headrace(stack, "bench", "-m", MODEL, "-w", "desk", "-d", DOMAIN, "--limit", "2", "--json")
    out, err = await process.communicate()
    assert process.returncode == Exit.OK, err.decode()
    shown = json.loads(out)
    (row,) = shown["rows"]
    assert (shown["state"], row["model"], row["worker_name"], row["n"], row["total"]) == ("done", MODEL, "desk", 2, 2)
    assert row["decode"] > 0
    async with await Bus.connect(stack.nats_url, name="test") as bus:
        log = await whole_log(bus)
    verdicts = [event for event in log if isinstance(event, BenchCompleted)]
    assert [verdict.run for verdict in verdicts] == [shown["run"]] * 2
    assert len([event for event in log if isinstance(event, QualityJudged)]) == 2
    asked = [event for event in log if isinstance(event, TaskSubmitted)]
    assert [(task.kind, task.urgency, task.client) for task in asked] == [("bench", "background", "benchmarker")] * 2

    async def learned() -> bool:
        async with RouterClient(stack.router_url) as router:
            rows = (await router.get("/stats", domain=DOMAIN))["rows"]
        return any(row["fields"]["quality"]["n"] for row in rows)

    await eventually(learned)


async def test_interrupted_it_gives_up_what_is_left(stack: Stack) -> None:
    async with await Bus.connect(stack.nats_url, name="test") as bus:
        before = len(await whole_log(bus))
        process = await interruptible(stack, "bench")  # every suite: it cannot be done before it is interrupted

        async def asked() -> bool:
            return any(isinstance(event, TaskSubmitted) for event in (await whole_log(bus))[before:])

        await eventually(asked)
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
        assert process.returncode == Exit.INTERRUPTED, err.decode()

        async def given_up() -> bool:
            log = (await whole_log(bus))[before:]
            ended = {event.task for event in log if isinstance(event, Terminal)}
            return {event.task for event in log if isinstance(event, TaskSubmitted)} == ended

        await eventually(given_up)
        kinds = [type(event) for event in (await whole_log(bus))[before:]]
    given_up_at = kinds.index(TaskCancelled) if TaskCancelled in kinds else len(kinds)
    assert TaskSubmitted not in kinds[given_up_at:], "an interrupted run asks nothing more"


async def test_without_a_benchmarker_it_says_what_to_start(tmp_path: Path) -> None:
    async with Stack(tmp_path / "data", sync="10s") as alone:
        process = await headrace(alone, "bench")
        _, err = await process.communicate()
    assert process.returncode != Exit.OK
    assert "no benchmarker answers" in err.decode() and "headrace benchmarker" in err.decode()
