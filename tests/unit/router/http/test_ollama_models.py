from __future__ import annotations

import ollama

from schemas.events import Loaded, ModelInfo
from services.router.fleet import Fleet
from services.router.http.ollama_models import FOREVER, capabilities, digest_of, running, show, tags
from services.router.policy.routes import Route, Routes, Target
from support.fleets import fleet, model, worker

EMBEDDER = model("nomic", capabilities=("embedding",), capability="embedding")
FLEET = Fleet(
    workers={
        each.id: each
        for each in (
            worker("a", model("qwen3", capabilities=("completion", "tools"), context=4096), EMBEDDER),
            worker("b", model("qwen3", capabilities=("completion", "tools"), context=16384), model("phi")),
        )
    }
)
ROUTES = Routes(routes={"code": Route(name="code", by="policy", targets=(Target(model="phi"),))})


def test_a_model_is_one_row_wherever_it_is() -> None:
    assert [row["name"] for row in tags(FLEET, ROUTES)] == ["auto", "code", "nomic", "phi", "qwen3"]


def test_the_window_shown_is_the_largest_that_a_request_may_get() -> None:
    shown = show("qwen3", FLEET, ROUTES)
    assert shown is not None
    assert shown["model_info"]["qwen.context_length"] == 16384
    assert "held by a, b" in shown["modelfile"]


def test_what_a_loaded_model_takes_is_the_machines_word_and_unknown_where_it_has_none() -> None:
    told = {
        "half": Loaded(model="half", bytes=100, vram_bytes=40, expires_at=1_795_921_200.5),
        "cpu": Loaded(model="cpu", bytes=100, vram_bytes=0),
        "some": Loaded(model="some", bytes=100),
    }
    rows = {row["name"]: row for row in running(fleet(worker("a", *told, "unsaid", loaded=told)))}
    assert {name: (row.get("size"), row["size_vram"]) for name, row in rows.items()} == {
        "half": (100, 40), "cpu": (100, 0), "some": (0, 1), "unsaid": (0, 1),
    }  # fmt: skip
    assert {name: row["expires_at"] for name, row in rows.items()} == {
        "half": "2026-11-29T03:00:00.500000Z", "cpu": FOREVER, "some": FOREVER, "unsaid": FOREVER,
    }  # fmt: skip


def test_every_row_is_one_that_the_official_client_reads() -> None:
    all_of_it = fleet(worker("a", model("unsaid", bytes=None)))
    listed = ollama.ListResponse(models=tags(all_of_it, ROUTES))
    loaded = ollama.ProcessResponse(models=running(all_of_it))
    assert [(model.model, model.size) for model in listed.models] == [("auto", 0), ("code", 0), ("unsaid", 0)]
    assert [(model.model, model.size, model.size_vram) for model in loaded.models] == [("unsaid", 0, 1)]


def test_what_a_model_is_is_the_machines_word_and_the_family_else_the_names() -> None:
    said = model("smollm2", family="llama", families=("llama", "clip"), parameter_size="134.52M")
    shown = show("smollm2", fleet(worker("a", said)), ROUTES)
    assert shown is not None and shown["model_info"]["general.architecture"] == "llama"
    assert {name: shown["details"][name] for name in ("family", "families", "parameter_size")} == {
        "family": "llama", "families": ("llama", "clip"), "parameter_size": "134.52M",
    }  # fmt: skip
    (row,) = [row for row in tags(fleet(worker("a", "smollm2")), ROUTES) if row["name"] == "smollm2"]
    assert (row["details"]["family"], row["details"]["parameter_size"]) == ("smollm", "")


TOLD = 'num_ctx                        8192\nnum_predict                    64\nstop                           "<|im_end|>"'


def test_the_parameters_are_those_that_hold_for_a_request_of_ours_where_the_window_is_the_largest() -> None:
    small = worker("a", model("smollm2", context=4096, parameters="temperature 0.1"))
    large = worker("b", model("smollm2", context=16384, parameters=TOLD))
    shown = show("smollm2", fleet(small, large), ROUTES)
    assert shown is not None
    assert shown["parameters"] == 'num_ctx                        16384\nstop                           "<|im_end|>"'
    unsaid = show("smollm2", fleet(worker("a", model("smollm2", parameters=TOLD))), ROUTES)
    assert unsaid is not None and unsaid["parameters"].splitlines()[0] == TOLD.splitlines()[0]


def test_without_parameters_nothing_is_said_of_them() -> None:
    for told in (None, "num_predict 64"):
        shown = show("smollm2", fleet(worker("a", model("smollm2", parameters=told))), ROUTES)
        assert shown is not None and "parameters" not in shown
    assert "parameters" not in (show("auto", FLEET, ROUTES) or {})


def test_a_route_is_never_taken_for_an_embedding_model() -> None:
    shown = {name: show(name, FLEET, ROUTES) for name in ("auto", "code")}
    assert [value["capabilities"] for value in shown.values() if value] == [["completion", "tools"], ["completion"]]
    assert show("nobody", FLEET, ROUTES) is None


def test_a_route_over_an_empty_fleet_is_shown_all_the_same() -> None:
    shown = show("auto", Fleet(), Routes())
    assert shown is not None and "none yet" in shown["modelfile"]
    assert shown["capabilities"] == []


def test_a_digest_is_long_enough_to_be_cut() -> None:
    assert digest_of("m", ModelInfo(name="m", backend_name="m", digest="sha256:" + "ab" * 32)) == "ab" * 32
    assert len(digest_of("m", ModelInfo(name="m", backend_name="m"))) == 64
    assert digest_of("m") != digest_of("n")


def test_what_says_nothing_is_called_for_what_it_is_for() -> None:
    assert capabilities([ModelInfo(name="m", backend_name="m")]) == ["completion"]
    assert capabilities([ModelInfo(name="m", backend_name="m", capability="embedding")]) == ["embedding"]
