from __future__ import annotations

import httpx
from prometheus_client.parser import text_string_to_metric_families


async def test_metrics_are_served_in_the_form_that_prometheus_scrapes(wire: httpx.AsyncClient) -> None:
    answer = await wire.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    names = {family.name for family in text_string_to_metric_families(answer.text)}
    assert {"headrace_queue_tasks", "headrace_worker_up", "headrace_deviations", "headrace_prediction_ratio"} <= names
