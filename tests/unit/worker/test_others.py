from __future__ import annotations

from schemas.events import Gpu
from services.worker.telemetry.others import GPU_QUIET_S, PRESSURE_QUIET_S, Others


def test_a_gpu_machine_is_judged_by_its_busiest_gpu() -> None:
    others = Others()
    others.observe((Gpu(use=0.1), Gpu(use=0.9)), 0.5, 0.0)
    assert (others.use, others.age_s(3.0)) == (0.9, 3.0)


def test_a_cpu_machine_is_judged_by_its_pressure() -> None:
    others = Others()
    others.observe(None, 0.25, 0.0)
    assert others.use == 0.25
    others.observe((), 0.5, 1.0)
    assert others.use == 0.5


def test_our_own_load_is_not_others_use_and_the_last_value_stays_with_its_age() -> None:
    others = Others()
    others.observe((Gpu(use=0.1),), None, 0.0)
    others.ours(1, 1.0)
    others.observe((Gpu(use=1.0),), None, 5.0)
    others.ours(0, 6.0)
    others.observe((Gpu(use=1.0),), None, 6.0 + GPU_QUIET_S / 2)
    assert (others.use, others.age_s(7.0)) == (0.1, 7.0)
    others.observe((Gpu(use=0.7),), None, 6.0 + GPU_QUIET_S)
    assert others.use == 0.7


def test_pressure_needs_a_longer_quiet_time_than_a_gpu() -> None:
    others = Others()
    others.ours(1, 0.0)
    others.ours(0, 1.0)
    others.ours(0, 20.0)  # still nothing runs: the quiet time began at 1
    others.observe(None, 0.9, 0.9 + PRESSURE_QUIET_S)
    assert others.use is None
    others.observe(None, 0.1, 1.0 + PRESSURE_QUIET_S)
    assert others.use == 0.1


def test_never_measured_is_unknown_with_a_reason() -> None:
    others = Others()
    others.observe((Gpu(use=None),), 0.0, 0.0)
    assert (others.use, others.age_s(9.0)) == (None, None)
    assert others.reason == "the GPU's utilisation is not readable"
    others = Others()
    others.ours(1, 0.0)
    others.observe(None, 0.1, 1.0)
    assert "no quiet moment" in others.reason
