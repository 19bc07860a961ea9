"""A recorded release, computed again from the log alone.

Answers "does the release's prediction and cost follow from what was known then?". As in ``recompute``: what was only heard is in
the release's own ``inputs``, everything else is the log up to ``folded`` and the statistics up to ``position``.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from schemas.events import Candidate, Prediction, TaskReleased, TaskRouted, TaskSubmitted, WorkerInput
from schemas.prediction import TYPICAL_PROMPT_TOKENS
from schemas.statistics import Effective, Statistics, effective
from services.router.dispatch.completion import Machine, Speed, machine_of, parts_of, service_s, worker_input
from services.router.dispatch.outlook import speed_of
from services.router.dispatch.recording import RECORDED_MOST
from services.router.fleet import Fleet
from services.router.policy.filters import allowed_models, best_suited, may_serve
from services.router.policy.request import RouteRequest, request_of
from services.router.recompute import Workers, fleet_then


def released_again(
    submitted: TaskSubmitted, routed: TaskRouted, released: TaskReleased, workers: Workers, stats: Statistics
) -> TaskReleased:
    """``released`` with the prediction, the cost and all recorded pairs computed anew."""
    then = _Then(submitted, routed, released, workers, stats)
    pair = (released.model, released.expected_worker or "")
    again = msgspec.structs.replace(
        released,
        inputs=tuple(then.input_again(given) for given in released.inputs),
        candidates=tuple(then.candidate(recorded) for recorded in released.candidates),
    )
    if pair[1] not in then.machines:
        return again
    mine = then.price(*pair)
    return msgspec.structs.replace(
        again,
        predicted=mine.predicted,
        others_s=mine.others_s if released.others_s is not None else None,
        cost_s=mine.cost_s,
        uncertainty=then.known(*pair).uncertainty,
    )


class _Price(msgspec.Struct, frozen=True):
    predicted: Prediction
    others_s: float
    cost_s: float


class _Then:
    """The planner's numbers at one release."""

    def __init__(
        self,
        submitted: TaskSubmitted,
        routed: TaskRouted,
        released: TaskReleased,
        workers: Workers,
        stats: Statistics,
    ) -> None:
        self._released, self._workers, self._stats = released, workers, stats
        self._domain, self._sizes = submitted.domain.label, submitted.sizes
        self._slider = routed.policy.weights["slider"] if released.slider is None else released.slider
        self._now_us = int(released.at * 1e6)
        self.inputs = {given.worker: given for given in released.inputs}
        self.machines: dict[str, Machine] = {worker: machine_of(given) for worker, given in self.inputs.items()}
        self._fleet = fleet_then(workers, self.inputs)
        self._request = request_of(submitted)
        self._others = {released.model: released.others_s or 0.0}
        self._others |= {candidate.model: candidate.others_s or 0.0 for candidate in released.candidates}
        is_known = routed.policy.route is None and len(self.inputs) < RECORDED_MOST
        self._pairs = dict(_pairs(self._request, self._fleet)) if is_known else None

    def price(self, model: str, worker: str) -> _Price:
        speed = self._speed(model, worker)
        parts = parts_of(speed, self.machines[worker], model, self._sizes.prompt_tokens, self._request.max_tokens)
        others_s = self._others_s(model)
        predicted = Prediction(
            wait_s=parts.wait_s,
            load_s=parts.load_s,
            prefill_s=parts.prefill_s,
            decode_s=parts.decode_s,
            sharing_s=parts.sharing_s,
            total_s=parts.total_s,
        )
        return _Price(predicted, others_s, sum(parts) + (others_s - 100.0 * self._slider * speed.quality))

    def candidate(self, recorded: Candidate) -> Candidate:
        """``recorded`` as it should be; one whose machine was not recorded stays as it is."""
        worker, model = recorded.worker, recorded.model
        if worker not in self.machines:
            return recorded
        priced, known, given = self.price(model, worker), self.known(model, worker), self.inputs[worker]
        return msgspec.structs.replace(
            recorded,
            cost_s=priced.cost_s,
            predicted=priced.predicted,
            others_s=priced.others_s,
            decode=known.decode,
            prefill=known.prefill,
            load=known.load,
            quality=known.quality,
            output_tokens=known.output_tokens,
            uncertainty=known.uncertainty,
            others_use=given.others_use,
            resident=None if given.resident is None else model in given.resident,
            fresh=given.fresh,
            prompt_tokens=self._sizes.prompt_tokens,
        )

    def input_again(self, given: WorkerInput) -> WorkerInput:
        """Its wait follows from what runs there; a release needs a free credit on the machine that it is for."""
        free = given.free
        if given.worker == self._released.expected_worker:
            free = max(1, free or 0)
        return msgspec.structs.replace(given, waiting_s=worker_input(self.machines[given.worker]).waiting_s, free=free)

    def known(self, model: str, worker: str) -> Effective:
        size = self._size(model, worker)
        return effective(self._stats, model, self._domain, worker, model_bytes=size, now_us=self._now_us)

    def _speed(self, model: str, worker: str) -> Speed:
        return speed_of(self.known(model, worker), self._size(model, worker))

    def _size(self, model: str, worker: str) -> int | None:
        record = self._workers.get(worker)
        models = record.report.models if record is not None else ()
        return next((info.bytes for info in models if info.name == model), None)

    def _others_s(self, model: str) -> float:
        """N · W(m), over the machines that were there. The recorded number is taken where they are not all recorded, and for a
        task of a route: which models its file allowed is not in the log."""
        behind = self._released.behind or 0
        if self._pairs is None:
            return self._others.get(model, 0.0)
        if not behind or len(self._pairs) < 2:
            return 0.0
        holders = [w for w in self._pairs.get(model, ()) if w in self.machines and self.machines[w].heard]
        rates = [1.0 / service_s(self._speed(model, w), self.machines[w], TYPICAL_PROMPT_TOKENS) for w in holders]
        return behind * (1.0 / sum(rates)) if rates else 0.0


def _pairs(request: RouteRequest, fleet: Fleet) -> Iterator[tuple[str, tuple[str, ...]]]:
    pairs = ((model, may_serve(model, fleet, request)) for model in allowed_models(fleet, request))
    yield from best_suited(tuple((model, workers) for model, workers in pairs if workers), fleet, request)
