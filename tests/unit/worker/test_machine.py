from __future__ import annotations

from pathlib import Path

import pytest

from services.worker.telemetry.machine import Machine

MEMINFO = "MemTotal:       16000000 kB\nMemFree:         1000000 kB\nMemAvailable:    8000000 kB\n"
FILES = {
    "proc/stat": "cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 2 3\n",
    "proc/meminfo": MEMINFO,
    "proc/pressure/cpu": "some avg10=12.50 avg60=3.00 avg300=1.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
}


def tree(root: Path, **more: str) -> Path:
    """A recorded machine: the usual files, and more with ``__`` for each slash."""
    for name, text in (FILES | {key.replace("__", "/"): text for key, text in more.items()}).items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def test_a_whole_machine_is_read(tmp_path: Path) -> None:
    machine = Machine(tree(tmp_path))
    machine.read()
    tree(tmp_path, proc__stat="cpu  200 0 200 850 150 0 0 0 0 0\n")
    readings = machine.read()
    assert readings.values["cpu_use"] == pytest.approx(0.5)
    assert readings.values["cpu_pressure"] == 0.125
    assert readings.values["ram_total_bytes"] == 16_000_000 * 1024
    assert readings.values["ram_available_bytes"] == 8_000_000 * 1024
    assert readings.values["cpu_count"] >= 1
    assert readings.unreadable == {"on_battery": "no battery"}


def test_the_first_reading_has_no_use_of_the_cpu(tmp_path: Path) -> None:
    readings = Machine(tree(tmp_path)).read()
    assert "cpu_use" not in readings.values
    assert "two readings" in readings.unreadable["cpu_use"]


def test_a_container_is_as_large_as_its_limits(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        **{
            "sys__fs__cgroup__cpu.max": "50000 100000\n",
            "sys__fs__cgroup__memory.max": f"{4_000_000 * 1024}\n",
            "sys__fs__cgroup__memory.current": f"{1_000_000 * 1024}\n",
        },
    )
    values = Machine(root).read().values
    assert values["cpu_count"] == 0.5
    assert values["ram_total_bytes"] == 4_000_000 * 1024
    assert values["ram_available_bytes"] == 3_000_000 * 1024


def test_the_older_kind_of_limits_counts_too(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        **{
            "sys__fs__cgroup__cpu__cpu.cfs_quota_us": "25000\n",
            "sys__fs__cgroup__cpu__cpu.cfs_period_us": "100000\n",
            "sys__fs__cgroup__memory__memory.limit_in_bytes": f"{2_000_000 * 1024}\n",
        },
    )
    values = Machine(root).read().values
    assert (values["cpu_count"], values["ram_total_bytes"]) == (0.25, 2_000_000 * 1024)


def test_no_limit_is_no_limit(tmp_path: Path) -> None:
    root = tree(tmp_path, **{"sys__fs__cgroup__cpu.max": "max 100000\n", "sys__fs__cgroup__memory.max": "max\n"})
    values = Machine(root).read().values
    assert values["cpu_count"] >= 1
    assert values["ram_total_bytes"] == 16_000_000 * 1024


@pytest.mark.parametrize(("online", "on_battery"), [("1", False), ("0", True)])
def test_a_laptop_knows_whether_it_is_plugged_in(tmp_path: Path, online: str, on_battery: bool) -> None:
    root = tree(
        tmp_path,
        sys__class__power_supply__AC__type="Mains\n",
        sys__class__power_supply__AC__online=f"{online}\n",
        sys__class__power_supply__BAT0__type="Battery\n",
    )
    assert Machine(root).read().values["on_battery"] is on_battery


def test_an_empty_system_gives_reasons_and_no_zeros(tmp_path: Path) -> None:
    readings = Machine(tmp_path).read()
    assert set(readings.values) <= {"cpu_count"}
    assert set(readings.unreadable) >= {
        "cpu_use",
        "cpu_pressure",
        "ram_total_bytes",
        "ram_available_bytes",
        "on_battery",
    }
