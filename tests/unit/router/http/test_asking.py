from __future__ import annotations

import msgspec
import pytest

from services.router.fleet import Fleet
from services.router.http.asking import limit_of, wanted_model, worker_id
from services.router.http.reading import BadRequest
from support.router_port import DESKTOP, LAPTOP

FLEET = Fleet(workers={"w-1": DESKTOP, "w-2": LAPTOP, "w-3": msgspec.structs.replace(LAPTOP, id="w-3")})


def test_a_worker_is_found_by_id_or_by_a_name_that_only_it_has() -> None:
    assert (worker_id(FLEET, None, "w"), worker_id(FLEET, "w-1", "w"), worker_id(FLEET, "desktop", "w")) == (
        None,
        "w-1",
        "w-1",
    )


def test_a_name_that_two_have_or_nobody_is_refused_with_the_way_out() -> None:
    with pytest.raises(BadRequest, match="use an id: w-2, w-3"):
        worker_id(FLEET, "laptop", "w")
    with pytest.raises(BadRequest, match="nearest: desktop, laptop"):
        worker_id(FLEET, "nas", "w")
    with pytest.raises(BadRequest, match="no worker yet"):
        worker_id(Fleet(), "nas", "w")


def test_below_nothing_there_is_no_limit_and_nothing_is_refused() -> None:
    assert [limit_of(tokens, "max_tokens") for tokens in (None, -2, -1, 1)] == [None, None, None, 1]
    with pytest.raises(BadRequest, match="max_tokens is 0; leave it out"):
        limit_of(0, "max_tokens")


def test_auto_is_no_model() -> None:
    assert (wanted_model(None), wanted_model("auto"), wanted_model("qwen3")) == (None, None, "qwen3")
