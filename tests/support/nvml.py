"""pynvml as a machine with one GPU would answer it, for tests: any function may refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pynvml


def refuse(code: int) -> Callable[..., Any]:
    def call(*_: object) -> Any:
        raise pynvml.NVMLError(code)

    return call


class Nvml:
    """pynvml with one GPU; any function may be replaced."""

    NVMLError = pynvml.NVMLError
    NVML_TEMPERATURE_GPU = pynvml.NVML_TEMPERATURE_GPU
    NVML_ERROR_LIBRARY_NOT_FOUND = pynvml.NVML_ERROR_LIBRARY_NOT_FOUND

    def __init__(self, **functions: Callable[..., Any]) -> None:
        self.calls: list[str] = []
        self._functions: dict[str, Callable[..., Any]] = {
            "nvmlInit": lambda: None,
            "nvmlDeviceGetCount": lambda: 1,
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetName": lambda _: b"RTX 4090",
            "nvmlDeviceGetUUID": lambda _: "GPU-1",
            "nvmlDeviceGetUtilizationRates": lambda _: SimpleNamespace(gpu=37),
            "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(total=24 * 2**30, used=2**30),
            "nvmlDeviceGetTemperature": lambda *_: 51,
            **functions,
        }

    def __getattr__(self, name: str) -> Callable[..., Any]:
        self.calls.append(name)
        return self._functions[name]

    @classmethod
    def refusing(cls, names: Iterable[str]) -> Nvml:
        return cls(**{name: refuse(pynvml.NVML_ERROR_NOT_SUPPORTED) for name in names})
