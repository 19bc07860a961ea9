"""CPU, pressure, memory and battery: how busy is this machine, as far as this process may use it?

Cgroup-aware: in a container the limits are the container's. Reads the files of Linux under ``root`` (a test gives a recorded
tree), and psutil elsewhere.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil

from services.worker.telemetry.reading import Readings


class Machine:
    """Keeps the last CPU counters, because use is a difference between two readings."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._is_linux = sys.platform == "linux" or root != Path("/")
        self._cpu_before: tuple[int, int] | None = None

    def read(self) -> Readings:
        """cpu_use, cpu_count, cpu_pressure, ram_total_bytes, ram_available_bytes, on_battery."""
        readings = Readings()
        readings.take("cpu_use", self._cpu_use, "needs two readings; this was the first")
        readings.take("cpu_count", self._cpu_count)
        readings.take("cpu_pressure", self._cpu_pressure, "no /proc/pressure/cpu on this system")
        readings.take("ram_total_bytes", lambda: self._memory()[0])
        readings.take("ram_available_bytes", lambda: self._memory()[1])
        readings.take("on_battery", self._on_battery, "no battery")
        return readings

    def _cpu_use(self) -> float | None:
        """Share of all CPU time since the last reading, in [0, 1]."""
        if not self._is_linux:
            times = psutil.cpu_times()
            now = (int(sum(times) * 100), int(times.idle * 100))
        else:
            fields = [int(field) for field in self._text("proc/stat").split("\n", 1)[0].split()[1:9]]
            now = (sum(fields), fields[3] + fields[4])  # idle and iowait
        before, self._cpu_before = self._cpu_before, now
        if before is None or now[0] <= before[0]:
            return None
        idle = (now[1] - before[1]) / (now[0] - before[0])
        return round(min(1.0, max(0.0, 1.0 - idle)), 4)

    def _cpu_count(self) -> float | None:
        """CPUs that may be used: affinity and the cgroup's quota, whichever is less; a quota may be a fraction."""
        counts = [float(os.cpu_count() or 0)]
        if hasattr(os, "sched_getaffinity"):
            counts.append(float(len(os.sched_getaffinity(0))))
        quota = self._quota()
        if quota is not None:
            counts.append(quota)
        return min(counts) or None

    def _quota(self) -> float | None:
        if text := self._maybe("sys/fs/cgroup/cpu.max"):
            limit_v2, period_v2 = text.split()
            return None if limit_v2 == "max" else int(limit_v2) / int(period_v2)
        limit, period = (
            self._maybe("sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
            self._maybe("sys/fs/cgroup/cpu/cpu.cfs_period_us"),
        )
        return int(limit) / int(period) if limit and period and int(limit) > 0 else None

    def _cpu_pressure(self) -> float | None:
        """Share of the last 10 s in which somebody waited for a CPU (PSI "some"), in [0, 1]."""
        text = self._maybe("proc/pressure/cpu")
        for line in (text or "").splitlines():
            if line.startswith("some "):
                fields = dict(field.split("=") for field in line.split()[1:])
                return float(fields["avg10"]) / 100
        return None

    def _memory(self) -> tuple[int, int]:
        """(total, available) bytes, within the cgroup's limit."""
        if not self._is_linux:
            memory = psutil.virtual_memory()
            return memory.total, memory.available
        fields = dict(line.split(":", 1) for line in self._text("proc/meminfo").splitlines() if ":" in line)
        total, available = (int(fields[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
        limit = self._maybe("sys/fs/cgroup/memory.max") or self._maybe("sys/fs/cgroup/memory/memory.limit_in_bytes")
        used = self._maybe("sys/fs/cgroup/memory.current") or self._maybe("sys/fs/cgroup/memory/memory.usage_in_bytes")
        if limit and limit.isdigit() and int(limit) < total:
            total = int(limit)
            if used:
                available = min(available, max(0, total - int(used)))
        return total, available

    def _on_battery(self) -> bool | None:
        if not self._is_linux:
            battery = psutil.sensors_battery()
            return None if battery is None else not battery.power_plugged
        supplies = sorted((self._root / "sys/class/power_supply").glob("*"))
        kinds = {supply: self._maybe_path(supply / "type") for supply in supplies}
        if "Battery" not in kinds.values():
            return None
        mains = [self._maybe_path(supply / "online") for supply, kind in kinds.items() if kind == "Mains"]
        return "1" not in mains if mains else None

    def _text(self, path: str) -> str:
        return (self._root / path).read_text()

    def _maybe(self, path: str) -> str | None:
        return self._maybe_path(self._root / path)

    def _maybe_path(self, path: Path) -> str | None:
        try:
            return path.read_text().strip()
        except OSError:
            return None
