"""Virtual models over HTTP: listed everywhere, shown as they are in force, refused by name."""

from __future__ import annotations

import httpx
import openai

from schemas.errors import UnknownRoute, UnknownTarget
from services.router.policy.routes_file import parse_routes
from services.router.port import RoutesInForce
from support.eventually import PATIENCE_S
from support.router_port import MemoryRouter

FILE = """\
[canary]
targets = [{model = "qwen3", weight = 95}, {model = "smollm2:135m", weight = 5}]
["qwen3"]
route_by = "saved_prefill"
"""
PROBLEM = "routes.toml, line 3: chat.slider: expected a number"


def in_force() -> RoutesInForce:
    return RoutesInForce(routes=parse_routes(FILE), path="routes.toml", problem=PROBLEM)


async def test_every_list_of_models_has_them_once(url: str, http: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.in_force = in_force()
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="secret", max_retries=0, timeout=PATIENCE_S) as client:
        assert [model.id async for model in client.models.list()] == ["auto", "canary", "qwen3", "smollm2:135m"]
    assert (await http.get("/models")).json()["virtual"] == ["auto", "canary", "qwen3"]


async def test_what_is_in_force_is_shown_with_what_was_refused(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.in_force = in_force()
    shown = (await http.get("/routes")).json()
    assert shown["problem"] == PROBLEM
    canary = next(route for route in shown["routes"] if route["name"] == "canary")
    assert (canary["by"], [target["weight"] for target in canary["targets"]]) == ("target_weight", [95, 5])
    assert "/routes" in (await http.get("/")).text


async def test_no_page_shows_the_key_of_a_decision_service(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    text = '[smart]\nroute_by = "decision_service"\n[smart.decision_service]\nurl = "http://me:hunter2@judge/ask?key=hunter2"\n'
    router.in_force = RoutesInForce(routes=parse_routes(text), path="routes.toml")
    shown = await http.get("/routes")
    assert shown.json()["routes"][0]["decision"]["url"] == "http://judge/ask"
    assert "hunter2" not in shown.text


async def test_an_unknown_route_is_refused_with_the_nearest(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.refusal = UnknownRoute("canari", ("canary",))
    reply = await http.post("/route", json={"prompt": "Hi", "route": "canari"})
    assert reply.status_code == 404
    assert reply.json()["error"]["code"] == "unknown_route"
    assert reply.json()["error"]["nearest"] == ["canary"]


async def test_a_target_that_nobody_is_meant_by_is_a_warning(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.in_force = RoutesInForce(routes=parse_routes('[a]\ntargets = [{model = "qwen3", worker = "fats"}]\n'))
    assert "'fats'" in (await http.get("/routes")).json()["warnings"][0]
    router.refusal = UnknownTarget("a", "no worker is called 'fats'")
    reply = await http.post("/route", json={"prompt": "Hi", "route": "a"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "unknown_target")
