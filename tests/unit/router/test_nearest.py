"""Names: resolved when they are ours, suggested when they are close."""

from __future__ import annotations

from services.router.nearest import known_models, nearest, resolve_model, resolve_worker
from support.fleets import fleet, model, worker

FLEET = fleet(
    worker("w-1", model("qwen3", backend_name="qwen3:8b", aliases=("qwen3:latest",)), name="Desk"),
    worker("w-2", "llama3.2", name="laptop"),
    worker("w-3", name="laptop"),
)


def test_the_nearest_names_come_first_and_there_are_at_most_three() -> None:
    names = ["qwen3", "qwen2.5", "llama3", "mistral", "gemma"]
    assert nearest("qwen33", names)[0] == "qwen3"
    assert nearest("QWEN", names)[:2] == ("qwen3", "qwen2.5")
    assert len(nearest("zzz", names)) == 3
    assert nearest("zzz", []) == ()


def test_a_model_is_found_by_its_name_its_backends_name_or_an_alias_and_never_guessed() -> None:
    assert [resolve_model(FLEET, name) for name in ("qwen3", "qwen3:8b", "QWEN3:latest", "llama3.2:latest")] == [
        "qwen3",
        "qwen3",
        "qwen3",
        "llama3.2",
    ]
    assert resolve_model(FLEET, "qwen") is None
    assert known_models(FLEET) == ("llama3.2", "qwen3", "qwen3:latest")


def test_a_worker_is_found_by_its_id_or_by_a_name_that_only_it_has() -> None:
    assert resolve_worker(FLEET, "w-2") == "w-2"
    assert resolve_worker(FLEET, "desk") == "w-1"
    assert resolve_worker(FLEET, "laptop") is None
