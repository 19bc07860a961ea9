"""One dispatcher at a time, by compare-and-set on a real key."""

from __future__ import annotations

from schemas.subjects import DISPATCHER_KEY
from services.runtime.bus import Bus
from services.runtime.election import LEASE_S, Election


async def test_the_first_takes_the_key_and_keeps_it_by_renewing(bus: Bus) -> None:
    first, second = Election(bus, "r1", DISPATCHER_KEY), Election(bus, "r2", DISPATCHER_KEY)
    assert await first.campaign(0.0)
    assert not await second.campaign(0.0)
    for now in (1.0, 2.0, 3.0, 4.0, 5.0):
        assert await first.renew()
        assert not await second.campaign(now)
    assert (first.epoch, second.epoch) == (1, -1)


async def test_a_silent_key_is_taken_under_a_later_epoch_and_the_deposed_one_learns_of_it(bus: Bus) -> None:
    first, second = Election(bus, "r1", DISPATCHER_KEY), Election(bus, "r2", DISPATCHER_KEY)
    await first.campaign(0.0)
    assert not await second.campaign(10.0)  # seen for the first time: its silence begins now
    assert not await second.campaign(10.0 + LEASE_S)
    assert await second.campaign(10.1 + LEASE_S)
    assert second.epoch > first.epoch
    assert not await first.renew()
    assert first.epoch == -1


async def test_of_two_that_take_it_at_once_one_gets_it(bus: Bus) -> None:
    await Election(bus, "dead", DISPATCHER_KEY).campaign(0.0)
    rivals = [Election(bus, name, DISPATCHER_KEY) for name in ("r1", "r2")]
    for rival in rivals:
        await rival.campaign(0.0)
    assert [await rival.campaign(10.0) for rival in rivals] == [True, False]


async def test_a_restarted_router_takes_its_own_key_back_at_once_under_a_new_epoch(bus: Bus) -> None:
    before, after = Election(bus, "r1", DISPATCHER_KEY), Election(bus, "r1", DISPATCHER_KEY)
    await before.campaign(0.0)
    assert await after.campaign(0.0)
    assert after.epoch > before.epoch
    assert not await before.renew()


async def test_a_renewal_whose_ack_was_lost_is_still_ours(bus: Bus) -> None:
    election = Election(bus, "r1", DISPATCHER_KEY)
    await election.campaign(0.0)
    stale = election._revision
    assert await election.renew()
    election._revision = stale  # as if the ack had never come
    assert await election.renew()
    assert election.epoch == 1


async def test_an_unreadable_key_is_free(bus: Bus) -> None:
    await bus.kv_put("router", "dispatcher", b"\xff")
    assert await Election(bus, "r1", DISPATCHER_KEY).campaign(0.0)
