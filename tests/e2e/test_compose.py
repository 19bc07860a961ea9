"""Dockerfile and compose.yaml, for real: build, start, wait until healthy, answer one prompt, stop. ``make e2e-compose``."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from support.docker import Unavailable, compose_command, daemon, python_base, run
from support.eventually import eventually_now
from support.source import ROOT

pytestmark = pytest.mark.e2e

PARTS = ("nats", "router", "projector", "benchmarker", "llama", "demo-worker")
"""All but ``worker``, which is for a backend on the host."""


class Composed:
    """The running project: its commands and the router's URL."""

    def __init__(self, command: tuple[str, ...], env: dict[str, str]) -> None:
        self._command, self._env = (*command, "--project-name", "headrace-e2e", "--profile", "demo"), env
        self.url = ""

    def __call__(self, *arguments: str) -> str:
        return run(*self._command, *arguments, env=self._env)

    def states(self) -> str:
        return self("ps", "--all", "--format", "{{.Service}} {{.State}} {{.Health}}")


@pytest.fixture(scope="module")
def composed() -> Iterator[Composed]:
    try:
        command = compose_command()
        with daemon() as env:
            base = python_base(env)
            choices = {
                "BASE": base,
                "BUILD_NETWORK": "host",
                "HEADRACE_PORT": "0",
                "NATS_PORT": "0",
                "DOCKER_BUILDKIT": "0",
            }
            project = Composed(command, env | choices)
            try:
                project("build")
                project("up", "--detach", "--wait", "--wait-timeout", "180", *PARTS)
                project.url = f"http://{project('port', 'router', '8420').strip()}"
                yield project
            except AssertionError as error:
                error.add_note(project("logs", "--no-color", "--tail", "40"))
                raise
            finally:
                project("down", "--volumes", "--remove-orphans", "--timeout", "20")
    except Unavailable as reason:
        pytest.skip(str(reason))


def test_every_part_is_up_and_those_with_a_health_check_are_healthy(composed: Composed) -> None:
    states = dict(line.split(" ", 1) for line in composed.states().splitlines())
    assert {name: states[name].strip() for name in PARTS} == {
        "nats": "running healthy",
        "router": "running healthy",
        "projector": "running",
        "benchmarker": "running",
        "llama": "running healthy",
        "demo-worker": "running",
    }


def test_a_prompt_is_answered_by_the_model_in_the_container(composed: Composed) -> None:
    with httpx.Client(base_url=composed.url, timeout=120) as http:
        model = eventually_now(lambda: [entry["id"] for entry in http.get("/v1/models").json()["data"]], within_s=60)[0]
        question = {"model": model, "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 16}
        answer = http.post("/v1/chat/completions", json=question)
        assert answer.status_code == 200, answer.text + composed("logs", "--no-color", "--tail", "40", "router")
        assert answer.json()["choices"][0]["message"]["content"].strip()
        assert answer.headers["x-headrace-worker"]


def test_what_was_answered_is_in_the_statistics(composed: Composed) -> None:
    with httpx.Client(base_url=composed.url, timeout=30) as http:
        assert eventually_now(lambda: http.get("/stats").json(), within_s=30)


def test_ports_are_published_on_loopback_alone(composed: Composed) -> None:
    for service, port in (("router", "8420"), ("nats", "4222")):
        assert composed("port", service, port).startswith("127.0.0.1:")


def test_compose_file_needs_nothing_but_its_defaults() -> None:
    """Every ``${NAME}`` in compose.yaml has a default, so a plain ``docker compose up`` works."""
    text = (ROOT / "compose.yaml").read_text()
    assert [part.split("}")[0] for part in text.split("${")[1:] if ":-" not in part.split("}")[0]] == []
