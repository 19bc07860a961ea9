"""Keys and sites while a router runs: in force at once, and gone as soon as their line is."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from services.cli.__main__ import run
from services.cli.stack import Stack
from support.eventually import eventually

PROXIED = {"x-forwarded-for": "192.168.1.9"}
"""From another machine, as far as the router can tell."""


async def test_a_key_opens_from_the_moment_that_it_is_made_until_its_line_is_taken_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "headrace.toml"

    def make(name: str) -> dict[str, str]:
        assert run(["key", "add", name, "--config", str(config)]) == 0
        return PROXIED | {"authorization": f"Bearer {capsys.readouterr().out.strip()}"}

    config.write_text("# whose fleet this is\n")
    async with (
        Stack(tmp_path / "fleet", sync="10s", config=config, restart=False) as stack,
        httpx.AsyncClient(base_url=stack.router_url) as http,
    ):

        async def let_in(headers: dict[str, str]) -> bool:
            reply = await http.get("/queue", headers=headers)
            assert reply.status_code in (200, 401, 429), reply.text
            return reply.status_code == 200

        async def shut(headers: dict[str, str]) -> bool:
            return not await let_in(headers)

        async def refused() -> str | None:
            problem: str | None = (await http.get("/readyz")).json()["settings"]
            return problem

        assert await let_in(PROXIED), "without keys everybody may ask"
        mine = make("me")
        await eventually(lambda: shut(PROXIED))
        assert await let_in(mine)
        yours = make("you")
        await eventually(lambda: let_in(yours))

        good = config.read_text()
        config.write_text(good.replace('sha256 = "', 'sha256 = "not-', 1))
        problem = await eventually(refused)
        assert problem is not None and "keys.me.sha256" in problem
        assert await let_in(mine) and await let_in(yours)

        config.write_text("".join(line for line in good.splitlines(keepends=True) if not line.startswith("me")))
        await eventually(lambda: shut(mine))
        assert await let_in(yours)
        config.write_text("# nobody's\n")
        await eventually(lambda: shut(yours))
        assert await shut(PROXIED), "taking out the last key lets nobody in"
        assert await let_in({}), "but who is at the machine"


async def test_a_site_may_ask_from_the_moment_that_it_is_named_until_it_is_taken_out(tmp_path: Path) -> None:
    config, chat = tmp_path / "headrace.toml", {"origin": "https://chat.example.org"}
    config.write_text("# nobody else's\n")
    async with (
        Stack(tmp_path / "fleet", sync="10s", config=config, restart=False) as stack,
        httpx.AsyncClient(base_url=stack.router_url) as http,
    ):

        async def let_in() -> bool:
            headers = (await http.get("/v1/models", headers=chat)).headers
            return headers.get("access-control-allow-origin") == chat["origin"]

        async def shut() -> bool:
            return not await let_in()

        assert await shut()
        config.write_text(f"[http]\norigins = ['{chat['origin']}']\n")
        await eventually(let_in)
        config.write_text("# nobody else's again\n")
        await eventually(shut)
