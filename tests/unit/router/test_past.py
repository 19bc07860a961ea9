"""Old tasks: what the projector knows, read as if they were young."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from nats.aio.msg import Msg

from schemas import events
from schemas.codec import encode
from schemas.subjects import PROJECTOR_TASK, answer_subject
from schemas.work import Answer, encode_wire
from services.router import past
from services.runtime.bus import Bus
from support.builders import TASK, build

FACTS = [
    build(kind)
    for kind in (
        events.TaskSubmitted, events.TaskRouted, events.TaskReleased, events.TaskStarted, events.TaskCompleted,
    )
]  # fmt: skip


@pytest.fixture
async def projector(bus: Bus) -> AsyncIterator[list[dict[str, Any]]]:
    """Answers with these facts; ``asked`` grows."""
    asked: list[dict[str, Any]] = []

    async def reply(message: Msg) -> None:
        asked.append(msgspec.json.decode(message.data))
        found = asked[-1]["task"] == TASK
        raws = [msgspec.Raw(encode(fact)) for fact in FACTS] if found else []
        await bus.send(message.reply, msgspec.json.encode({"task": TASK, "found": found, "events": raws}))

    await bus.listen(PROJECTOR_TASK, reply)
    yield asked


async def test_an_old_task_is_explained_as_it_was(bus: Bus, projector: list[dict[str, Any]]) -> None:
    explained = await past.explain(bus, TASK)
    assert explained is not None
    status, routed, facts = explained
    assert (status.state, status.worker, status.attempt) == ("completed", "w-desk-4f2a", 1)
    assert routed == FACTS[1] and list(facts) == FACTS
    assert projector == [{"task": TASK}]


async def test_its_answer_is_read_from_where_its_end_says(bus: Bus, projector: list[dict[str, Any]]) -> None:
    assert await past.answer(bus, TASK) is None  # expired
    stored = Answer(task=TASK, attempt=1, model="m", worker="w", text="Tokyo")
    await bus.publish_stored(answer_subject("me", TASK, 1), encode_wire(stored), "a")
    assert await past.answer(bus, TASK) == stored


async def test_what_nobody_knows_is_none(bus: Bus, projector: list[dict[str, Any]]) -> None:
    assert await past.status(bus, "nobody's") is None
    assert await past.answer(bus, "nobody's") is None


async def test_facts_can_be_read_again_by_their_sequence(bus: Bus) -> None:
    for n, fact in enumerate(FACTS):
        await bus.publish_event(fact, f"f{n}")
    assert list(await past.events_at(bus, [1, 3, 99])) == [FACTS[0], FACTS[2]]
