"""NVIDIA GPUs through NVML: use, memory, temperature, each field on its own.

WSL2 keeps the library where the loader does not look; it is loaded from there first (case 43). On unified memory (DGX Spark)
NVML refuses the memory question: that is ``unified``, not "no GPU". A driver that fails is asked again a minute later.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml

from schemas.events import Gpu
from services.worker.telemetry.reading import Readings

RETRY_S = 60.0
"""A driver update or a GPU that comes back is noticed within a minute; asking each beat costs a library search."""
WSL_LIBRARY = "usr/lib/wsl/lib/libnvidia-ml.so.1"


class Nvidia:
    """``nvml`` is the pynvml module, or a stand-in with its functions."""

    def __init__(self, nvml: Any = pynvml, root: Path = Path("/"), load: Callable[[str], Any] = ctypes.CDLL) -> None:
        self._nvml = nvml
        self._wsl_library = root / WSL_LIBRARY
        self._load = load
        self._is_up = False
        self._retry_at = 0.0
        self._why = ""
        self._is_absent = False

    @property
    def is_absent(self) -> bool:
        """There is no NVIDIA driver here at all, as against a driver that fails."""
        return self._is_absent

    def read(self, now: float) -> tuple[tuple[Gpu, ...] | None, dict[str, str]]:
        """The GPUs and the reasons for what is missing; None where NVML itself is not to be had."""
        if not self._is_up and now >= self._retry_at:
            self._start(now)
        if not self._is_up:
            return None, {"gpus": self._why}
        try:
            handles = [self._nvml.nvmlDeviceGetHandleByIndex(i) for i in range(self._nvml.nvmlDeviceGetCount())]
        except self._nvml.NVMLError as error:
            self._is_up, self._retry_at = False, now + RETRY_S
            self._why = f"NVML: {error}"
            return None, {"gpus": self._why}
        reasons: dict[str, str] = {}
        gpus = tuple(self._gpu(position, handle, reasons) for position, handle in enumerate(handles))
        return gpus, reasons

    def _start(self, now: float) -> None:
        self._retry_at = now + RETRY_S
        try:
            if self._wsl_library.exists():
                self._load(str(self._wsl_library))  # NVML's own search finds a library that is already loaded
            self._nvml.nvmlInit()
        except (self._nvml.NVMLError, OSError) as error:
            self._why = f"NVML: {error}"
            self._is_absent = getattr(error, "value", None) == self._nvml.NVML_ERROR_LIBRARY_NOT_FOUND
            return
        self._is_up = True

    def _gpu(self, position: int, handle: Any, reasons: dict[str, str]) -> Gpu:
        nvml, readings = self._nvml, Readings()
        name = readings.take("name", lambda: _text(nvml.nvmlDeviceGetName(handle)))
        uuid = readings.take("uuid", lambda: _text(nvml.nvmlDeviceGetUUID(handle)))
        use = readings.take("use", lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100)
        memory = readings.take("vram", lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        celsius = readings.take(
            "temperature_c", lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
        )
        unified = None if memory is None else False
        if memory is None and use is not None:
            unified = True  # it computes but has no memory of its own to tell about
        reasons |= {f"gpus.{position}.{field}": reason for field, reason in readings.unreadable.items()}
        return Gpu(
            name=name,
            uuid=uuid,
            use=use,
            vram_total_bytes=int(memory.total) if memory is not None else None,
            vram_used_bytes=int(memory.used) if memory is not None else None,
            temperature_c=celsius,
            unified=unified,
        )


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
