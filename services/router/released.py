"""What a release records besides the pair: the parts of every other pair, where it is not the first idea.

Answers "what would it have cost elsewhere, at that moment?" in the words of ``task.routed``. Pure.
"""

from __future__ import annotations

import msgspec

from schemas.events import Candidate, ModelInfo, Prediction, TaskReleased, WorkerInput
from schemas.statistics import Effective, Statistics, effective
from services.router.dispatch.offers import Offer
from services.router.dispatch.releasing import Release
from services.router.dispatch.state import RouterState, Task


def with_candidates(
    released: TaskReleased, release: Release, task: Task, state: RouterState, stats: Statistics, now_us: int
) -> TaskReleased:
    """``released`` with the spread of its prediction, and with all pairs where the choice changed."""
    inputs = {given.worker: given for given in release.inputs}
    domain, prompt = task.submitted.domain.label, task.submitted.sizes.prompt_tokens

    def known(model: str, worker: str) -> tuple[Effective, ModelInfo | None]:
        record = state.workers.get(worker)
        models = record.report.models if record is not None else ()
        info = next((m for m in models if m.name == model), None)
        size = info.bytes if info is not None else None
        return effective(stats, model, domain, worker, model_bytes=size, now_us=now_us), info

    return msgspec.structs.replace(
        released,
        uncertainty=known(release.model, release.expected)[0].uncertainty,
        candidates=tuple(
            candidate_of(offer, *known(offer.model, offer.worker), inputs.get(offer.worker), prompt)
            for offer in sorted(release.offers, key=lambda o: (not o.fresh, o.cost_s))
        ),
    )


def candidate_of(
    offer: Offer, known: Effective, info: ModelInfo | None, given: WorkerInput | None, prompt_tokens: int
) -> Candidate:
    parts = offer.parts
    resident = given.resident if given is not None else None
    return Candidate(
        model=offer.model,
        worker=offer.worker,
        cost_s=offer.cost_s,
        predicted=Prediction(
            wait_s=parts.wait_s, load_s=parts.load_s, prefill_s=parts.prefill_s, decode_s=parts.decode_s,
            sharing_s=parts.sharing_s, total_s=parts.total_s,
        ),
        decode=known.decode,
        prefill=known.prefill,
        load=known.load,
        quality=known.quality,
        uncertainty=known.uncertainty,
        others_use=given.others_use if given is not None else None,
        resident=None if resident is None else offer.model in resident,
        fresh=offer.fresh,
        digest=info.digest if info is not None else None,
        prompt_tokens=prompt_tokens,
        output_tokens=known.output_tokens,
        others_s=offer.others_s,
        slowdown=known.slowdown,
        others_weight=known.others_weight,
        use_known=known.use_known,
    )  # fmt: skip
