"""What real answers taught, as the router shows it: one number, the same in the table, the sum, the map and the preview."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.eventually import eventually
from support.proving import Json
from support.stub_server import Pace, StubServer
from support.told_fleets import Machine, chats, told_fleet


async def test_every_surface_shows_the_number_that_decides(tmp_path: Path) -> None:
    server = StubServer({"stub": Pace(token_s=0.01)})
    async with told_fleet(tmp_path, {"box": Machine(server, slots=1)}) as proof:
        await chats(proof, 4, at_once=1, max_tokens=20)

        async def measured() -> Json | None:
            rows = (await proof.http.get("/stats")).json()["rows"]
            return rows[0] if rows and rows[0]["fields"]["decode"]["n"] == 4 else None

        row = await eventually(measured)
        assert row is not None
        cell = {name: row[name] for name in ("model", "domain", "worker")}
        told = (await proof.http.get("/stats/explain", params=cell)).json()
        (speed,) = (await proof.http.get("/stats/map", params={"of": "decode"})).json()["maps"]
        asked = {"prompt": "hello", "model": row["model"], "domain": row["domain"]}
        (candidate,) = (await proof.http.get("/route/preview", params=asked)).json()["candidates"]
        picture = (await proof.http.get("/stats.svg")).text

        decode = told["fields"]["decode"]
        assert decode["levels"][-1]["result"] == decode["measure"]["value"] == row["expected"]["decode"]["value"]
        assert candidate["decode"]["value"] == decode["measure"]["value"]
        assert speed["rows"][0]["blocks"][0]["value"] == decode["measure"]["value"]
        ran = told["as_ran"]["decode"]
        assert ran["alone"] == pytest.approx(decode["levels"][-1]["value"], rel=1e-4)
        assert ">box<" in picture and row["model"] in picture
