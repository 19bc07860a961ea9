"""/metrics as a scraper reads it: through the parser of the client that Prometheus' own project publishes."""

from __future__ import annotations

import time

import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from schemas import events
from schemas.events import Prediction, Times
from services.router.http.metrics import RouterCollector
from services.router.port import RouterPort
from support.builders import QWEN, build
from support.fleets import cell
from support.router_port import DESKTOP, LAPTOP, MemoryRouter

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scraped(router: RouterPort) -> Samples:
    registry = CollectorRegistry()
    registry.register(RouterCollector(router))
    found: Samples = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        assert family.documentation, family.name
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found, f"{key} is said twice"
            found[key] = sample.value
    return found


def value(samples: Samples, family: str, /, **labels: str) -> float:
    return samples[family, frozenset(labels.items())]


def test_a_scraper_reads_the_router_the_queue_and_the_permits() -> None:
    samples = scraped(MemoryRouter())
    assert value(samples, "headrace_ready") == 1
    assert value(samples, "headrace_dispatcher") == 1
    assert value(samples, "headrace_epoch") == 1
    assert value(samples, "headrace_log_position") == 5
    assert value(samples, "headrace_queue_tasks", urgency="interactive") == 0
    assert value(samples, "headrace_permits_held", kind="backend", name="*") == 0


def test_of_a_machine_the_known_is_said_and_the_unknown_is_left_out() -> None:
    samples = scraped(MemoryRouter())
    assert value(samples, "headrace_worker_up", worker="w-1", name="desktop") == 1
    assert value(samples, "headrace_worker_free_slots", worker="w-1", name="desktop") == 1
    laptop = {name for name, labels in samples if ("worker", LAPTOP.id) in labels}
    assert "headrace_worker_slots" in laptop
    assert not laptop & {"headrace_worker_free_slots", "headrace_worker_heard_seconds", "headrace_worker_others_use"}


def test_a_machine_whose_model_server_is_down_is_not_up() -> None:
    router = MemoryRouter()
    router.view = msgspec.structs.replace(
        router.view, workers={"w-1": msgspec.structs.replace(DESKTOP, backend_up=False)}
    )
    assert value(scraped(router), "headrace_worker_up", worker="w-1", name="desktop") == 0


def test_a_decode_rate_is_said_only_of_what_was_measured_on_that_machine() -> None:
    router = MemoryRouter()
    router.numbers.put(cell("qwen3", "code", "w-1", decode=80.0, model_bytes=None))
    rates = {labels: rate for (name, labels), rate in scraped(router).items() if name.startswith("headrace_decode")}
    [(labels, rate)] = rates.items()
    assert labels == {("worker", "w-1"), ("name", "desktop"), ("model", "qwen3")}
    assert rate == pytest.approx(80.0, rel=0.1)


def test_predicted_against_observed_is_a_histogram_with_its_sums() -> None:
    router = MemoryRouter()
    predicted = Prediction(wait_s=0.0, total_s=2.0)
    for task, took_s in (("t1", 1.0), ("t2", 2.0), ("t3", 20.0)):
        told = {"task": task, "attempt": 1, "model": QWEN}
        router.tally.tell(build(events.TaskReleased, expected_worker="w-1", predicted=predicted, **told))
        router.tally.tell(build(events.TaskCompleted, worker="w-1", times=Times(total_s=took_s), **told))
    samples, pair = scraped(router), {"worker": "w-1", "name": "desktop", "model": QWEN}
    assert value(samples, "headrace_prediction_ratio_bucket", le="0.5", **pair) == 1
    assert value(samples, "headrace_prediction_ratio_bucket", le="1.0", **pair) == 2
    assert value(samples, "headrace_prediction_ratio_bucket", le="+Inf", **pair) == 3
    assert value(samples, "headrace_prediction_ratio_count", **pair) == 3
    assert value(samples, "headrace_predicted_seconds_total", **pair) == 6.0
    assert value(samples, "headrace_observed_seconds_total", **pair) == 23.0
    assert value(samples, "headrace_releases_total", model=QWEN) == 3


def test_names_that_need_escaping_arrive_as_they_are() -> None:
    router = MemoryRouter()
    name = 'a "quoted"\nname\\'
    router.view = msgspec.structs.replace(router.view, workers={"w-1": msgspec.structs.replace(DESKTOP, name=name)})
    assert value(scraped(router), "headrace_worker_up", worker="w-1", name=name) == 1


def test_two_hundred_machines_of_ten_models_are_scraped_without_repeating_a_label() -> None:
    router = MemoryRouter()
    models = {f"m{n}": msgspec.structs.replace(DESKTOP.models["qwen3"], name=f"m{n}") for n in range(10)}
    views = [msgspec.structs.replace(DESKTOP, id=f"w-{n}", models=models) for n in range(200)]
    router.view = msgspec.structs.replace(router.view, workers={view.id: view for view in views})
    started = time.monotonic()
    samples = scraped(router)
    print(f"\n200 machines of 10 models: {len(samples)} samples in {time.monotonic() - started:.2f} s")
    assert len({labels for name, labels in samples if name == "headrace_worker_up"}) == 200
