"""Apple silicon: the GPU's use from ``ioreg``, its memory as a share of the machine's.

There is no memory key for a GPU that shares the machine's: reading that as 0 would say "no GPU" of half of all home fleets
(case 44). The share that macOS lets the GPU use by default is taken, unless ``iogpu.wired_limit_mb`` says otherwise.
"""

from __future__ import annotations

import plistlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from schemas.events import Gpu
from services.worker.telemetry.reading import Readings

IOREG = ("ioreg", "-r", "-d1", "-w0", "-c", "IOAccelerator", "-a")
GPU_SHARE = 0.75
"""macOS's default limit of wired GPU memory on machines above 36 GB; two thirds below."""
SMALL_SHARE = 2 / 3
SMALL_BYTES = 36 * 2**30
COMMAND_S = 2.0

Runner = Callable[[tuple[str, ...]], bytes]


def run_command(command: tuple[str, ...]) -> bytes:
    return subprocess.run(command, capture_output=True, check=True, timeout=COMMAND_S).stdout


def read_apple(run: Runner = run_command, platform: str = sys.platform) -> tuple[tuple[Gpu, ...], dict[str, str]]:
    """The GPU and the reasons for what is missing; an empty tuple on another system than macOS."""
    if platform != "darwin":
        return (), {}
    readings = Readings()
    found: dict[str, Any] = readings.take("ioreg", lambda: _accelerator(run(IOREG)), "no IOAccelerator") or {}
    statistics = found.get("PerformanceStatistics") or {}
    use = readings.take("use", lambda: statistics["Device Utilization %"] / 100)
    used = readings.take("vram_used_bytes", lambda: int(statistics["In use system memory"]))
    total = readings.take("vram_total_bytes", lambda: _gpu_memory(run))
    reasons = {f"gpus.0.{field}": reason for field, reason in readings.unreadable.items()}
    name = found.get("model") or "Apple GPU"
    gpu = Gpu(
        name=name.decode().strip("\0") if isinstance(name, bytes) else str(name),
        use=use,
        vram_total_bytes=total,
        vram_used_bytes=used,
        unified=True,
    )
    return (gpu,), reasons


def _accelerator(output: bytes) -> dict[str, Any] | None:
    entries = plistlib.loads(output)
    return next((dict(entry) for entry in entries if "PerformanceStatistics" in entry), None)


def _gpu_memory(run: Runner) -> int:
    memory = int(run(("sysctl", "-n", "hw.memsize")))
    try:
        limit_mb = int(run(("sysctl", "-n", "iogpu.wired_limit_mb")))
    except (subprocess.SubprocessError, OSError, ValueError):
        limit_mb = 0  # older systems do not have it
    if limit_mb > 0:
        return limit_mb * 2**20
    return int(memory * (SMALL_SHARE if memory <= SMALL_BYTES else GPU_SHARE))
