from __future__ import annotations

import pytest

from schemas.events import ModelInfo
from services.runtime.settings import ModelName
from services.worker.backends.names import Known, canonical, find
from services.worker.backends.port import BackendModel

OLLAMA = BackendModel(name="qwen3:8b", digest="d1" * 20, aliases=("qwen", "qwen3:latest"))


def named(model: BackendModel, table: dict[str, object] | None = None, known: Known | None = None) -> ModelInfo:
    (info,) = canonical([model], table or {}, known or Known())
    return info


@pytest.mark.parametrize(
    ("backend_name", "name"),
    [
        ("qwen3:8b", "qwen3:8b"),
        ("/home/me/models/SmolLM2-135M.Q4_1.gguf", "SmolLM2-135M.Q4_1"),
        ("C:\\models\\x.GGUF", "x"),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
    ],
)
def test_a_models_own_name_stands_and_a_path_loses_its_folders(backend_name: str, name: str) -> None:
    info = named(BackendModel(name=backend_name))
    assert (info.name, info.backend_name) == (name, backend_name)


def test_the_table_gives_one_name_to_what_three_backends_call_differently() -> None:
    table = {
        "qwen3:8b": "qwen3",
        "Qwen3-8B-Q4": ModelName(name="qwen3", capability="gpu_inference"),
        "Qwen/Qwen3-8B": {"name": "qwen3"},
    }
    infos = [named(BackendModel(name=name), table) for name in ("qwen3:8b", "/m/Qwen3-8B-Q4.gguf", "Qwen/Qwen3-8B")]
    assert [info.name for info in infos] == ["qwen3"] * 3
    assert [info.capability for info in infos] == ["cpu_inference", "gpu_inference", "cpu_inference"]


def test_the_table_also_knows_aliases() -> None:
    assert named(OLLAMA, {"qwen": "q"}).name == "q"


def test_an_equal_digest_elsewhere_gives_its_name() -> None:
    known = Known.from_claims([("fleet-name", OLLAMA.digest)])
    assert named(OLLAMA, known=known).name == "fleet-name"


def test_an_unequal_digest_under_the_same_name_is_kept_apart_and_shown() -> None:
    known = Known.from_claims([("qwen3:8b", "e" * 40)])
    assert named(OLLAMA, known=known).name == "qwen3:8b@d1d1d1d1"


def test_who_reported_a_name_first_keeps_it() -> None:
    first = Known.from_claims([("qwen3:8b", OLLAMA.digest), ("qwen3:8b", "e" * 40)])
    second = Known.from_claims([("qwen3:8b", "e" * 40), ("qwen3:8b", OLLAMA.digest)])
    assert (named(OLLAMA, known=first).name, named(OLLAMA, known=second).name) == ("qwen3:8b", "qwen3:8b@d1d1d1d1")


def test_the_users_word_joins_even_unequal_digests() -> None:
    known = Known.from_claims([("qwen3", "e" * 40)])
    assert named(OLLAMA, {"qwen3:8b": "qwen3"}, known).name == "qwen3"


def test_a_model_without_a_digest_keeps_the_name_that_others_have() -> None:
    known = Known.from_claims([("qwen3:8b", "e" * 40)])
    assert named(BackendModel(name="qwen3:8b"), known=known).name == "qwen3:8b"


def test_an_embedder_needs_the_embedding_capability() -> None:
    assert named(BackendModel(name="nomic", capabilities=("embedding",))).capability == "embedding"
    assert named(BackendModel(name="both", capabilities=("completion", "embedding"))).capability == "cpu_inference"


def test_two_models_that_the_table_calls_one_are_offered_once() -> None:
    infos = canonical([BackendModel(name="a:q4"), BackendModel(name="a:q8")], {"a:q4": "a", "a:q8": "a"})
    assert [(info.name, info.backend_name) for info in infos] == [("a", "a:q4")]


def test_a_wanted_name_is_found_by_canonical_name_then_backend_name_then_alias() -> None:
    infos = canonical([OLLAMA, BackendModel(name="other", aliases=("q",))], {"qwen3:8b": "q"})
    assert find(infos, "q") is infos[0]
    assert find(infos, "qwen3:8b") is infos[0]
    assert find(infos, "qwen3:latest") is infos[0]
    assert find(infos, "nobody") is None
