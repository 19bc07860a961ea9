"""One of a kind at a time: a key of the bucket ``router``, taken by compare-and-set, and the epoch that comes of it.

Answers "may I act?" for the dispatcher and the benchmarker. The epoch is the key's revision when it was *taken*; renewals keep it
in the value. Fencing is the fold's: a deposed router's late releases are refused by stream order, so this needs no clock that
others share.
"""

from __future__ import annotations

import msgspec

from schemas.errors import BusError
from schemas.subjects import ROUTER_BUCKET
from services.runtime.bus import WRONG_LAST_SEQUENCE, Bus
from services.runtime.logs import logger

log = logger("election")

LEASE_S = 3.0
"""A key that did not change for so long, on the standby's heard clock, may be taken: three missed renewals."""


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The key's value; ``router`` is whoever holds it. ``epoch`` 0 means: the revision of this very value."""

    router: str
    epoch: int
    beat: int = 0


class Election:
    """``epoch`` is ours while we hold the key, else -1."""

    def __init__(self, bus: Bus, who: str, key: str) -> None:
        self._bus, self._who, self._key = bus, who, key
        self._seen: tuple[int, float] = (0, 0.0)
        self._revision = 0
        self._beat = 0
        self.epoch = -1

    async def campaign(self, now: float) -> bool:
        """Take the key if it is free, ours (a restart), or silent for the lease; True when it was taken just now.

        Raises BusError where the server does not answer."""
        found = await self._bus.kv_get(ROUTER_BUCKET, self._key)
        revision = found.seq if found is not None else 0
        if found is not None and not self._may_take(found.data, revision, now):
            return False
        self._beat += 1
        try:
            taken = await self._put(Holder(router=self._who, epoch=0, beat=self._beat), revision)
        except BusError as error:
            if error.code != WRONG_LAST_SEQUENCE:
                raise
            return False
        self._revision = self.epoch = taken
        return True

    async def renew(self) -> bool:
        """Keep the key; False when somebody else has it, and we are deposed."""
        self._beat += 1
        try:
            self._revision = await self._put(
                Holder(router=self._who, epoch=self.epoch, beat=self._beat), self._revision
            )
        except BusError as error:
            if error.code != WRONG_LAST_SEQUENCE:
                raise
            return await self._still_ours()
        return True

    async def _still_ours(self) -> bool:
        """A renewal whose ack was lost looks like somebody else's write: read who it was."""
        found = await self._bus.kv_get(ROUTER_BUCKET, self._key)
        if found is not None:
            holder = msgspec.json.decode(found.data, type=Holder)
            if holder.router == self._who and holder.epoch == self.epoch:
                self._revision = found.seq
                return True
        log.warning("deposed", action=f"{self._key}_deposed", epoch=self.epoch)
        self.epoch = -1
        return False

    def _may_take(self, data: bytes, revision: int, now: float) -> bool:
        try:
            holder = msgspec.json.decode(data, type=Holder)
        except msgspec.DecodeError:
            return True
        if holder.router == self._who:
            return True
        if self._seen[0] != revision:
            self._seen = (revision, now)
        return now - self._seen[1] > LEASE_S

    async def _put(self, holder: Holder, revision: int) -> int:
        return await self._bus.kv_update(ROUTER_BUCKET, self._key, msgspec.json.encode(holder), revision)
