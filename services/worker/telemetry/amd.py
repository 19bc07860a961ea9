"""AMD GPUs from sysfs: no library to break (amdsmi without ROCm fails at import). Reads under ``root``."""

from __future__ import annotations

from pathlib import Path

from schemas.events import Gpu
from services.worker.telemetry.reading import Readings

VENDOR = "0x1002"


def read_amd(root: Path = Path("/")) -> tuple[tuple[Gpu, ...], dict[str, str]]:
    """The AMD cards and the reasons for what is missing. No card: an empty tuple."""
    cards = sorted(
        path.parent for path in (root / "sys/class/drm").glob("card*/device/vendor") if _line(path) == VENDOR
    )
    reasons: dict[str, str] = {}
    return tuple(_card(position, device, reasons) for position, device in enumerate(cards)), reasons


def _card(position: int, device: Path, reasons: dict[str, str]) -> Gpu:
    readings = Readings()
    name = readings.take("name", lambda: _line(device / "product_name") or None, "no product_name in sysfs")
    uuid = readings.take("uuid", lambda: _line(device / "unique_id") or None, "no unique_id in sysfs")
    use = readings.take("use", lambda: _number(device / "gpu_busy_percent") / 100)
    total = readings.take("vram_total_bytes", lambda: _number(device / "mem_info_vram_total"))
    used = readings.take("vram_used_bytes", lambda: _number(device / "mem_info_vram_used"))
    heat = next(iter(sorted(device.glob("hwmon/hwmon*/temp1_input"))), device / "hwmon/temp1_input")
    celsius = readings.take("temperature_c", lambda: _number(heat) / 1000)
    reasons |= {f"gpus.{position}.{field}": reason for field, reason in readings.unreadable.items()}
    return Gpu(
        name=name or "AMD GPU",
        uuid=uuid,
        use=use,
        vram_total_bytes=total,
        vram_used_bytes=used,
        temperature_c=celsius,
    )


def _line(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


def _number(path: Path) -> int:
    return int(path.read_text())
