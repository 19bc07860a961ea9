"""The tours that need a part: a real Ollama, its command line, and the ``openai`` client for Node. ``make e2e-clients``."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.docker import PARTS, Unavailable
from support.ollama import MODEL as SMOL, ollama, ollama_command
from support.toured import EMBEDDER, MODEL, PICTURE, SEEN, toured
from tour import by_ollama, by_ollama_cli, by_openai
from tour.comparing import compare
from tour.fleet import both, through
from tour.observing import Seen, flat, stream

pytestmark = pytest.mark.e2e

SCRIPT = Path(by_openai.__file__).with_suffix(".mjs")
NPM = PARTS / "npm"


def agree(tour: str, ours: Seen, theirs: Seen) -> None:
    wrong = compare(tour, ours, theirs)
    assert not wrong, "\n".join([tour, *wrong])


async def test_ollama_s_client_at_a_real_ollama(tmp_path: Path) -> None:
    try:
        with ollama() as server:
            ours, theirs = await both(by_ollama.tour, server.url, tmp_path, SMOL, words=False)
    except Unavailable as reason:
        pytest.skip(str(reason))
    agree("ollama at Ollama", ours, theirs)


async def test_openai_s_client_at_a_real_ollama(tmp_path: Path) -> None:
    try:
        with ollama() as server:
            ours, theirs = await both(by_openai.tour, server.url, tmp_path, SMOL, words=False)
    except Unavailable as reason:
        pytest.skip(str(reason))
    agree("openai at Ollama", ours, theirs)


async def test_ollama_s_command_line_at_a_real_ollama(tmp_path: Path) -> None:
    try:
        with ollama() as server:
            binary, home = ollama_command(), tmp_path / "home"
            home.mkdir()
            theirs = await by_ollama_cli.tour(binary, server.url, SMOL, home)
            async with through(tmp_path, {"desk": server.url}) as router:
                ours = await by_ollama_cli.tour(binary, router, SMOL, home)
    except Unavailable as reason:
        pytest.skip(str(reason))
    agree("command line at Ollama", ours, theirs)


async def test_openai_s_client_for_node_at_a_stand_in(tmp_path: Path) -> None:
    if not (NPM / "node_modules" / "openai").exists() or shutil.which("node") is None:
        pytest.skip(
            "the `openai` package for Node is not here; `make e2e-clients` installs it where npm and a registry are"
        )
    async with toured() as url:
        theirs = await by_node(url)
        async with through(tmp_path, {"desk": url}) as router:
            ours = await by_node(router)
    assert SEEN in ours["image"]["choices[0].message.content"]
    assert "360022 characters" in ours["60,000 tokens"]["choices[0].message.content"]
    agree("openai for Node at stand-in", ours, theirs)


async def by_node(url: str) -> Seen:
    process = await asyncio.create_subprocess_exec(
        "node", str(SCRIPT), str(NPM), url, MODEL, EMBEDDER, PICTURE, stdout=asyncio.subprocess.PIPE
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), 120)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    seen: dict[str, Any] = json.loads(said)
    chunks = seen.pop("chunks")
    return {step: flat(value) for step, value in seen.items()} | {"stream": stream(chunks, by_openai.delta)}
