"""Fleets and statistics in one line each, for tests that decide. Statistics are folded from samples, as the product does."""

from __future__ import annotations

from collections.abc import Iterable

from schemas.cells import Cell, fold
from schemas.events import ModelInfo
from schemas.samples import UNIT, Sample
from schemas.statistics import Statistics
from services.router.fleet import Fleet, WorkerView

NOW_US = 1_764_400_000 * UNIT
GIB5 = 5_000_000_000


def model(name: str, /, **overrides: object) -> ModelInfo:
    fields: dict[str, object] = {"name": name, "backend_name": name, "bytes": GIB5, "context": 8192}
    return ModelInfo(**{**fields, **overrides})  # type: ignore[arg-type]


def worker(worker_id: str, /, *models: str | ModelInfo, **overrides: object) -> WorkerView:
    """A machine of one free slot that reports everything and has all its models loaded."""
    infos = [model(each) if isinstance(each, str) else each for each in models]
    fields: dict[str, object] = {
        "id": worker_id,
        "name": worker_id,
        "boot": f"{worker_id}-boot",
        "models": {info.name: info for info in infos},
        "free": 1,
        "running": 0,
        "wait_s": 0.0,
        "resident": frozenset(info.name for info in infos),
        "others_use": 0.0,
        "credit_age_s": 1.0,
        "backend": "ollama",
    }
    return WorkerView(**{**fields, **overrides})  # type: ignore[arg-type]


def fleet(*workers: WorkerView) -> Fleet:
    return Fleet(workers={each.id: each for each in workers})


def cell(
    model: str,
    domain: str,
    worker: str | None,
    *,
    n: int = 10,
    decode: float | None = None,
    prefill: float | None = None,
    load_s: float | None = None,
    output: int | None = None,
    quality: float | None = None,
    model_bytes: int | None = GIB5,
    age_s: float = 60.0,
    others_u: int | None = 0,
) -> Cell:
    """``n`` equal samples of each quantity given; what is None was never measured, though the task may have run."""
    at_us = NOW_US - round(age_s * UNIT)
    samples: list[Sample] = []
    common = {"at_us": at_us, "model": model, "domain": domain, "worker": worker, "model_bytes": model_bytes}
    tokens = output or 100
    speeds = (decode, prefill, load_s, output)
    for index in range(n):
        if quality is None or any(value is not None for value in speeds):
            samples.append(
                Sample(
                    seq=2 * index + 1,
                    kind="speed",
                    resident=load_s is None,
                    load_us=None if load_s is None else round(load_s * UNIT),
                    decode_tok=None if decode is None else tokens,
                    decode_us=None if decode is None else round(tokens / decode * UNIT),
                    prefill_tok=None if prefill is None else 1000,
                    prefill_us=None if prefill is None else round(1000 / prefill * UNIT),
                    output_tok=output,
                    others_u=others_u,
                    **common,  # type: ignore[arg-type]
                )
            )
        if quality is not None:
            # Weighty, so that a cell's quality is what was asked for and no parent pulls at it.
            judged = {"quality_u": round(quality * UNIT), "quality_w_u": 1000 * UNIT}
            samples.append(Sample(seq=2 * index + 2, kind="quality", **judged, **common))  # type: ignore[arg-type]
    return fold(samples)


def measured(cells: Iterable[Cell]) -> Statistics:
    return Statistics(cells)
