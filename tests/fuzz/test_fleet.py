"""The same requests to a whole fleet: nats-server, router, projector and a worker before a model server. ``make e2e-fuzz``."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from pathlib import Path

import httpx
import pytest
import schemathesis

from support.fuzzing import examine, operations
from support.stand_in_fleet import stand_in_fleet
from support.toured import EMBEDDER, MODEL, toured

pytestmark = pytest.mark.e2e

EXAMPLES = int(os.environ.get("HEADRACE_FUZZ_EXAMPLES", "90"))
"""For each path that takes anything. 2,000 and more in all."""


async def test_a_whole_fleet_answers_whatever_it_is_asked(tmp_path: Path) -> None:
    total: Counter[int] = Counter()
    async with toured(as_ollama=True) as url, stand_in_fleet(tmp_path, {"desk": url}, slots=4) as (proof, _):
        router = proof.stack.router_url
        task = await proof.submit("Hi", max_tokens=8)
        await proof.ended(task)
        async with httpx.AsyncClient(base_url=router, trust_env=False) as client:
            document = (await client.get("/openapi.json")).json()
        names = {
            "task": task,
            "worker": "desk",
            "model": MODEL,
            "response": f"resp_{task}",
            "run": task,
            "compare": task,
        }
        for operation in operations(schemathesis.openapi.from_dict(document)):
            if (operation.method, operation.path) == ("post", "/workers/{worker}/pause"):
                continue  # the only machine would be out
            told = names | ({"model": EMBEDDER} if "embed" in operation.path else {})
            seen = await asyncio.to_thread(examine, operation, router, EXAMPLES, told, shrink=False)
            print(f"{operation.method.upper():6} {operation.path:28} {dict(seen)}", flush=True)
            total += seen
        assert (await proof.http.get("/readyz")).status_code == 200
        crashes = logs(tmp_path).count("request_failed")
    print(f"{total.total()} requests: {dict(total)}")
    assert crashes == 0
    assert total.total() >= 20 * EXAMPLES


def logs(folder: Path) -> str:
    """All that the parts wrote."""
    return "".join(path.read_text(errors="replace") for path in sorted(folder.rglob("*.log")))
