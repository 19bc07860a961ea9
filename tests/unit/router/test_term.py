"""A term begins with its fact, ends with the key, and leaves a fold behind."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from schemas import events
from schemas.errors import BusError
from schemas.subjects import ROUTER_BUCKET, SNAPSHOT_KEY
from services.router.desk import Desk
from services.router.dispatch.permits import Limits
from services.router.term import Term
from services.runtime.bus import Bus
from services.runtime.clock import FakeClock
from support.builders import build
from support.routers import whole_log


def desk_of(router: str = "r1") -> Desk:
    numbers = count()
    return Desk(router, slider=1.0, limits=Limits(), new_id=lambda: f"{router}-{next(numbers)}")


def term_of(bus: Bus, desk: Desk) -> Term:
    return Term(bus, desk, FakeClock(1_000.0))


async def test_the_first_fact_of_a_term_says_who_was_elected_under_which_epoch(bus: Bus) -> None:
    desk = desk_of()
    await term_of(bus, desk)._campaign_once()
    (elected,) = await whole_log(bus)
    assert isinstance(elected, events.DispatcherElected)
    assert (elected.router, elected.epoch, desk.epoch) == ("r1", desk.epoch, elected.epoch)


async def test_what_could_not_be_said_is_said_again(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = desk_of()
    term = term_of(bus, desk)
    publish = bus.publish_event

    async def lost(*_: Any, **__: Any) -> None:
        raise BusError("no answer")

    monkeypatch.setattr(bus, "publish_event", lost)
    with pytest.raises(BusError):
        await term._campaign_once()
    monkeypatch.setattr(bus, "publish_event", publish)
    await term._campaign_once()
    assert [event.epoch for event in await whole_log(bus) if isinstance(event, events.DispatcherElected)] == [
        desk.epoch
    ]
    await term._campaign_once()
    assert len(await whole_log(bus)) == 1


async def test_a_deposed_router_stops_deciding(bus: Bus) -> None:
    first, second = desk_of("r1"), desk_of("r2")
    deposed, heir = term_of(bus, first), term_of(bus, second)
    await deposed._campaign_once()
    await heir._campaign_once()
    second.clock.seconds = 10.0
    await heir._campaign_once()
    assert second.epoch > first.epoch
    await deposed._campaign_once()
    assert first.epoch == -1


async def test_a_new_term_forgets_the_deadlines_of_a_former_one(bus: Bus) -> None:
    desk = desk_of()
    desk.live.items["t", 1] = (1, 0.0)
    await term_of(bus, desk)._campaign_once()
    assert desk.live.items == {}


async def test_the_fold_comes_back_as_it_was_saved(bus: Bus) -> None:
    before, after = desk_of(), desk_of()
    for n in range(3):
        await bus.publish_event(build(events.TaskSubmitted, task=f"t{n}"), f"t{n}")
        before.fold([(build(events.TaskSubmitted, task=f"t{n}"), n + 1, 5)])
    await term_of(bus, before).save()
    await term_of(bus, after).restore()
    assert after.state == before.state and after.state.position == 3


@pytest.mark.parametrize("saved", [b"not json", b'{"position":99}'])
async def test_a_fold_that_is_unreadable_or_of_another_log_is_not_taken(bus: Bus, saved: bytes) -> None:
    await bus.kv_put(ROUTER_BUCKET, SNAPSHOT_KEY, saved)
    desk = desk_of()
    await term_of(bus, desk).restore()
    assert desk.state.position == 0
