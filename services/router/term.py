"""A router's terms as dispatcher, and what it leaves behind for the next: the election kept up, the fold saved.

Answers "do we decide now?" for the desk. Neither the lack of a server nor a lost answer ends it: each is tried again.
"""

from __future__ import annotations

import asyncio

import msgspec

from schemas.errors import BusError
from schemas.events import DispatcherElected
from schemas.subjects import DISPATCHER_KEY, ROUTER_BUCKET, SNAPSHOT_KEY
from services.router.desk import Desk
from services.router.dispatch.engine import restore, snapshot
from services.runtime.bus import Bus
from services.runtime.clock import Clock
from services.runtime.election import Election
from services.runtime.logs import logger

log = logger("router")

SNAPSHOT_S = 15.0
"""How often the fold is saved: a restart then folds at most this much of the log, at 100,000 events a second."""
SAY_S = 2.0
"""How long saying "elected" is tried before the key is renewed again: shorter than the key's lease."""
RENEW_S, CAMPAIGN_S = 1.0, 0.5


class Term:
    """``restore`` first; then ``campaign`` and ``save_often`` run for ever."""

    def __init__(self, bus: Bus, desk: Desk, clock: Clock) -> None:
        self._bus, self._desk, self._clock = bus, desk, clock
        self._election = Election(bus, desk.router, DISPATCHER_KEY)
        self._said = -1
        self._saved = 0

    async def campaign(self) -> None:
        while True:
            try:
                await self._campaign_once()
            except BusError as error:
                log.warning("cannot reach the dispatcher's key", action="election_waits", error=str(error))
            await asyncio.sleep(RENEW_S if self._election.epoch >= 0 else CAMPAIGN_S)

    async def _campaign_once(self) -> None:
        election = self._election
        if election.epoch < 0:
            await election.campaign(self._desk.now)
        elif not await election.renew():
            self._desk.epoch = -1
        if election.epoch >= 0 and self._said != election.epoch:
            await self._say(election.epoch)

    async def _say(self, epoch: int) -> None:
        """The first fact of our term; nothing is decided before the fold has it."""
        if self._desk.epoch != epoch:
            self._desk.elected(epoch)
        router, at = self._desk.router, self._clock.unix()
        event = DispatcherElected(id=self._desk.new_id(), at=at, by=router, epoch=epoch, router=router)
        await self._bus.publish_event(event, f"elected.{epoch}", deadline_s=SAY_S)
        self._said = epoch
        log.info("dispatcher elected", action="dispatcher_elected", epoch=epoch)

    async def save_often(self) -> None:
        while True:
            await asyncio.sleep(SNAPSHOT_S)
            if self._desk.state.position > self._saved and self._election.epoch >= 0:
                await self.save()

    async def save(self) -> None:
        position = self._desk.state.position
        try:
            await self._bus.kv_put(ROUTER_BUCKET, SNAPSHOT_KEY, snapshot(self._desk.state))
            self._saved = position
        except BusError as error:
            log.warning("no snapshot", action="snapshot_failed", error=str(error))

    async def restore(self) -> None:
        """The saved fold, unless it is unreadable or of another log: then everything is read from the beginning."""
        found = await self._bus.kv_get(ROUTER_BUCKET, SNAPSHOT_KEY)
        if found is None:
            return
        try:
            state = restore(found.data)
        except msgspec.DecodeError as error:
            log.warning("snapshot not readable, folding from the start", action="snapshot_bad", error=str(error))
            return
        if state.position <= await self._bus.last_seq("EVENTS"):
            self._desk.state = state
