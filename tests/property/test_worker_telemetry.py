"""Whatever a machine hides is null with a reason, and never becomes a zero, on the way from its files to the stored heartbeat."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, strategies as st

from schemas.codec import decode, encode
from schemas.events import WorkerLoad
from services.worker.telemetry.nvidia import Nvidia
from services.worker.telemetry.sample import FIELDS, NO_AGENT, Load, Telemetry
from support.nvml import Nvml

FILES = {
    "proc/stat": "cpu  100 0 100 700 100 0 0 0 0 0\n",
    "proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n",
    "proc/pressure/cpu": "some avg10=12.50 avg60=3.00 avg300=1.00 total=1\n",
    "sys/class/power_supply/AC/type": "Mains\n",
    "sys/class/power_supply/AC/online": "1\n",
    "sys/class/power_supply/BAT0/type": "Battery\n",
}
GPU_FUNCTIONS = (
    "nvmlDeviceGetName",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetTemperature",
)


def heartbeat(load: Load) -> WorkerLoad:
    """As it is stored and read again."""
    fields = {name: getattr(load, name) for name in load.__struct_fields__}
    event = decode(encode(WorkerLoad(id="x", at=0.0, by="w", worker="w", boot="b", seq=1, uptime_s=1.0, **fields)))
    assert isinstance(event, WorkerLoad)
    return event


@given(missing=st.sets(st.sampled_from(sorted(FILES))), refused=st.sets(st.sampled_from(GPU_FUNCTIONS)))
def test_a_hidden_field_is_null_with_a_reason_and_never_zero(missing: set[str], refused: set[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in FILES.items():
            if name not in missing:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
        telemetry = Telemetry(root=root, nvidia=Nvidia(Nvml.refusing(refused), root))
        telemetry.read(0.0)
        load = heartbeat(telemetry.read(5.0))
    for field in FIELDS:
        assert (getattr(load, field) is None) == (field in load.unreadable), field
        assert getattr(load, field) != 0 or field in ("cpu_use", "on_battery"), field
    assert (load.cpu_pressure is None) == ("proc/pressure/cpu" in missing)
    assert (load.ram_total_bytes is None) == ("proc/meminfo" in missing)
    assert load.gpus is not None
    (gpu,) = load.gpus
    assert (gpu.use is None) == ("nvmlDeviceGetUtilizationRates" in refused) == ("gpus.0.use" in load.unreadable)
    assert (gpu.vram_total_bytes is None) == ("nvmlDeviceGetMemoryInfo" in refused)
    assert (load.others_use is None) == (gpu.use is None) == ("others_use" in load.unreadable)


def test_a_worker_for_a_remote_backend_says_no_agent() -> None:
    load = heartbeat(Telemetry(local=False).read(1.0))
    assert {getattr(load, field) for field in (*FIELDS, "gpus", "others_use")} == {None}
    assert set(load.unreadable.values()) == {NO_AGENT}
