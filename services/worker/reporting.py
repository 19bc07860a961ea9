"""What this worker says that it is and holds.

Answers "does the log still tell the truth about this worker?". A report is a fact: it is said at the start and when something
lasting has changed, not when a model is loaded or unloaded (heartbeats tell that).
"""

from __future__ import annotations

import socket
from typing import Any

from schemas.events import WorkerReported
from services.runtime.bus import Bus
from services.runtime.clock import Clock
from services.runtime.ids import new_id
from services.runtime.logs import logger
from services.runtime.settings import Worker as WorkerSettings
from services.worker.inventory import Inventory
from services.worker.telemetry.sample import Telemetry

log = logger("worker")

DEFAULT_SUPPORTS = ("cpu_inference",)


class Reporting:
    """``report`` after each look at the backend; it says nothing twice."""

    def __init__(
        self,
        bus: Bus,
        inventory: Inventory,
        telemetry: Telemetry,
        clock: Clock,
        worker: str,
        boot: str,
        settings: WorkerSettings,
    ) -> None:
        self.name = settings.name or socket.gethostname()
        self.supports = settings.supports or DEFAULT_SUPPORTS
        self._bus, self._inventory, self._telemetry, self._clock = bus, inventory, telemetry, clock
        self._worker, self._boot, self._settings = worker, boot, settings
        self._reported: tuple[Any, ...] | None = None

    def forget(self) -> None:
        """A router lacks the report: say it again."""
        self._reported = None

    async def report(self) -> None:
        """Say it, when it is not what was said last. Raises BusError where it could not be stored."""
        models, identity = self._inventory.lasting(), self._inventory.identity
        now = (models, identity)
        if now == self._reported or not self._inventory.up:
            return
        event = WorkerReported(
            id=new_id(), at=self._clock.unix(), by=self._worker, worker=self._worker, boot=self._boot, name=self.name,
            host=socket.gethostname(), supports=tuple(self.supports), backend=identity.kind,
            backend_version=identity.version, backend_id=identity.backend_id, local=self._settings.local,
            slots=self._settings.slots, models=self._inventory.models, gpu=self._telemetry.gpu_name,
        )  # fmt: skip
        await self._bus.publish_event(event, event.id)
        self._reported = now
        log.info("reported", action="reported", models=[model.name for model in models], backend=identity.kind)
