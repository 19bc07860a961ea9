"""What nobody who was asked for can do is refused at once, with those who can."""

from __future__ import annotations

import pytest

from schemas.events import Wants
from services.router.needs import refuse_unable
from services.router.policy.request import RouteRequest
from services.router.policy.routes import Routes
from services.router.policy.routes_file import parse_routes
from services.router.port import Unsupported
from support.fleets import fleet, model, worker

FLEET = fleet(
    worker("w-1", model("plain", capabilities=("completion",), lacks=("tools", "vision"), context=2048), alive=False),
    worker("w-2", model("able", capabilities=("completion", "tools"), lacks=("vision",), context=8192)),
    worker("w-3", model("unsaid", capabilities=("completion",))),
    worker("w-4", model("nomic", capability="embedding", capabilities=("embedding",))),
)
NONE = Routes()


def refused(request: RouteRequest, routes: Routes = NONE) -> Unsupported:
    with pytest.raises(Unsupported) as error:
        refuse_unable(request, FLEET, routes)
    return error.value


def test_tools_for_a_model_that_takes_none_name_those_that_do_or_might() -> None:
    error = refused(RouteRequest(prompt_tokens=1, needs=("tools",), wants=Wants(model="plain")))
    assert str(error) == "plain takes no tools; these can: able, unsaid"
    assert (error.field, error.able) == ("tools", ("able", "unsaid"))


def test_an_image_by_url_for_models_whose_server_fetches_none_names_the_way_out_and_who_would() -> None:
    seeing = {"capabilities": ("completion", "vision")}
    sees = fleet(
        worker("w-1", model("llava", lacks=("image_urls",), **seeing)), worker("w-2", model("qwen-vl", **seeing))
    )
    request = RouteRequest(prompt_tokens=1, needs=("vision", "image_urls"), wants=Wants(model="llava"))
    with pytest.raises(Unsupported) as error:
        refuse_unable(request, sees, NONE)
    assert str(error.value) == "llava takes no images by URL (send them as data: URIs); these can: qwen-vl"
    assert (error.value.field, error.value.able) == ("messages", ("qwen-vl",))
    refuse_unable(RouteRequest(prompt_tokens=1, needs=("vision", "image_urls")), sees, NONE)


def test_a_capability_that_nobody_has_is_refused_before_anybody_is_woken_for_it() -> None:
    error = refused(RouteRequest(prompt_tokens=1, wants=Wants(model="able", capability="rag")))
    assert str(error) == "rag was asked for, has cpu_inference, completion, tools; no model in the fleet can"
    assert (error.field, error.able) == ("capability", ())


def test_an_embedding_of_a_chat_model_and_a_chat_of_an_embedding_model() -> None:
    error = refused(RouteRequest(prompt_tokens=1, kind="embedding", wants=Wants(model="able")))
    assert str(error) == "able makes no embeddings; these can: nomic"
    error = refused(RouteRequest(prompt_tokens=1, wants=Wants(model="nomic")))
    assert error.able == ("able", "plain", "unsaid")


def test_a_context_that_the_model_does_not_have() -> None:
    error = refused(RouteRequest(prompt_tokens=1, wants=Wants(model="plain", context=4096)))
    assert str(error) == "4096 tokens were asked for, plain has 2048; these can: able, unsaid"


def test_a_route_is_refused_only_where_no_target_and_no_fallback_can() -> None:
    routes = parse_routes(
        '[r]\ntargets = [{model = "plain"}]\n[s]\ntargets = [{model = "plain"}]\nfallback = [{model = "able"}]\n'
    )
    request = RouteRequest(prompt_tokens=1, needs=("tools",), wants=Wants(route="r"))
    assert refused(request, routes).able == ("able", "unsaid")
    refuse_unable(RouteRequest(prompt_tokens=1, needs=("tools",), wants=Wants(route="s")), FLEET, routes)


@pytest.mark.parametrize(
    "request_",
    [
        RouteRequest(prompt_tokens=1, needs=("tools",)),
        RouteRequest(prompt_tokens=1, needs=("tools",), wants=Wants(model="unsaid")),
        RouteRequest(prompt_tokens=1, wants=Wants(model="plain")),
        RouteRequest(prompt_tokens=1, needs=("tools",), wants=Wants(model="plain", worker="w-9")),
    ],
)
def test_waiting_is_not_in_vain_where_somebody_might(request_: RouteRequest) -> None:
    refuse_unable(request_, FLEET, NONE)
    refuse_unable(request_, fleet(), NONE)
