"""S10: limits per model multiplied past what the backend could bear; replies stopped, and nothing was shown.

What must hold instead: model ∧ client ∧ backend, all or nothing; a visible queue, a busy answer, never silence.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.events import TaskFailed, TaskReleased, WorkerLoad
from services.router.dispatch.permits import Limit, Limits
from services.router.dispatch.planner import plan
from simulation.check import check_log
from support.builders import build
from support.dispatching import Dispatch
from support.eventually import eventually
from support.proving import Json
from support.stub_ollama import StubOllama
from support.stub_server import Pace
from support.told_fleets import Machine, told_fleet

MODELS = ("a", "b", "c")


def flooded(limits: Limits, *, clients: int = 1) -> Dispatch:
    """One machine with room for nine at once and all its models loaded, and three tasks for each of its three models."""
    desk = Dispatch(limits)
    desk.join("w1", *MODELS, free=9)
    desk.live.hear_load(build(WorkerLoad, worker="w1", boot="b1", resident=MODELS, credit=None), desk.now)
    for n in range(9):
        desk.submit(f"t{n}", model=MODELS[n % 3], client=f"client-{n % clients}")
    settled(desk)
    return desk


def settled(desk: Dispatch) -> None:
    """Decide with honest credits until nothing more is released; what was released has started."""
    for _ in range(12):
        desk.settle()
        for task in released(desk):
            live = desk.task(task).live
            if live is not None and not live.started:
                desk.start(task, "w1")
        running = [(task, 1) for task in released(desk)]
        desk.credit("w1", *running, free=9 - len(running))


def released(desk: Dispatch) -> list[str]:
    return [name for name, task in desk.state.tasks.items() if task.live is not None]


def reasons(desk: Dispatch) -> dict[str, str]:
    return plan(desk.state, desk.live, desk.now, desk.limits).holds


def test_limits_per_model_do_not_multiply_past_what_the_backend_bears() -> None:
    desk = flooded(Limits(model=Limit(3), backend=Limit(2)))
    assert len(released(desk)) == 2
    assert desk.state.held["backend:w1"] == 2


@pytest.mark.parametrize(
    ("limits", "at_once", "why"),
    [
        (Limits(model=Limit(1)), 3, "model_full: "),
        (Limits(client=Limit(4)), 4, "client_full: client-0 has 4 running, which is its limit"),
        (Limits(backend=Limit(2)), 2, "backend_full: desk has 2 running, which is its limit"),
        (Limits(model=Limit(2), client=Limit(5), backend=Limit(4)), 4, "backend_full: "),
        (Limits(model=Limit(2), client=Limit(3), backend=Limit(4)), 3, "client_full: "),
    ],
)
def test_the_narrowest_limit_rules_and_every_waiting_task_says_which(limits: Limits, at_once: int, why: str) -> None:
    desk = flooded(limits)
    assert len(released(desk)) == at_once
    waiting = reasons(desk)
    assert len(waiting) == 9 - at_once
    assert all(reason.split(":")[0].endswith("_full") for reason in waiting.values())
    assert any(reason.startswith(why) for reason in waiting.values())


def test_a_task_that_lacks_one_permit_holds_none_of_the_others() -> None:
    desk = flooded(Limits(model=Limit(1)), clients=3)
    assert sum(held for permit, held in desk.state.held.items() if permit.startswith("client:")) == 3
    assert desk.state.held["backend:w1"] == 3


def test_the_place_of_the_one_that_ended_goes_to_the_oldest_that_waits() -> None:
    desk = flooded(Limits(backend=Limit(2)))
    desk.complete("t0")
    settled(desk)
    assert released(desk) == ["t1", "t2"]


def test_a_task_with_a_deadline_gets_a_busy_answer_instead_of_silence() -> None:
    desk = flooded(Limits(backend=Limit(2)))
    desk.submit("late", model="a", deadline_s=5.0)
    desk.settle()
    desk.wait(6.0)
    desk.settle()
    (end,) = [event for event in desk.stored.values() if isinstance(event, TaskFailed)]
    assert (end.task, end.failure) == ("late", "busy")


LIMITED = "[limits.model]\ndefault = 2\n[limits.backend]\ndefault = 4\n[limits]\nqueue_client = 8\n"


async def test_s10_the_backend_bears_what_it_can_and_everybody_else_is_told(tmp_path: Path) -> None:
    """Three models of two each would be six at once. What waits is seen with its reason; one too many is told "busy"."""
    server = StubOllama(dict.fromkeys(MODELS, Pace(token_s=0.01)), room=3)
    async with told_fleet(tmp_path, {"box": Machine(server, slots=9)}, LIMITED) as proof:
        server.gate.clear()
        tasks = [await proof.submit(model=MODELS[n % 3], max_tokens=10) for n in range(12)]

        async def held() -> list[Json]:
            shown = (await proof.http.get("/queue")).json()
            return shown["tasks"] if (shown["running"], shown["waiting"]) == (4, 8) else []

        waiting = [task for task in await eventually(held) if task["state"] == "waiting"]
        assert [task["position"] for task in waiting] == list(range(1, 9))
        assert {task["reason"].partition(":")[0] for task in waiting} <= {"model_full", "backend_full"}

        refused = await proof.http.post("/route", json={"prompt": "Me too?", "model": "a"})
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0
        assert "8 tasks waiting" in refused.json()["error"]["message"]

        server.gate.set()
        ends = await proof.all_ended(tasks)
        assert {end["status"]["state"] for end in ends} == {"completed"}
        assert server.most == 4
        log = [e.event for e in await proof.log()]
        assert check_log(log, Limits(model=Limit(2), backend=Limit(4)))[0] == []
        assert sum(isinstance(event, TaskReleased) for event in log) == 12
