from __future__ import annotations

import plistlib
import subprocess

from services.worker.telemetry.apple import IOREG, read_apple

MEMSIZE = 64 * 2**30
RECORDED = plistlib.dumps(
    [
        {
            "IOClass": "AGXAcceleratorG14X",
            "model": "Apple M2 Max",
            "gpu-core-count": 38,
            "PerformanceStatistics": {
                "Device Utilization %": 23,
                "Renderer Utilization %": 22,
                "In use system memory": 3_221_225_472,
                "Alloc system memory": 9_663_676_416,
            },
        }
    ]
)


def machine(ioreg: bytes = RECORDED, limit_mb: bytes | None = b"0\n", memsize: int = MEMSIZE):  # type: ignore[no-untyped-def]
    def run(command: tuple[str, ...]) -> bytes:
        if command == IOREG:
            return ioreg
        if command[-1] == "hw.memsize":
            return f"{memsize}\n".encode()
        if limit_mb is None:
            raise subprocess.CalledProcessError(1, command)
        return limit_mb

    return run


def test_case_44_a_mac_has_a_gpu_with_a_share_of_the_machines_memory() -> None:
    (gpu,), reasons = read_apple(machine(), "darwin")
    assert (gpu.name, gpu.use, gpu.unified) == ("Apple M2 Max", 0.23, True)
    assert (gpu.vram_total_bytes, gpu.vram_used_bytes) == (48 * 2**30, 3_221_225_472)
    assert reasons == {}


def test_a_small_mac_gives_two_thirds_and_a_set_limit_stands() -> None:
    (small,), _ = read_apple(machine(memsize=24 * 2**30, limit_mb=None), "darwin")
    assert small.vram_total_bytes == 16 * 2**30
    (raised,), _ = read_apple(machine(limit_mb=b"57344\n"), "darwin")
    assert raised.vram_total_bytes == 56 * 2**30


def test_a_mac_without_statistics_still_has_a_gpu_of_unknown_use() -> None:
    (gpu,), reasons = read_apple(machine(plistlib.dumps([])), "darwin")
    assert (gpu.use, gpu.vram_used_bytes, gpu.vram_total_bytes) == (None, None, 48 * 2**30)
    assert "gpus.0.use" in reasons


def test_other_systems_are_not_asked() -> None:
    assert read_apple(machine(), "linux") == ((), {})
