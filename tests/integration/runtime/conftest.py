"""The suites of the runtime go through each NATS that people may have: our embedded one, and a container where Docker answers.

A test that asks for ``natsd`` kills or freezes it, so it runs against the embedded one alone. Without a daemon one test says that
it was skipped (test_container.py), instead of all of them.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from functools import cache

import pytest

from services.runtime.bus import Bus
from services.runtime.provision import provision

IMAGE = "nats:2.15"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "nats_url" in metafunc.fixturenames and "natsd" not in metafunc.fixturenames:
        servers = ["embedded", "container"] if docker_answers() else ["embedded"]
        metafunc.parametrize("nats_url", servers, indirect=True)


@pytest.fixture
def nats_url(request: pytest.FixtureRequest) -> str:
    if getattr(request, "param", "embedded") == "container":
        return str(request.getfixturevalue("container_url"))
    return str(request.getfixturevalue("natsd").url)


@pytest.fixture
async def empty_bus(nats_url: str) -> AsyncIterator[Bus]:
    """A connection to a server without any stream: ours is new, the container may have served a test before."""
    async with await Bus.connect(nats_url, name="test") as connected:
        for stream in (await connected.api("STREAM.NAMES"))["streams"] or ():
            await connected.api(f"STREAM.DELETE.{stream}")
        yield connected


@pytest.fixture
async def bus(empty_bus: Bus) -> Bus:
    """All streams are in place, and nothing is in them."""
    await provision(empty_bus)
    return empty_bus


@pytest.fixture(scope="session")
def container_url() -> Iterator[str]:
    containers = pytest.importorskip("testcontainers.core.container", reason="testcontainers is not installed")
    waiting = pytest.importorskip("testcontainers.core.wait_strategies")
    if not (docker_answers() and (_docker("image", "inspect", IMAGE) or _docker("pull", IMAGE))):
        pytest.skip(f"no Docker daemon answers, or none that has or can pull {IMAGE}")
    # Its own NatsContainer waits in a way that it calls deprecated itself, and warnings are errors.
    server = containers.DockerContainer(IMAGE).with_command("-js").with_exposed_ports(4222)
    with server.waiting_for(waiting.LogMessageWaitStrategy("Server is ready")) as container:
        yield f"nats://{container.get_container_host_ip()}:{container.get_exposed_port(4222)}"


@cache
def docker_answers() -> bool:
    return _docker("info")


def _docker(*arguments: str) -> bool:
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", *arguments], capture_output=True, timeout=300, check=False).returncode == 0
