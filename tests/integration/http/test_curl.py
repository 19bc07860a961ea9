"""Plain ``curl``: the lines of docs/http.md work as they stand, and a curl that is stopped is noticed."""

from __future__ import annotations

import asyncio
import shutil

import msgspec
import pytest

from support.router_port import MemoryRouter

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")

QUESTION = '{"model":"auto","messages":[{"role":"user","content":"What is 6 times 7?"}]}'


async def curl(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        "curl", "-sS", "--noproxy", "*", "--max-time", "20", *arguments, stdout=asyncio.subprocess.PIPE
    )


async def said(*arguments: str) -> str:
    process = await curl(*arguments)
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode()


async def test_a_chat_is_answered(url: str) -> None:
    answer = msgspec.json.decode(await said(f"{url}/v1/chat/completions", "-d", QUESTION))
    assert answer["choices"][0]["message"]["content"] == "Hello world"
    assert answer["headrace"]["worker_name"] == "desktop"


async def test_a_prompt_is_routed_and_followed(url: str) -> None:
    task = msgspec.json.decode(await said(f"{url}/route", "-d", '{"prompt":"Hi"}'))["task"]
    assert "event: end" in await said("-N", f"{url}/task/{task}/stream")


async def test_an_error_is_readable(url: str) -> None:
    answer = await said("-w", "%{http_code}", f"{url}/v1/chat/completions", "-d", QUESTION.replace("auto", "gpt-9"))
    assert answer.endswith("404")
    assert "no worker holds the model 'gpt-9'" in answer


async def test_a_curl_that_is_killed_is_noticed(url: str, router: MemoryRouter) -> None:
    router.script = None
    process = await curl("-N", f"{url}/v1/chat/completions", "-d", QUESTION.replace('"model"', '"stream":true,"model"'))
    await router.submitted()
    process.kill()
    await process.wait()
    await router.last.abandoned()
