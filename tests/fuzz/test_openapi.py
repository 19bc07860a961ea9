"""Whatever schemathesis makes of our own ``/openapi.json``, over a router in memory; ``make e2e-fuzz`` asks a whole fleet."""

from __future__ import annotations

import asyncio

import httpx
import pytest
import schemathesis

from schemas.work import PullProgress
from services.router import intake
from services.router.domains import compile_rules
from services.router.http.app import create_app
from services.router.http.openapi_rows import ROWS
from services.router.http.serving import serving
from services.router.port import NewTask, Submitted
from support.fuzzing import examine, operations
from support.router_port import MemoryRouter

EXAMPLES = 12
NAMES = {"task": "t1", "worker": "desktop", "model": "auto", "run": "r1", "response": "resp_t1", "compare": "t1"}
RULES = compile_rules({})


class ReadingRouter(MemoryRouter):
    """Also reads each request as the real router does: what a surface lets through must not break it. Pulls end at once."""

    def __init__(self) -> None:
        super().__init__()
        self.pull_words = [PullProgress(status="success", done=True)]

    async def submit(self, task: NewTask) -> Submitted:
        intake.read(task, 0, RULES, self.view)
        return await super().submit(task)


@pytest.mark.parametrize(("method", "path"), sorted(ROWS))
async def test_every_path_keeps_what_the_schema_says_of_it(method: str, path: str) -> None:
    app = create_app(ReadingRouter())
    schema = schemathesis.openapi.from_dict(app.openapi())
    operation = next(each for each in operations(schema) if (each.method, each.path) == (method, path))
    async with serving(app, "127.0.0.1", 0, drain_s=1) as url:
        async with httpx.AsyncClient(base_url=url, trust_env=False) as client:  # t1 and r1 are known from now on
            await client.post("/route", json={"prompt": "Hi"})
            await client.post("/bench", json={})
        seen = await asyncio.to_thread(examine, operation, url, EXAMPLES, NAMES)
    print(method, path, dict(seen))
    assert seen


def test_every_path_has_a_row() -> None:
    listed = {(method, path) for path, item in create_app(MemoryRouter()).openapi()["paths"].items() for method in item}
    assert listed == set(ROWS)
