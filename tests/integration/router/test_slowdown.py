"""What several streams at once cost is seen by the worker, added up by the projector and known to the router."""

from __future__ import annotations

from pathlib import Path

from schemas.events import TaskCompleted, TaskStarted
from support.eventually import eventually
from support.proving import Json
from support.stub_server import Pace, StubServer
from support.told_fleets import Machine, chats, told_fleet


async def test_streams_side_by_side_teach_what_they_cost_each_other(tmp_path: Path) -> None:
    server = StubServer({"stub": Pace(token_s=0.01)})
    async with told_fleet(tmp_path, {"box": Machine(server, slots=4)}) as proof:
        await chats(proof, 3, at_once=1, max_tokens=40)
        await chats(proof, 8, at_once=4, max_tokens=40)

        async def learned() -> Json | None:
            rows = (await proof.http.get("/stats")).json()["rows"]
            fields = rows[0]["fields"] if rows else {}
            return fields if fields and fields["decode"]["n"] == 11 else None

        fields = await eventually(learned) or {}
        log = [entry.event for entry in await proof.log()]
        ran = {event.task: event.concurrency for event in log if isinstance(event, TaskCompleted)}
        started = [event for event in log if isinstance(event, TaskStarted)]
        assert [ran[event.task] for event in started[:3]] == [1, 1, 1]
        assert started[3].concurrency == 1 < ran[started[3].task]  # it began alone, and did not run so
        assert max(ran.values()) >= 3
        assert fields["slowdown"]["value"] is not None
        assert fields["slowdown"]["n"] == sum(count > 1 for count in ran.values())
