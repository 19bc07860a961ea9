"""One null-honest look at the machine, for heartbeats and reports.

Answers "how loaded is it, and by whom?" out of all sensors. A worker that speaks for a remote backend has no eyes there: all
is None with the reason ``no_agent``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from schemas.events import Gpu
from services.worker.telemetry.amd import read_amd
from services.worker.telemetry.apple import read_apple
from services.worker.telemetry.machine import Machine
from services.worker.telemetry.nvidia import Nvidia
from services.worker.telemetry.others import Others

NO_AGENT = "no_agent"
SystemGpus = Callable[[], tuple[tuple[Gpu, ...], dict[str, str]]]
FIELDS = ("cpu_use", "cpu_count", "cpu_pressure", "ram_total_bytes", "ram_available_bytes", "on_battery")


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of ``worker.load`` that sensors give."""

    cpu_use: float | None = None
    cpu_count: float | None = None
    cpu_pressure: float | None = None
    ram_total_bytes: int | None = None
    ram_available_bytes: int | None = None
    on_battery: bool | None = None
    gpus: tuple[Gpu, ...] | None = None
    others_use: float | None = None
    others_age_s: float | None = None
    unreadable: dict[str, str] = {}


class Telemetry:
    """All sensors of this machine. ``read`` takes some milliseconds and belongs in a thread."""

    def __init__(
        self,
        *,
        local: bool = True,
        root: Path = Path("/"),
        nvidia: Nvidia | None = None,
        apple: SystemGpus = read_apple,
    ) -> None:
        self._local = local
        self._root = root
        self._machine = Machine(root)
        self._nvidia = nvidia or Nvidia(root=root)
        self._apple = apple
        self.others = Others()
        self.gpu_name: str | None = None
        """The devices' names as last seen, several joined by ``+``."""

    def read(self, now: float) -> Load:
        """``now`` is the worker's monotonic clock."""
        if not self._local:
            reasons = dict.fromkeys((*FIELDS, "gpus", "others_use"), NO_AGENT)
            return Load(unreadable=reasons)
        readings = self._machine.read()
        gpus, gpu_reasons = self._gpus(now)
        if gpus:
            self.gpu_name = "+".join(gpu.name for gpu in gpus if gpu.name) or None
        is_blind = gpus is None and not self._nvidia.is_absent  # a GPU machine whose driver fails at the moment
        self.others.observe((Gpu(),) if is_blind else gpus, readings.values.get("cpu_pressure"), now)
        unreadable = readings.unreadable | gpu_reasons
        if self.others.use is None:
            unreadable["others_use"] = self.others.reason
        return Load(
            **readings.values,
            gpus=gpus,
            others_use=self.others.use,
            others_age_s=self.others.age_s(now),
            unreadable=unreadable,
        )

    def _gpus(self, now: float) -> tuple[tuple[Gpu, ...] | None, dict[str, str]]:
        """The first kind that there is. None found and NVML silent: None, because an unseen GPU is not "no GPU"."""
        gpus, reasons = self._nvidia.read(now)
        if gpus:
            return gpus, reasons
        amd, amd_reasons = read_amd(self._root)
        if amd:
            return amd, amd_reasons
        apple, apple_reasons = self._apple()
        return (apple, apple_reasons) if apple else (gpus, reasons)
