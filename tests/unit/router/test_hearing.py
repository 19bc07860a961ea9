"""What cannot be read is passed by; what can, reaches the desk once and in order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count

import msgspec
import pytest

from schemas import events
from schemas.events import AnyEvent
from schemas.exchange import SEQUENCE_HEADER, TIME_HEADER
from schemas.subjects import ROUTER_CANCEL, event_subject, heartbeat_subject, item_subject, token_subject
from schemas.work import CancelTask, TokenChunk, encode_wire
from services.router.desk import Desk
from services.router.dispatch.permits import Limits
from services.router.follow import Channels
from services.router.hearing import Hearing
from services.runtime.bus import Bus
from support.builders import CREDIT, DESK, TASK, build
from support.eventually import eventually


class Ears:
    """A hearing and what it handed over."""

    def __init__(self, bus: Bus) -> None:
        numbers = count()
        self.desk = Desk("r1", slider=1.0, limits=Limits(), new_id=lambda: f"id-{next(numbers)}")
        self.channels = Channels()
        self.told: list[AnyEvent] = []
        self.steps = 0
        self.hearing = Hearing(bus, self.desk, self.channels, step=self._step, told=self.told.append)

    def _step(self) -> None:
        self.steps += 1


@pytest.fixture
async def ears(bus: Bus) -> AsyncIterator[Ears]:
    ears = Ears(bus)
    await bus.publish_event(build(events.TaskSubmitted, task="before"), "before")
    await ears.hearing.start()
    yield ears
    await ears.hearing.stop()


async def test_the_log_so_far_is_folded_before_anybody_is_told(ears: Ears, bus: Bus) -> None:
    assert "before" in ears.desk.state.tasks
    assert (ears.told, ears.steps) == ([], 0)
    fact = build(events.TaskSubmitted)
    await bus.publish_event(fact, TASK)
    await eventually(lambda: ears.told == [fact] and ears.steps == 1)


async def test_what_is_no_event_or_of_a_later_version_is_counted_and_passed(ears: Ears, bus: Bus) -> None:
    for n, data in enumerate((b"not json", b'{"type":"task.invented","v":1}', b'{"type":"task.submitted","v":1}')):
        await bus.publish_stored(event_subject("task.submitted", "r"), data, f"x{n}")
    await bus.publish_event(build(events.TaskSubmitted), TASK)
    await eventually(lambda: TASK in ears.desk.state.tasks)
    assert (ears.hearing.unknown_events, ears.desk.state.position) == (3, 5)


async def test_an_imported_fact_keeps_its_time(ears: Ears, bus: Bus) -> None:
    from schemas.codec import encode

    headers = {TIME_HEADER: "123456", SEQUENCE_HEADER: "9"}
    fact = build(events.TaskSubmitted)
    await bus.publish_stored(event_subject("task.submitted", "r"), encode(fact), TASK, headers)
    await eventually(lambda: TASK in ears.desk.state.tasks)
    assert (ears.desk.state.tasks[TASK].at_us, ears.desk.state.tasks[TASK].seq) == (123_456, 2)


async def test_credits_loads_and_tokens_reach_the_desk(ears: Ears, bus: Bus) -> None:
    from schemas.codec import encode

    live = ears.desk.live
    await bus.send("credit.x", msgspec.json.encode(CREDIT))
    await eventually(lambda: DESK in live.workers)
    await bus.send(heartbeat_subject(DESK), encode(build(events.WorkerLoad)))
    await eventually(lambda: live.workers[DESK].load is not None)
    live.lease((TASK, 1), "b7", -5.0)
    ears.channels.open(TASK)
    await bus.send(token_subject(DESK, TASK), encode_wire(TokenChunk(task=TASK, attempt=1, index=0, text="a")))
    await eventually(lambda: live.leases[TASK, 1].heard_at == 0.0)
    channel = ears.channels.get(TASK)
    assert channel is not None and [token.text for token in channel.tokens] == ["a"]


async def test_rubbish_on_any_subject_harms_nobody(ears: Ears, bus: Bus) -> None:
    for subject in ("credit.x", heartbeat_subject("x"), "tok.x.y", ROUTER_CANCEL):
        await bus.send(subject, b"\xff{")
    await bus.send("credit.x", msgspec.json.encode(CREDIT))
    await eventually(lambda: DESK in ears.desk.live.workers)


async def test_a_wish_to_cancel_counts_for_open_tasks_only(ears: Ears, bus: Bus) -> None:
    for task in ("nobody's", "before"):
        await bus.send(ROUTER_CANCEL, encode_wire(CancelTask(task=task, reason="gone")))
    await eventually(lambda: ears.desk.live.cancels == {"before": "gone"})


async def test_an_item_that_the_server_gave_up_is_revoked(ears: Ears, bus: Bus) -> None:
    seq = (await bus.publish_stored(item_subject("c", "m", "any", "t", 2), b"{}", "t.2")).seq
    advisory = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.TASKS.g"
    body = (await bus.publish_stored("task.in.me.t", b"{}", "t.in")).seq
    await bus.send(advisory, b"nonsense")
    await bus.send(advisory, msgspec.json.encode({"stream": "TASKS", "consumer": "g", "stream_seq": body}))
    await bus.send(advisory, msgspec.json.encode({"stream": "TASKS", "consumer": "g", "stream_seq": seq}))
    await eventually(lambda: ears.desk.live.revoked == {("t", 2)})
