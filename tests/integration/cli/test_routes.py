"""Virtual models as a person meets them: a file beside the data, the command line, any OpenAI client, and the doctor."""

from __future__ import annotations

from pathlib import Path

import openai
import pytest

from services.cli.ask import Narrator, ask
from services.cli.client import RouterClient
from services.cli.demo_model import missing_parts
from services.cli.doctor import examine
from services.cli.stack import free_port
from services.runtime.llama_server import LlamaServer
from support.eventually import eventually
from support.up import Up

pytestmark = pytest.mark.skipif(
    bool(missing_parts()), reason=f"not installed: {[part.package for part in missing_parts()]}"
)

FILE = (
    '[chat]\nroute_by = { saved_prefill = 1, least_completion = 1 }\n[turns]\ntargets = [{ model = "smollm2:135m" }]\n'
)


async def test_a_routes_file_in_the_data_folder_is_in_force_live_and_the_doctor_tells_its_faults(
    tmp_path: Path,
) -> None:
    port, file = free_port(), tmp_path / "data" / "routes.toml"
    file.parent.mkdir()
    file.write_text(FILE, encoding="utf-8")
    async with LlamaServer() as llama, Up(tmp_path, "--backend", llama.url, "--port", str(port)) as up:
        await up.until("worker")
        url = f"http://127.0.0.1:{port}"
        async with RouterClient(url) as client, openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="me") as users:
            await eventually(lambda: _holds(client))
            assert [m.id async for m in users.models.list()] == ["auto", "chat", "turns", "smollm2:135m"]
            headers = {"session-id": "s1"}
            for _ in range(2):
                said = await users.chat.completions.create(
                    model="chat", messages=[{"role": "user", "content": "Hi"}], max_tokens=4, extra_headers=headers
                )
                assert said.model == "smollm2:135m"
            task = (await client.get("/queue"))["tasks"]
            assert task == []
            end = await ask(
                client, {"prompt": "Hi", "model": "turns", "constraints": {"max_tokens": 4}}, Narrator(quiet=True)
            )
            explained = await client.get(f"/explain/{end['status']['task']}")
            assert (explained["decision"]["target"], explained["decision"]["policy"]["name"]) == (
                "smollm2:135m",
                "round_robin",
            )
            assert any("it is the turn of smollm2:135m (100 % of turns)" in line for line in explained["words"])
            file.write_text(FILE.replace("route_by", "rout_by"), encoding="utf-8")
            await eventually(lambda: _refused(client))
            found = [finding for finding in await examine(client, tmp_path) if finding.part == "routes"]
            assert len(found) == 1
            assert "routes.toml, line 2: chat.rout_by: is not a setting; nearest: route_by" in found[0].words
            assert (await client.get("/routes"))["virtual"] == ["auto", "chat", "turns"]
        up.interrupt()
        assert await up.ended() == 0


async def _holds(client: RouterClient) -> bool:
    return bool((await client.get("/models"))["models"])


async def _refused(client: RouterClient) -> bool:
    return (await client.get("/routes"))["problem"] is not None
