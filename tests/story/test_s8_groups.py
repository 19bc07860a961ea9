"""S8: a shared queue was unsafe, because who took from it might lack the model.

What must hold instead: a group's members hold its model by construction.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.codec import decode
from schemas.events import AttemptFailed, Wants, WorkerLoad
from schemas.subjects import group_durable, heartbeat_subject, lane_durable
from services.router.dispatch.actions import EnsureConsumer, Tell
from services.runtime.bus import Bus
from support.dispatching import Dispatch, of
from support.stub_server import Pace, StubServer
from support.told_fleets import Machine, beats, chats, ids, told_fleet

HELD = {"desk": ("big", "small"), "laptop": ("small",), "mini": ("other",)}


def group(model: str) -> str:
    return group_durable("cpu_inference", model)


@pytest.fixture
def desk() -> Dispatch:
    """Three machines that hold different models; each says that it has a free slot, and has armed nothing yet."""
    desk = Dispatch()
    for worker, models in HELD.items():
        desk.report(worker, *models)
        desk.credit(worker, armed={})
    return desk


def armable(desk: Dispatch) -> dict[str, set[str]]:
    """What the router lets each worker pull from next; workers arm nothing else."""
    return {tell.worker: set(tell.control.armable) for tell in of(Tell, desk.settle())}


def test_a_worker_may_pull_only_for_models_that_it_reported(desk: Dispatch) -> None:
    desk.settle()
    desk.wait(2.0)
    assert armable(desk) == {worker: {lane_durable(worker), *map(group, held)} for worker, held in HELD.items()}


def test_a_group_exists_only_for_a_model_that_somebody_holds(desk: Dispatch) -> None:
    made = {action.durable for action in of(EnsureConsumer, desk.decide())}
    assert made == {group(model) for held in HELD.values() for model in held} | set(map(lane_durable, HELD))


@pytest.mark.parametrize("model", ["big", "small", "other"])
def test_whoever_may_take_a_task_from_a_group_holds_its_model(model: str) -> None:
    desk = Dispatch()
    for worker, models in HELD.items():
        desk.join(worker, *models)
    desk.submit("t1", model=model)
    desk.settle()
    attempt = desk.task("t1").attempts[1]
    assert set(attempt.holders) == {worker for worker, held in HELD.items() if model in held}


def test_a_machine_that_lost_the_model_is_no_member_any_more(desk: Dispatch) -> None:
    desk.settle()
    desk.report("laptop", "another")
    desk.settle()
    desk.wait(2.0)
    assert armable(desk)["laptop"] == {lane_durable("laptop"), group("another")}


def test_after_a_member_had_to_refuse_the_task_goes_straight_to_one_who_holds_the_model() -> None:
    """The report that the laptop lost it is late, and its old pull stood in the group."""
    desk = Dispatch()
    for worker in ("laptop", "desk"):
        desk.join(worker, "small")
    desk.submit("t1", wants=Wants(model="small"))
    desk.settle()
    assert desk.task("t1").attempts[1].lane == "any"
    desk.fail("t1", "refused")
    desk.report("laptop", "another")
    desk.settle()
    desk.wait(2.0)
    for worker in ("laptop", "desk"):
        desk.credit(worker)
    desk.settle()
    assert (desk.task("t1").attempts[2].lane, desk.task("t1").attempts[2].holders) == ("desk", ("desk",))


async def test_s8_nobody_is_given_work_for_a_model_that_it_lacks(tmp_path: Path) -> None:
    """The laptop idles while the desk alone works on the model that it alone holds; both share what both hold."""
    pace = Pace(token_s=0.02)
    machines = {
        "desk": Machine(StubServer({"big": pace, "small": pace})),
        "laptop": Machine(StubServer({"small": pace})),
    }
    async with told_fleet(tmp_path, machines) as proof:
        assert await chats(proof, 6, at_once=6, model="big") == ["desk"] * 6
        assert set(await chats(proof, 6, at_once=6, model="small")) == {"desk", "laptop"}
        assert [e.event for e in await proof.log() if isinstance(e.event, AttemptFailed)] == []
        await beats(proof, 1)
        async with await Bus.connect(proof.stack.nats_url, name="test") as bus:
            for name, worker in (await ids(proof)).items():
                stored = await bus.last_for("HEARTBEATS", heartbeat_subject(worker))
                load = None if stored is None else decode(stored.data)
                assert isinstance(load, WorkerLoad) and load.credit is not None
                mine = {group(model) for model in machines[name].server.models}
                assert set(load.credit.armed) == mine | {lane_durable(worker)}
