"""The official clients for Python go through the same tour twice: of a bare server, and of Headrace in front of it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from support.llama import MODEL as SMOL, llama
from support.toured import MODEL, SEEN, toured
from tour import by_anthropic, by_ollama, by_openai
from tour.comparing import NEVER, compare, listed
from tour.fleet import both, through
from tour.observing import Seen


def agree(tour: str, ours: Seen, theirs: Seen) -> None:
    wrong = compare(tour, ours, theirs)
    assert not wrong, "\n".join([tour, *wrong])


async def test_openai_at_llama_cpp(tmp_path: Path) -> None:
    async with llama() as server:
        ours, theirs = await both(by_openai.tour, server.url, tmp_path, SMOL, words=False)
    agree("openai at llama.cpp", ours, theirs)


async def test_anthropic_at_llama_cpp(tmp_path: Path) -> None:
    async with llama() as server:
        ours, theirs = await both(by_anthropic.tour, server.url, tmp_path, SMOL, words=False)
    agree("anthropic at llama.cpp", ours, theirs)


async def test_openai_at_a_stand_in_that_looks_at_images_and_long_prompts(tmp_path: Path) -> None:
    async with toured() as url:
        ours, theirs = await both(by_openai.tour, url, tmp_path, MODEL, words=True)
    assert SEEN in ours["image"]["choices[0].message.content"]
    agree("openai at stand-in", ours, theirs)


async def test_ollama_at_a_stand_in_that_looks_at_images_and_long_prompts(tmp_path: Path) -> None:
    async with toured(as_ollama=True) as url:
        ours, theirs = await both(by_ollama.tour, url, tmp_path, MODEL, words=True)
    assert SEEN in ours["image"]["message.content"]
    agree("ollama at stand-in", ours, theirs)


async def test_anthropic_through_us_at_servers_that_do_not_speak_it(tmp_path: Path) -> None:
    """Alike in front of both kinds of server, with the words that the stand-ins say."""
    seen: dict[str, Any] = {}
    for name, as_ollama in (("openai", False), ("ollama", True)):
        async with AsyncExitStack() as running:
            folder = tmp_path / name
            folder.mkdir()
            url = await running.enter_async_context(toured(as_ollama=as_ollama))
            router = await running.enter_async_context(through(folder, {"desk": url}))
            seen[name] = await by_anthropic.tour(router, MODEL, words=True)
    assert SEEN in seen["ollama"]["image"]["content[0].text"]
    assert "360022 characters" in seen["openai"]["60,000 tokens"]["content[0].text"]
    assert seen["ollama"]["tool call"]["content[0].name"] == "get_weather"
    assert seen["ollama"]["tool call streamed"] == seen["openai"]["tool call streamed"]
    assert seen["ollama"] == seen["openai"]


def test_no_difference_is_excused_where_none_may_be() -> None:
    assert [path for each in listed() for path in each.paths if NEVER.search(path)] == []
    assert all(each.reason for each in listed())
