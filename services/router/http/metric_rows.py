"""What is measured, as Prometheus families.

Answers "what does ``GET /metrics`` say?" (docs/operations.md has each line's meaning). Pure; what is unknown is left out, never
0. Labels are models, machines and fixed words, so their number is bounded by the fleet.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from schemas.statistics import Statistics, effective
from services.router.fleet import Fleet, WorkerView
from services.router.measures import Measures
from services.router.port import Readiness
from services.router.tally import RATIOS, Ratios

MACHINE = ("worker", "name")
PAIR = ("worker", "name", "model")
ANY_DOMAIN = ""


def families(
    measures: Measures, fleet: Fleet, statistics: Statistics, ready: Readiness, now_us: int
) -> Iterator[Metric]:
    yield from _router(measures, ready)
    yield from _queue(measures)
    yield from _permits(measures)
    yield from _facts(measures)
    yield from _machines(fleet)
    yield _decode(fleet, statistics, now_us)
    yield from _predictions(measures.tally.ratios, fleet)


def _router(measures: Measures, ready: Readiness) -> Iterator[Metric]:
    for name, words, value in (
        ("ready", "1 when this router has read the log and somebody decides.", ready.ready),
        ("dispatcher", "1 when this router decides; one router of a fleet does.", ready.dispatcher),
        ("epoch", "Number of the present dispatcher's term.", ready.epoch),
        ("log_position", "Sequence of the last fact that this router has read.", ready.position),
        ("statistics_position", "Sequence of the log that the statistics are the sum of.", measures.statistics),
        ("statistics_exact", "1 when decisions made now can be computed again to the last bit.", measures.exact),
    ):
        yield GaugeMetricFamily(f"headrace_{name}", words, value=float(value))


def _queue(measures: Measures) -> Iterator[Metric]:
    waiting = GaugeMetricFamily("headrace_queue_tasks", "Tasks that wait, by class.", labels=["urgency"])
    for urgency, count in sorted(measures.waiting.items()):
        waiting.add_metric([urgency], count)
    held = GaugeMetricFamily("headrace_held_tasks", "Tasks that wait, by what holds them.", labels=["reason"])
    for reason, count in sorted(measures.held.items()):
        held.add_metric([reason], count)
    live = GaugeMetricFamily("headrace_live_tasks", "Tasks released or running.", labels=["state"])
    live.add_metric(["released"], measures.released)
    live.add_metric(["running"], measures.running)
    yield from (waiting, held, live)


def _permits(measures: Measures) -> Iterator[Metric]:
    labels = ["kind", "name"]
    held = GaugeMetricFamily("headrace_permits_held", "Permits held by live attempts; name * is all.", labels=labels)
    limit = GaugeMetricFamily("headrace_permits_limit", "How many permits there may be, where limited.", labels=labels)
    for permit in measures.permits:
        held.add_metric([permit.kind, permit.name], permit.held)
        if permit.limit is not None:
            limit.add_metric([permit.kind, permit.name], permit.limit)
    yield from (held, limit)


def _facts(measures: Measures) -> Iterator[Metric]:
    tally = measures.tally
    for name, words, label, counts in (
        ("releases", "Attempts released, since this router started.", "model", tally.releases),
        ("deviations", "Attempts that another machine started than planned.", "model", tally.deviations),
        ("attempts_failed", "Attempts that failed, by class.", "failure", tally.failures),
        ("answers", "Answers, by what was good or wrong with them.", "outcome", tally.outcomes),
        ("tasks_ended", "Tasks that ended, by how.", "state", tally.ends),
    ):
        family = CounterMetricFamily(f"headrace_{name}", words, labels=[label])
        for key, count in sorted(counts.items()):
            family.add_metric([key], count)
        yield family


def _machines(fleet: Fleet) -> Iterator[Metric]:
    for name, words, read in (
        ("up", "1 when the machine was heard lately and its model server does not say that it is down.", _is_up),
        ("paused", "1 while somebody has taken it out.", lambda view: view.paused),
        ("slots", "How many attempts it runs at once.", lambda view: view.slots),
        ("free_slots", "Slots free, by its own word.", lambda view: view.free),
        ("running", "Attempts that run there, by its own word.", lambda view: view.running),
        ("heard_seconds", "Since its last credit.", lambda view: view.credit_age_s),
        ("others_use", "Share of the machine that somebody else uses.", lambda view: view.others_use),
        ("wait_seconds", "Predicted until a slot is free.", lambda view: view.wait_s),
    ):
        family = GaugeMetricFamily(f"headrace_worker_{name}", words, labels=MACHINE)
        for view in fleet.workers.values():
            value = read(view)
            if value is not None:
                family.add_metric([view.id, view.name], float(value))
        yield family


def _is_up(view: WorkerView) -> bool:
    return view.alive and view.backend_up is not False


def _decode(fleet: Fleet, statistics: Statistics, now_us: int) -> Metric:
    words = "What the router expects of a model there, alone on the machine; only what was measured there."
    family = GaugeMetricFamily("headrace_decode_tokens_per_second", words, labels=PAIR)
    for view in fleet.workers.values():
        for model, info in sorted(view.models.items()):
            known = effective(statistics, model, ANY_DOMAIN, view.id, model_bytes=info.bytes, now_us=now_us).decode
            if known.value is not None and known.level in ("cell", "model_worker"):
                family.add_metric([view.id, view.name, model], known.value)
    return family


def _predictions(ratios: dict[tuple[str, str], Ratios], fleet: Fleet) -> Iterator[Metric]:
    ratio = HistogramMetricFamily(
        "headrace_prediction_ratio", "Observed / predicted seconds of attempts, load included, queue not.", labels=PAIR
    )
    predicted = CounterMetricFamily("headrace_predicted_seconds", "Predicted of the same attempts.", labels=PAIR)
    observed = CounterMetricFamily("headrace_observed_seconds", "Observed of the same attempts.", labels=PAIR)
    bounds = [*map(floatToGoString, RATIOS), "+Inf"]
    for (worker, model), found in sorted(ratios.items()):
        view = fleet.workers.get(worker)
        labels = [worker, view.name if view is not None else worker, model]
        ratio.add_metric(labels, list(zip(bounds, accumulate(found.counts), strict=True)), found.sum)
        predicted.add_metric(labels, found.predicted_s)
        observed.add_metric(labels, found.observed_s)
    yield from (ratio, predicted, observed)
