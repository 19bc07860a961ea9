"""Names that users and model makers choose, on a real server: as subject, as durable and as key."""

from __future__ import annotations

import pytest

from schemas import streams, subjects
from services.runtime.bus import Bus
from services.runtime.provision import ensure_consumer

NAMES = [
    "qwen2.5:7b",
    "hf.co/elyza/Llama-3-ELYZA-JP-8B-GGUF:Q4_K_M",
    "C:\\models\\my model.gguf",
    "日本語のモデル",
    "🧭" * 75,
    "*",
    ">",
    "a.*.>",
    "=2E",
    "\x00\r\n\t",
    "$JS.API",
    "x" * 900,
]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name[:12]))
async def test_any_name_is_stored_grouped_and_keyed_by_a_real_server(bus: Bus, name: str) -> None:
    assert await ensure_consumer(bus, streams.group_consumer("cpu_inference", name, cap=1, members=1))
    assert await ensure_consumer(bus, streams.lane_consumer(name, slots=1))
    subject = subjects.item_subject("cpu_inference", name, subjects.ANY_LANE, name, 1)
    await bus.publish_stored(subject, b"{}", "id-1")

    stored = await bus.last_for("TASKS", subject)
    assert stored is not None
    assert subjects.parse_item_subject(stored.subject) == ("cpu_inference", name, "any", name, 1)
    group = await bus.api(f"CONSUMER.INFO.TASKS.{subjects.group_durable('cpu_inference', name)}")
    assert group["num_pending"] == 1
    assert group["config"]["metadata"]["model"] == name

    key = subjects.stats_key(name, name, name)
    await bus.kv_put("stats", key, b"cell")
    found = await bus.kv_get("stats", key)
    assert found is not None
    assert found.data == b"cell"
