"""How do machines and models look to a reader? Pure: the fleet view to JSON rows, every null with its reason."""

from __future__ import annotations

import msgspec

from services.router.fleet import Fleet, WorkerView

NO_CREDIT = "no credit was heard"
BACKEND_DOWN = "backend down"


class WorkerRow(msgspec.Struct, frozen=True, kw_only=True):
    """``unknown`` has, for each null field, why it is null; ``paused`` says until when, and is empty where it is not paused."""

    id: str
    name: str
    state: str
    backend: str
    local: bool
    supports: tuple[str, ...]
    slots: int
    free: int | None
    running: int | None
    wait_s: float | None
    others_use: float | None
    credit_age_s: float | None
    resident: tuple[str, ...] | None
    models: tuple[str, ...]
    unknown: dict[str, str]
    paused: str


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    worker: str
    worker_name: str
    backend_name: str
    digest: str | None
    bytes: int | None
    quantisation: str | None
    context: int | None
    resident: bool | None
    alive: bool


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    capability: str
    capabilities: tuple[str, ...]
    context: int | None
    one_digest: bool | None
    holders: tuple[Holder, ...]


def worker_rows(fleet: Fleet) -> tuple[WorkerRow, ...]:
    """By name, then id."""
    return tuple(worker_row(worker) for worker in sorted(fleet.workers.values(), key=lambda w: (w.name, w.id)))


def model_rows(fleet: Fleet) -> tuple[ModelRow, ...]:
    return tuple(_model_row(fleet, name) for name in fleet.models())


def worker_state(worker: WorkerView) -> str:
    if not worker.alive:
        return "silent"
    if worker.paused:
        return "paused"
    if worker.backend_up is False:
        return BACKEND_DOWN
    if worker.draining:
        return "draining"
    return "ready" if worker.fresh else "stale"


def worker_row(worker: WorkerView) -> WorkerRow:
    reasons = {
        "free": NO_CREDIT,
        "running": NO_CREDIT,
        "credit_age_s": NO_CREDIT,
        "wait_s": _no_wait(worker),
        "others_use": worker.others_reason or "its heartbeat does not say",
        "resident": "the backend does not say what is loaded",
    }
    return WorkerRow(
        id=worker.id,
        name=worker.name,
        state=worker_state(worker),
        backend=worker.backend,
        local=worker.local,
        supports=worker.supports,
        slots=worker.slots,
        free=worker.free,
        running=worker.running,
        wait_s=worker.wait_s,
        others_use=worker.others_use,
        credit_age_s=worker.credit_age_s,
        resident=None if worker.resident is None else tuple(sorted(worker.resident)),
        models=tuple(sorted(worker.models)),
        unknown={field: reason for field, reason in reasons.items() if getattr(worker, field) is None},
        paused=worker.pause_words if worker.paused else "",
    )


def _no_wait(worker: WorkerView) -> str:
    if worker.backend_up is False:
        return f"{BACKEND_DOWN}: {worker.backend_reason or 'nobody said why'}"
    return NO_CREDIT if worker.free is None else "nothing is known of how long its running tasks take"


def _model_row(fleet: Fleet, name: str) -> ModelRow:
    workers = fleet.holders(name)
    infos = [worker.models[name] for worker in workers]
    digests = {info.digest for info in infos}
    return ModelRow(
        name=name,
        capability=infos[0].capability,
        capabilities=tuple(sorted({capability for info in infos for capability in info.capabilities})),
        context=max((info.context for info in infos if info.context is not None), default=None),
        one_digest=None if None in digests else len(digests) == 1,
        holders=tuple(_holder(worker, name) for worker in workers),
    )


def _holder(worker: WorkerView, model: str) -> Holder:
    info = worker.models[model]
    return Holder(
        worker=worker.id,
        worker_name=worker.name,
        backend_name=info.backend_name,
        digest=info.digest,
        bytes=info.bytes,
        quantisation=info.quantisation,
        context=info.context,
        resident=info.resident if worker.resident is None else model in worker.resident,
        alive=worker.alive,
    )
