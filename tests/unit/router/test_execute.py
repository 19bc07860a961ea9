"""Every action ends: done, or asked for again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from schemas import events
from schemas.errors import BusError
from schemas.streams import lane_consumer
from schemas.subjects import control_subject, item_subject, lane_durable
from schemas.work import Control, WorkItem, decode_wire
from services.router import execute
from services.router.dispatch.actions import Action, DeleteItem, DropConsumer, EnsureConsumer, Publish, PutItem, Tell
from services.router.dispatch.engine import mark_pending
from services.router.dispatch.live import Live
from services.router.execute import Executor
from services.runtime.bus import Bus
from support.builders import build
from support.eventually import eventually

EVENT = build(events.TaskSubmitted)
ITEM = WorkItem(
    task="t", attempt=1, epoch=1, model="m", capability="c", lane="any", domain="d", client="me", body="task.in.me.t"
)
SUBJECT = item_subject("c", "m", "any", "t", 1)


class Doing:
    """An executor and how often it said that the engine should look again."""

    def __init__(self, bus: Bus) -> None:
        self.live, self.looked = Live(), 0
        self.position = 0
        self.executor = Executor(bus, self.live, now=lambda: 7.0, position=lambda: self.position, done=self._done)

    def _done(self) -> None:
        self.looked += 1

    async def do(self, *actions: Action) -> None:
        mark_pending(self.live, list(actions))
        self.executor.start(list(actions))
        await eventually(lambda: self.executor.idle)


@pytest.fixture
async def doing(bus: Bus) -> AsyncIterator[Doing]:
    doing = Doing(bus)
    yield doing
    await doing.executor.close()


async def test_a_fact_stays_pending_until_the_fold_has_it(doing: Doing) -> None:
    await doing.do(Publish(EVENT, "t"))
    assert (doing.live.pending, doing.looked) == ({"t": 1}, 0)
    doing.live.folded(1)
    assert doing.live.pending == {}


async def test_a_fact_that_the_fold_had_before_its_ack_came_is_looked_at(doing: Doing) -> None:
    """Its note overtook the ack: when the fold looked it was still pending, and nothing was released beside it."""
    doing.position = 1
    await doing.do(Publish(EVENT, "t"))
    assert (doing.live.pending, doing.looked) == ({}, 1)


async def test_facts_and_items_of_one_pass_are_stored_in_its_order_and_before_any_task_of_it_runs(
    doing: Doing, bus: Bus
) -> None:
    facts = [Publish(build(events.TaskSubmitted, id=f"e{n}", task=f"t{n}"), f"t{n}") for n in range(50)]
    doing.executor.start(list(facts))
    assert await bus.fence()
    stored = [await bus.stored("EVENTS", seq) for seq in range(1, 51)]
    assert [(one.headers or {})["Nats-Msg-Id"] for one in stored if one is not None] == [f"t{n}" for n in range(50)]


async def test_a_first_try_without_an_answer_is_repeated_under_the_same_id(
    doing: Doing, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored, and its ack lost: the second try is a duplicate, and the fact is there once."""
    really = bus.try_stored

    def unanswered(*said: Any, **options: Any) -> Any:
        tried = really(*said, **options)
        assert tried is not None
        tried.set_result(None)
        return tried

    monkeypatch.setattr(bus, "try_stored", unanswered)
    await doing.do(Publish(EVENT, "t"), PutItem(("t", 1), ITEM, SUBJECT, "t.1", look_first=False))
    assert (doing.live.pending, doing.live.items) == ({"t": 1}, {("t", 1): (1, 7.0)})


async def test_what_is_still_unanswered_at_the_end_is_let_go(doing: Doing) -> None:
    doing.live.pending["t"] = None
    doing.executor.start([Publish(EVENT, "t")])
    await doing.executor.close()
    await eventually(lambda: doing.executor.idle)
    assert (doing.live.pending, doing.looked) == ({"t": None}, 0)


@pytest.mark.parametrize("is_unwanted", [False, True])
async def test_an_item_that_lies_there_is_looked_at_where_somebody_stopped_wanting_it(
    doing: Doing, is_unwanted: bool
) -> None:
    if is_unwanted:
        doing.live.cancels["t"] = "asked"
    await doing.do(PutItem(("t", 1), ITEM, SUBJECT, "t.1", look_first=False))
    assert doing.looked == is_unwanted


async def test_an_item_is_put_once_also_by_a_router_that_comes_after(doing: Doing, bus: Bus) -> None:
    await doing.do(PutItem(("t", 1), ITEM, SUBJECT, "t.1", look_first=False))
    assert (doing.live.items, doing.live.pending) == ({("t", 1): (1, 7.0)}, {})
    after = Doing(bus)
    await after.do(PutItem(("t", 1), ITEM, SUBJECT, "another id", look_first=True))
    assert after.live.items == {("t", 1): (1, 7.0)}
    await after.do(DeleteItem(("t", 1), 1))
    assert after.live.items == {} and await bus.stored("TASKS", 1) is None


async def test_a_consumer_is_confirmed_once_the_server_has_it_and_dropped_once_it_has_not(
    doing: Doing, bus: Bus
) -> None:
    lane = lane_durable("w")
    await doing.do(EnsureConsumer(lane, 2, lane_consumer("w", slots=2)))
    assert doing.live.confirmed == {lane: 2}
    assert (await bus.api(f"CONSUMER.INFO.TASKS.{lane}"))["name"] == lane
    doing.live.unheld[lane] = 0.0
    await doing.do(DropConsumer(lane))
    assert (doing.live.confirmed, doing.live.unheld, doing.live.pending) == ({}, {}, {})
    with pytest.raises(BusError):
        await bus.api(f"CONSUMER.INFO.TASKS.{lane}")


async def test_a_control_message_reaches_its_worker(doing: Doing, bus: Bus) -> None:
    told: list[Any] = []
    await bus.listen(control_subject("w"), told.append)
    await doing.do(Tell("w", Control(command="hello", armable=("x",))))
    await eventually(lambda: bool(told))
    assert decode_wire(told[0].data, Control).armable == ("x",)


@pytest.mark.parametrize("error", [BusError("refused"), RuntimeError("our own mistake")])
async def test_whatever_fails_is_no_longer_pending_and_is_looked_at_again(
    doing: Doing, bus: Bus, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(bus, "try_stored", lambda *_, **__: None)
    monkeypatch.setattr(bus, "publish_stored", fail)
    await doing.do(Publish(EVENT, "t"), PutItem(("t", 1), ITEM, SUBJECT, "t.1", look_first=False))
    assert (doing.live.pending, doing.live.items, doing.looked) == ({}, {}, 2)


async def test_closing_leaves_nothing_running(doing: Doing, bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(bus, "try_stored", lambda *_, **__: None)
    monkeypatch.setattr(bus, "publish_event", never)
    doing.executor.start([Publish(EVENT, "t")])
    await doing.executor.close()
    assert doing.executor.idle


async def test_a_duplicate_that_the_fold_has_passed_is_no_busy_loop(
    doing: Doing, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bus.publish_event(EVENT, "t")
    await doing.do(Publish(EVENT, "t"))
    assert doing.live.pending == {"t": 1}  # not folded yet: the fold will tell
    doing.position = 1
    doing.live.folded(1)
    monkeypatch.setattr(execute, "AGAIN_S", 3_600.0)
    mark_pending(doing.live, [Publish(EVENT, "t")])
    doing.executor.start([Publish(EVENT, "t")])
    assert await bus.fence()
    await bus.publish_event(EVENT, "another")
    assert doing.live.pending == {"t": None} and doing.looked == 0
