"""What one pair would cost for one task: seconds until the whole answer, less what its quality is worth.

Answers "how good is this pair?", by ``schemas.statistics`` alone, so that worker, simulator and log agree. The cost of a pair
depends on nothing but the pair, the task and the statistics: another candidate, the number of candidates, the number of
samples and the uncertainty never enter it. What is not known counts as its worst case.
"""

from __future__ import annotations

from schemas.events import Candidate
from schemas.statistics import Statistics, cost, effective, predict
from services.router.fleet import WorkerView
from services.router.policy.filters import Pair
from services.router.policy.request import RouteRequest


def score(pair: Pair, request: RouteRequest, stats: Statistics, *, slider: float, now_us: int) -> Candidate:
    """The pair with every part of its cost. A load older than ``fresh`` allows is an unknown load."""
    worker, info = pair.worker, pair.info
    is_fresh = worker.alive and worker.fresh
    others_use = worker.others_use if is_fresh else None
    resident = is_resident(worker, pair) if is_fresh else None
    known = effective(stats, pair.model, request.domain, worker.id, model_bytes=info.bytes, now_us=now_us)
    predicted = predict(
        known,
        prompt_tokens=request.prompt_tokens,
        max_tokens=request.max_tokens,
        resident=resident,
        others_use=others_use,
        wait_s=worker.wait_s if worker.alive else None,
    )
    assert predicted.total_s is not None and known.quality.value is not None  # both end in a prior
    return Candidate(
        model=pair.model,
        worker=worker.id,
        cost_s=cost(predicted.total_s, known.quality.value, slider),
        predicted=predicted,
        decode=known.decode,
        prefill=known.prefill,
        load=known.load,
        quality=known.quality,
        uncertainty=known.uncertainty,
        others_use=others_use,
        resident=resident,
        fresh=is_fresh,
        digest=info.digest,
        prompt_tokens=request.prompt_tokens,
        output_tokens=known.output_tokens,
        slowdown=known.slowdown,
        others_weight=known.others_weight,
        use_known=known.use_known,
    )


def is_resident(worker: WorkerView, pair: Pair) -> bool | None:
    """Whether the model is loaded there; None where the worker does not say. What it once reported is no substitute."""
    if worker.resident is None:
        return None
    return pair.model in worker.resident or pair.info.backend_name in worker.resident
