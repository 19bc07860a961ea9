from __future__ import annotations

from pathlib import Path

import pynvml
import pytest

from services.worker.telemetry.nvidia import WSL_LIBRARY, Nvidia
from support.nvml import Nvml, refuse


def test_a_gpu_is_read_field_by_field(tmp_path: Path) -> None:
    gpus, reasons = Nvidia(Nvml(), tmp_path).read(0.0)
    assert gpus is not None
    (gpu,) = gpus
    assert (gpu.name, gpu.uuid, gpu.use, gpu.temperature_c) == ("RTX 4090", "GPU-1", 0.37, 51.0)
    assert (gpu.vram_total_bytes, gpu.vram_used_bytes, gpu.unified) == (24 * 2**30, 2**30, False)
    assert reasons == {}


@pytest.mark.parametrize(
    ("function", "field"),
    [
        ("nvmlDeviceGetUtilizationRates", "use"),
        ("nvmlDeviceGetMemoryInfo", "vram_total_bytes"),
        ("nvmlDeviceGetTemperature", "temperature_c"),
        ("nvmlDeviceGetName", "name"),
    ],
)
def test_one_refused_field_is_null_with_its_reason_and_touches_no_other(
    tmp_path: Path, function: str, field: str
) -> None:
    nvml = Nvml(**{function: refuse(pynvml.NVML_ERROR_NOT_SUPPORTED)})
    gpus, reasons = Nvidia(nvml, tmp_path).read(0.0)
    assert gpus is not None
    values = {name: getattr(gpus[0], name) for name in ("use", "vram_total_bytes", "temperature_c", "name")}
    assert values.pop(field) is None
    assert None not in values.values()
    assert len(reasons) == 1
    assert "Not Supported" in next(iter(reasons.values()))


def test_unified_memory_is_said_and_not_zero(tmp_path: Path) -> None:
    nvml = Nvml(nvmlDeviceGetMemoryInfo=refuse(pynvml.NVML_ERROR_NOT_SUPPORTED))
    gpus, _ = Nvidia(nvml, tmp_path).read(0.0)
    assert gpus is not None
    assert (gpus[0].unified, gpus[0].vram_total_bytes) == (True, None)


def test_case_43_wsl2s_library_is_loaded_from_where_it_lies(tmp_path: Path) -> None:
    library = tmp_path / WSL_LIBRARY
    library.parent.mkdir(parents=True)
    library.touch()
    loaded: list[str] = []

    def init() -> None:
        if not loaded:  # the loader's own path does not have it
            raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    nvidia = Nvidia(Nvml(nvmlInit=init), tmp_path, loaded.append)
    gpus, _ = nvidia.read(0.0)
    assert loaded == [str(library)]
    assert gpus is not None and gpus[0].name == "RTX 4090"


def test_no_driver_is_absent_and_asked_again_a_minute_later(tmp_path: Path) -> None:
    nvml = Nvml(nvmlInit=refuse(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND))
    nvidia = Nvidia(nvml, tmp_path)
    gpus, reasons = nvidia.read(0.0)
    assert (gpus, nvidia.is_absent) == (None, True)
    assert "Not Found" in reasons["gpus"]
    nvidia.read(59.0)
    assert nvml.calls.count("nvmlInit") == 1
    nvidia.read(60.0)
    assert nvml.calls.count("nvmlInit") == 2


def test_a_lost_gpu_is_no_absent_one(tmp_path: Path) -> None:
    nvidia = Nvidia(Nvml(nvmlDeviceGetHandleByIndex=refuse(pynvml.NVML_ERROR_GPU_IS_LOST)), tmp_path)
    gpus, reasons = nvidia.read(0.0)
    assert (gpus, nvidia.is_absent) == (None, False)
    assert "lost" in reasons["gpus"].lower()
