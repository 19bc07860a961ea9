"""What a page of the statistics costs the router in a wide fleet: prints, asserts no time.

A request is answered by the process that decides, so its CPU time is time in which nothing is decided.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from services.router.http.app import create_app
from support.router_port import MemoryRouter
from support.wide_stats import wide

pytestmark = pytest.mark.bench

PATHS = {
    "a page of 500 rows": "/stats",
    "by speed": "/stats?sort=decode",
    "one model": "/stats?model=org/model-07:8b",
    "one cell": "/stats?model=org/model-07:8b&domain=code&worker=gpu-117",
    "both maps, 40 x 20": "/stats/map",
    "the picture": "/stats.svg",
    "explain": "/stats/explain?model=org/model-07:8b&domain=code&worker=gpu-117",
}


async def test_statistics_of_200_workers_40_models_and_8_domains() -> None:
    router = MemoryRouter()
    router.numbers, router.view = wide(200, 40, 8)
    transport = httpx.ASGITransport(app=create_app(router))
    async with httpx.AsyncClient(transport=transport, base_url="http://router") as http:
        print(f"\n{len(router.numbers)} cells")
        for words, path in PATHS.items():
            answer = await http.get(path)
            assert answer.status_code == 200, answer.text
            took = [await cpu_s(lambda path=path: http.get(path)) for _ in range(5)]
            print(f"{words:>20}{sorted(took)[2] * 1e3:>9.1f} ms{len(answer.content) / 1e3:>9.0f} kB")


async def cpu_s(work: Callable[[], Any]) -> float:
    since = time.process_time()
    await work()
    return time.process_time() - since
