"""Open WebUI's Ollama connection with the router as its Ollama: it lists, shows and chats, unchanged. ``make e2e-openwebui``."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from services.cli.parts import BackendAt
from services.cli.stack import Stack
from support.backends import Stub, ollama_stand_in
from support.docker import Unavailable
from support.openwebui import OpenWebUI

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]
MODEL = "m:latest"
HI = [{"role": "user", "content": "Hi"}]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def webui(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[OpenWebUI, Stub]]:
    folder: Path = tmp_path_factory.mktemp("site")
    async with AsyncExitStack() as running:
        stub = await running.enter_async_context(ollama_stand_in())
        backends = [BackendAt("desk", stub.url, folder="desk")]
        stack = await running.enter_async_context(Stack(folder / "data", backends=backends, sync="10s"))
        try:
            site = OpenWebUI(
                folder / "webui",
                "",
                ENABLE_OPENAI_API="False",
                ENABLE_OLLAMA_API="True",
                OLLAMA_BASE_URLS=stack.router_url,
            )
            yield await running.enter_async_context(site), stub
        except Unavailable as reason:
            pytest.skip(str(reason))


async def test_its_connection_lists_the_fleet_and_its_routes(webui: tuple[OpenWebUI, Stub]) -> None:
    admin = webui[0].admin
    listed = (await admin.get("/api/models")).raise_for_status().json()["data"]
    assert {model["id"] for model in listed if model.get("owned_by") == "ollama"} == {"auto", MODEL, "big:70b"}
    assert (await admin.get("/ollama/api/version")).raise_for_status().json()["version"] == "0.24.0"
    assert (await admin.get("/ollama/api/ps")).status_code == 200
    shown = await admin.post("/ollama/api/show", json={"model": MODEL})
    assert shown.raise_for_status().json()["capabilities"] == ["completion", "tools"]


@pytest.mark.parametrize("model", [MODEL, "auto"])
async def test_a_chat_streams_through_it(webui: tuple[OpenWebUI, Stub], model: str) -> None:
    site, stub = webui
    asked = {"model": model, "messages": HI, "stream": True, "options": {"num_predict": 4, "num_ctx": 2048}}
    reply = (await site.admin.post("/ollama/api/chat", json=asked)).raise_for_status()
    lines = [json.loads(line) for line in reply.text.splitlines()]
    assert "".join(line["message"]["content"] for line in lines) == "word0 word1 word2 word3 "
    assert lines[-1]["done"]
    assert "num_ctx" not in stub.chats()[-1]["options"]


async def test_its_own_chat_completion_goes_over_the_connection(webui: tuple[OpenWebUI, Stub]) -> None:
    asked = {"model": MODEL, "messages": HI, "stream": False, "max_tokens": 3}
    reply = (await webui[0].admin.post("/api/chat/completions", json=asked)).raise_for_status().json()
    assert reply["choices"][0]["message"]["content"] == "word0 word1 word2 "


async def test_an_unknown_model_and_a_deletion_are_refused_in_words(webui: tuple[OpenWebUI, Stub]) -> None:
    refused = await webui[0].admin.request("DELETE", "/ollama/api/delete", json={"model": MODEL})
    assert refused.status_code >= 400
