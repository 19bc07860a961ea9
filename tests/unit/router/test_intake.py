"""From a request to its fact: sizes without images, canonical names, refusals with suggestions."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.errors import UnknownModel, UnknownRoute, UnknownTarget
from schemas.events import Options, Wants
from schemas.work import Body
from services.router.domains import compile_rules
from services.router.intake import HEADERS_MAX, Asked, read, refuse_too_large
from services.router.policy.routes import Routes
from services.router.policy.routes_file import parse_routes
from services.router.port import NewTask, TooLarge
from support.fleets import fleet, model, worker

RULES = compile_rules()
FLEET = fleet(worker("w-1", model("qwen3", backend_name="qwen3:8b"), name="desk"))


def asked(*content: Any, domain: str | None = None, **wants: str) -> Asked:
    messages = tuple({"role": "user", "content": each} for each in content)
    return read(NewTask(body=Body(messages=messages), wants=Wants(**wants), domain=domain), 99, RULES, FLEET)  # type: ignore[arg-type]


def test_an_image_is_counted_as_an_image_and_not_as_its_letters() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}
    seen = asked([{"type": "text", "text": "What is in this picture?"}, picture])
    assert (seen.sizes.images, seen.sizes.chars, seen.sizes.prompt_tokens) == (1, 24, 6)


def test_the_whole_history_counts_and_the_last_message_is_classified() -> None:
    seen = asked("x" * 400, "Write a Python function")
    assert seen.sizes.prompt_tokens == 100 + 6
    assert (seen.domain.label, seen.language) == ("code", "en")


def test_names_become_canonical_and_unknown_models_are_refused() -> None:
    seen = asked("hello", model="qwen3:8b", worker="Desk")
    assert (seen.wants.model, seen.wants.worker) == ("qwen3", "w-1")
    with pytest.raises(UnknownModel) as caught:
        asked("hello", model="qwen")
    assert caught.value.nearest == ("qwen3",)
    assert '; "auto" leaves the choice to the router' in str(caught.value)


def test_a_domain_that_the_client_names_is_taken_as_it_is() -> None:
    seen = asked("Write a Python function", domain="law")
    assert (seen.domain.label, seen.domain.method, seen.domain.confidence) == ("law", "client", None)


def test_the_servers_limit_holds_for_the_text_with_its_headers() -> None:
    refuse_too_large(1_000_000 - HEADERS_MAX, 1_000_000)
    with pytest.raises(TooLarge, match="raise max_payload"):
        refuse_too_large(1_000_000 - HEADERS_MAX + 1, 1_000_000)


ROUTES = parse_routes('[chat]\nslider = 0.5\nroute_by = "least_completion"\n["qwen3"]\nroute_by = "least_in_flight"\n')


def routed(routes: Routes = ROUTES, slider: float | None = None, **wants: str) -> Asked:
    new = NewTask(body=Body(prompt="hi"), wants=Wants(**wants), options=Options(slider=slider))
    return read(new, 99, RULES, FLEET, routes)


def test_a_virtual_model_is_a_route_and_goes_before_a_model_of_that_name() -> None:
    for asked_for in ({"model": "chat"}, {"route": "chat"}):
        assert (routed(**asked_for).wants.route, routed(**asked_for).wants.model) == ("chat", None)
    assert routed(model="qwen3").wants == Wants(route="qwen3")
    assert routed(model="qwen3:8b").wants == Wants(model="qwen3")
    assert routed(route="chat", model="qwen3").wants == Wants(route="chat", model="qwen3")


def test_what_leaves_everything_open_is_auto_where_the_file_says_what_that_is() -> None:
    assert routed().wants == Wants()
    auto = parse_routes('[auto]\nroute_by = "saved_prefill"')
    assert routed(auto).wants == Wants(route="auto")
    assert routed(auto, model="qwen3").wants == Wants(model="qwen3")


def test_an_unknown_route_is_refused_with_the_nearest_and_a_model_with_virtual_ones_too() -> None:
    with pytest.raises(UnknownRoute, match="no route is called 'chatt'; nearest: chat"):
        routed(route="chatt")
    with pytest.raises(UnknownModel) as caught:
        routed(model="chatt")
    assert caught.value.nearest[0] == "chat"
    assert routed(route="auto").wants.route == "auto"


def test_the_routes_slider_is_the_tasks_where_it_has_none() -> None:
    assert routed(model="chat").options.slider == 0.5
    assert routed(model="chat", slider=2.0).options.slider == 2.0
    assert routed(model="qwen3:8b").options.slider is None


def test_a_clients_slider_is_for_what_neither_the_request_nor_its_route_says() -> None:
    def slider(**wants: Any) -> float | None:
        own = wants.pop("slider", None)
        new = NewTask(client="me", body=Body(prompt="hi"), wants=Wants(**wants), options=Options(slider=own))
        return read(new, 2, RULES, FLEET, ROUTES, {"me": 1.5, "you": 3.0}).options.slider

    assert slider(model="qwen3:8b") == 1.5
    assert slider(model="chat") == 0.5
    assert slider(model="chat", slider=2.0) == 2.0


def test_a_route_that_leads_nowhere_is_refused_at_once() -> None:
    routes = parse_routes('[canary]\ntargets = [{model = "qwen3", worker = "desc"}]\n')
    with pytest.raises(UnknownTarget, match=r"no worker is called 'desc' \(nearest: desk\)"):
        read(NewTask(body=Body(prompt="Hi"), wants=Wants(model="canary")), 9, RULES, FLEET, routes)
