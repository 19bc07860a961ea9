"""The same streams, bus, feed and take against a NATS in a container, where a Docker daemon answers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pytest

from schemas.streams import STREAMS, group_consumer
from services.runtime.bus import Bus
from services.runtime.feed import Feed
from services.runtime.provision import ensure_consumer, provision
from services.runtime.stored import StoredMessage
from services.runtime.take import Taker

IMAGE = "nats:2.15"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    nats = pytest.importorskip("testcontainers.community.nats", reason="testcontainers is not installed")
    if not (_docker("info") and (_docker("image", "inspect", IMAGE) or _docker("pull", IMAGE))):
        pytest.skip(f"no Docker daemon answers, or none that has or can pull {IMAGE}")
    with nats.NatsContainer(IMAGE, jetstream=True) as container:
        yield container.nats_uri()


def _docker(*arguments: str) -> bool:
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", *arguments], capture_output=True, timeout=300, check=False).returncode == 0


async def test_a_task_goes_through_a_server_that_we_did_not_start(url: str) -> None:
    heard: list[int] = []

    async def hear(message: StoredMessage) -> None:
        heard.append(message.seq)

    async with await Bus.connect(url, name="test") as bus:
        assert len(await provision(bus)) == len(STREAMS)
        assert await provision(bus) == []
        await ensure_consumer(bus, group_consumer("chat", "m", cap=1, members=1))
        round_ = await Taker(bus).arm([("g~chat~m", 0)], 1, 10)
        await bus.publish_stored("task.q.chat.m.any.t1.1", b"item", "t1.1")
        (item,) = await round_.items()
        await bus.publish_stored("ev.task.completed.w1", b"{}", "t1.end")
        assert await item.ack()
        async with Feed(bus, "EVENTS", hear) as feed:
            await feed.caught_up.wait()
    assert heard == [1]
