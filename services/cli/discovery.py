"""Which LLM servers already run on this machine.

Answers "beside what can ``headrace up`` put a worker without being told?". Asks only for versions and model lists: nothing here
loads, keeps or evicts a model. What a server really is, its worker finds out for itself.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import httpx

PROBE_S = 1.5
"""A local server answers a version in milliseconds; one that is loading a model or swapping gets a second more."""


class DefaultPort(NamedTuple):
    """Where a kind of server listens unless told otherwise, and the path that only its kind answers with JSON."""

    kind: str
    port: int
    path: str
    field: str


DEFAULT_PORTS = (
    DefaultPort("ollama", 11434, "/api/version", "version"),
    DefaultPort("lm-studio", 1234, "/v1/models", "data"),
    DefaultPort("llama.cpp", 8080, "/v1/models", "data"),
    DefaultPort("vllm", 8000, "/v1/models", "data"),
)


class Found(NamedTuple):
    """A server that answered as its port's kind does."""

    kind: str
    url: str


async def find_backends(
    ports: tuple[DefaultPort, ...] = DEFAULT_PORTS, *, transport: httpx.AsyncBaseTransport | None = None
) -> tuple[Found, ...]:
    """The servers on the default ports of this machine, in the table's order."""
    async with httpx.AsyncClient(transport=transport, timeout=PROBE_S, trust_env=False) as http:
        answers = await asyncio.gather(*(_probe(http, port) for port in ports))
    return tuple(found for found in answers if found is not None)


async def answers(url: str, *, transport: httpx.AsyncBaseTransport | None = None) -> bool:
    """Whether a server takes connections there. What it says is its worker's question, and so is how long it takes to."""
    async with httpx.AsyncClient(transport=transport, timeout=PROBE_S, trust_env=False) as http:
        try:
            await http.head(url)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            return False
        except httpx.HTTPError:
            return True
    return True


async def _probe(http: httpx.AsyncClient, port: DefaultPort) -> Found | None:
    """A server that wants a key (401) is there too; a web page that happens to use the port is not."""
    url = f"http://127.0.0.1:{port.port}"
    try:
        answer = await http.get(url + port.path)
        body = answer.json()
    except (httpx.HTTPError, ValueError):
        return None
    expected = isinstance(body, dict) and (port.field in body or (answer.status_code == 401 and "error" in body))
    return Found(port.kind, url) if expected else None
