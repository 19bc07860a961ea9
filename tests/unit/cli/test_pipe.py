"""``headrace pipe``: what it prints, and what it changes in an Open WebUI, once and again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from hatchling.builders.wheel import WheelBuilder

from services.cli import pipe
from services.cli.__main__ import run
from services.cli.exits import CommandFailed, Exit
from services.cli.openwebui import OpenWebUI
from services.cli.pipe import BRIDGE, EVERYBODY, PIPE, install_into, source
from services.router.http.app import create_app
from services.router.http.serving import serving
from support.router_port import MemoryRouter

Json = dict[str, Any]


class FakeOpenWebUI:
    """What Open WebUI 0.12.4 keeps of functions, valves and model entries; ``asked`` are the paths that changed something."""

    def __init__(self) -> None:
        self.functions: dict[str, Json] = {}
        self.valves: dict[str, Json | None] = {}
        self.entries: dict[str, Json] = {}
        self.asked: list[str] = []

    def client(self) -> OpenWebUI:
        return OpenWebUI("http://webui", "sk-1", transport=httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        parts = request.url.path.strip("/").split("/")
        body = json.loads(request.content) if request.content else {}
        if request.method == "POST":
            self.asked.append(request.url.path)
        match parts:
            case ["api", "version"]:
                found: Any = {"version": "0.12.4"}
            case ["api", "models"]:
                on = [f for f in self.functions.values() if f["is_active"] and f["id"] == PIPE]
                found = {"data": [{"id": f["id"], "name": f["name"], "pipe": {"type": "pipe"}} for f in on]}
            case ["api", "v1", "functions", "list"]:
                found = [{key: f[key] for key in ("id", "is_active")} for f in self.functions.values()]
            case ["api", "v1", "functions", "create"]:
                found = self.functions[body["id"]] = {**body, "is_active": False}
            case ["api", "v1", "functions", "id", name]:
                found = self.functions[name]
            case ["api", "v1", "functions", "id", name, "update"]:
                found = self.functions[name] = {**self.functions[name], **body}
            case ["api", "v1", "functions", "id", name, "toggle"]:
                self.functions[name]["is_active"] = not self.functions[name]["is_active"]
                found = self.functions[name]
            case ["api", "v1", "functions", "id", name, "valves"]:
                found = self.valves.get(name)
            case ["api", "v1", "functions", "id", name, "valves", "update"]:
                found = self.valves[name] = body
            case ["api", "v1", "models", "model"]:
                found = self.entries.get(request.url.params["id"])
                return httpx.Response(200 if found else 404, content=json.dumps(found))
            case ["api", "v1", "models", *_]:
                found = self.entries[body["id"]] = body
            case _:
                return httpx.Response(404)
        return httpx.Response(200, content=json.dumps(found))  # json=None would be no content at all


async def install(there: FakeOpenWebUI, **valves: Any) -> list[str]:
    async with there.client() as client:
        return list((await install_into(client, valves))["changes"])


async def test_installing_makes_everything_and_again_changes_nothing() -> None:
    there = FakeOpenWebUI()
    changes = await install(there, ROUTER_URL="http://router:8420")
    assert len(changes) == 7
    assert {name: f["is_active"] for name, f in there.functions.items()} == {PIPE: True, BRIDGE: True}
    assert there.entries[PIPE]["access_grants"] == [EVERYBODY]
    assert there.entries[PIPE]["meta"]["capabilities"] == {"usage": True, "builtin_tools": False}
    there.asked.clear()
    assert await install(there, ROUTER_URL="http://router:8420") == []
    assert there.asked == []


async def test_what_was_set_by_hand_stays() -> None:
    there = FakeOpenWebUI()
    await install(there, ROUTER_URL="http://router:8420")
    there.valves[PIPE] = {"ROUTER_URL": "http://elsewhere", "TASKS": "small"}
    own = {"principal_type": "group", "principal_id": "g1", "permission": "write"}
    there.entries[PIPE] |= {"name": "Ours", "access_grants": [own | {"id": "x"}], "params": {"system": "Be brief."}}
    await install(there)
    assert there.valves[PIPE] == {"ROUTER_URL": "http://elsewhere", "TASKS": "small"}
    await install(there, API_KEY="k")
    assert there.valves[PIPE] == {"ROUTER_URL": "http://elsewhere", "TASKS": "small", "API_KEY": "k"}
    entry = there.entries[PIPE]
    assert (entry["name"], entry["params"], entry["access_grants"]) == (
        "Ours",
        {"system": "Be brief."},
        [own, EVERYBODY],
    )


async def test_an_older_function_is_updated_and_one_that_is_off_is_switched_on() -> None:
    there = FakeOpenWebUI()
    await install(there)
    there.functions[PIPE] |= {"content": "older", "is_active": False}
    assert await install(there) == ["updated the function headrace", "switched on headrace"]
    assert there.functions[PIPE]["content"] == source(PIPE)


def test_it_prints_either_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pipe"]) == Exit.OK
    assert capsys.readouterr().out == source(PIPE)
    assert run(["pipe", "--ratings"]) == Exit.OK
    assert capsys.readouterr().out == source(BRIDGE)


def test_installing_without_a_key_says_where_to_get_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENWEBUI_KEY", raising=False)
    assert run(["pipe", "--install", "http://127.0.0.1:1"]) == Exit.USAGE
    assert run(["pipe", "--install", "http://127.0.0.1:1", "--key", "k"]) == Exit.UNREACHABLE
    said = capsys.readouterr().err
    assert "needs the key of an administrator" in said and "no Open WebUI answers at http://127.0.0.1:1" in said


def test_a_damaged_file_is_told_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / pipe.SOURCES[PIPE]).write_text('"""\n"""\ndef broken(:\n')
    monkeypatch.setattr(pipe, "FOLDER", tmp_path)
    with pytest.raises(CommandFailed, match="line 3"):
        source(PIPE)


def test_an_installed_wheel_has_the_functions_where_the_command_looks(tmp_path: Path) -> None:
    """Built as it is released."""
    builder = WheelBuilder(str(pipe.FOLDER.parent))
    site = tmp_path / "site"
    with zipfile.ZipFile(next(builder.build(directory=str(tmp_path), versions=["standard"]))) as wheel:
        wheel.extractall(site)
    said = subprocess.run(
        [sys.executable, "-m", "services.cli", "pipe"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout == source(PIPE)
    assert (site / "openwebui" / pipe.SOURCES[BRIDGE]).exists()


async def test_a_router_that_this_machine_does_not_reach_is_doubted_and_one_that_answers_is_not() -> None:
    done = {"version": "0.12.4", "url": "http://webui", "models": ["Headrace"], "changes": []}
    async with serving(create_app(MemoryRouter()), "127.0.0.1", 0) as url:
        assert await pipe._is_router(url)
        said = pipe._said(done | {"router": url, "reached_from_here": True}).plain
    assert said.endswith(f"Headrace: ready, by the router at {url}")
    assert not await pipe._is_router(url)
    assert (
        "No router answers there from this machine"
        in pipe._said(done | {"router": url, "reached_from_here": False}).plain
    )
