"""Asking a decision service: what of it reaches the log."""

from __future__ import annotations

from itertools import count

import httpx
import msgspec

from schemas import events
from schemas.work import Body
from services.router.decider import Decider
from services.router.desk import Desk
from services.router.dispatch.permits import Limits
from services.router.policy.routes import DecisionService, Route, Routes, Target
from services.router.port import NewTask
from services.runtime.clock import SystemClock
from support.builders import build
from support.router_port import MemoryRouter

SECRET = "http://me:hunter2@judge.lan/ask?key=hunter2"


def desk_with(service: DecisionService) -> Desk:
    numbers = count()
    desk = Desk("router-1", slider=1.0, limits=Limits(), new_id=lambda: f"id-{next(numbers)}")
    report = build(events.WorkerReported)
    models = tuple(msgspec.structs.replace(report.models[0], name=name) for name in ("large", "small"))
    desk.fold([(msgspec.structs.replace(report, models=models), 1, 1)])
    route = Route(
        name="smart", by="policy", targets=tuple(Target(model=name) for name in ("small", "large")),
        plugins={"decision_service": 10.0}, decision=service,
    )  # fmt: skip
    desk.routes = Routes(routes={"smart": route})
    return desk


async def test_the_log_learns_who_was_asked_but_not_the_key_it_was_asked_with() -> None:
    asked: list[httpx.Request] = []

    def says(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={"option": 1, "confidence": 0.9})

    desk = desk_with(DecisionService(url=SECRET))
    decider = Decider(MemoryRouter(), desk, (), SystemClock(), transport=httpx.MockTransport(says))
    task = await decider.advised(NewTask(client="me", body=Body(prompt="Hello"), wants=events.Wants(route="smart")))
    await decider.close()
    assert str(asked[0].url).endswith("/ask?key=hunter2")
    assert task.verdict is not None
    assert (task.verdict.by, task.verdict.reason) == ("http://judge.lan/ask", None)
