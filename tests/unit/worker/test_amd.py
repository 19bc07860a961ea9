from __future__ import annotations

from pathlib import Path

from services.worker.telemetry.amd import read_amd

FILES = {
    "vendor": "0x1002\n",
    "gpu_busy_percent": "64\n",
    "mem_info_vram_total": "17163091968\n",
    "mem_info_vram_used": "1073741824\n",
    "unique_id": "abc\n",
    "hwmon/hwmon3/temp1_input": "47000\n",
}


def card(root: Path, number: int, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = root / f"sys/class/drm/card{number}/device" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_an_amd_card_is_read_from_sysfs(tmp_path: Path) -> None:
    card(tmp_path, 0, {"vendor": "0x8086\n"})
    card(tmp_path, 1, FILES)
    (gpu,), reasons = read_amd(tmp_path)
    assert (gpu.use, gpu.vram_total_bytes, gpu.vram_used_bytes) == (0.64, 17163091968, 1073741824)
    assert (gpu.temperature_c, gpu.uuid, gpu.name) == (47.0, "abc", "AMD GPU")
    assert set(reasons) == {"gpus.0.name"}


def test_a_card_that_hides_its_load_has_an_unknown_one(tmp_path: Path) -> None:
    card(tmp_path, 0, {"vendor": "0x1002\n"})
    (gpu,), reasons = read_amd(tmp_path)
    assert (gpu.use, gpu.vram_total_bytes, gpu.temperature_c) == (None, None, None)
    assert "gpus.0.use" in reasons


def test_no_card_is_no_gpu(tmp_path: Path) -> None:
    assert read_amd(tmp_path) == ((), {})
