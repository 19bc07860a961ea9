from __future__ import annotations

from schemas.events import ModelInfo, WorkerLoad, WorkerReported
from services.benchmarker.places import places
from services.benchmarker.state import Fleet

US = 1_000_000


def info(name: str, **fields: object) -> ModelInfo:
    return ModelInfo(**{"name": name, "backend_name": name, **fields})


def fleet(*models: ModelInfo, resident: tuple[str, ...] | None = ("a",)) -> Fleet:
    found = Fleet()
    report = WorkerReported(
        id="e1", at=0.0, by="w1", worker="w1", boot="b", name="desk", backend="ollama", models=models
    )
    found.apply(report, 1, 0)
    load = WorkerLoad(id="e2", at=0.0, by="w1", worker="w1", boot="b", seq=1, uptime_s=1.0, resident=resident)
    found.hear(load, US)
    return found


def test_each_model_that_makes_text_has_its_place_and_says_whether_it_is_in_memory() -> None:
    found = places(fleet(info("a"), info("b"), info("e", capability="embedding")), 2 * US)
    assert [(p.model, p.worker, p.worker_name, p.machine, p.loaded) for p in found] == [
        ("a", "w1", "desk", "w1", True),
        ("b", "w1", "desk", "w1", False),
    ]


def test_a_machine_that_is_silent_or_left_is_no_place() -> None:
    assert places(fleet(info("a")), 60 * US) == []
