from __future__ import annotations

from typing import Any

from schemas.errors import BackendError
from schemas.events import Loaded
from services.worker.backends.names import Known
from services.worker.backends.port import BackendModel, Identity, Memory
from services.worker.inventory import Inventory

IDENTITY = Identity(kind="ollama", version="1", backend_id="b")


class Scripted:
    """A backend whose answers the test sets; None is a backend that does not answer."""

    kind, url = "ollama", "http://x"

    def __init__(self, *models: BackendModel) -> None:
        self.models: list[BackendModel] | None = list(models)
        self.version = "1"

    async def identify(self) -> Identity:
        return Identity(kind="ollama", version=self.version, backend_id="b")

    async def inventory(self) -> list[BackendModel]:
        if self.models is None:
            raise BackendError("disconnect", "connection refused")
        return self.models


def inventory(backend: Any) -> Inventory:
    return Inventory(backend, IDENTITY, {}, lambda _digests: Known())


async def test_a_backend_that_does_not_answer_is_down_and_its_models_stay_known() -> None:
    backend = Scripted(BackendModel(name="m", resident=True))
    held = inventory(backend)
    assert (held.up, held.resident()) == (False, None)
    await held.look()
    assert (held.up, held.resident()) == (True, ("m",))
    backend.models = None
    await held.look()
    assert (held.up, held.resident(), held.reason) == (False, None, "disconnect: connection refused")
    assert held.find("m") is not None


async def test_a_backend_that_is_back_says_again_who_it_is() -> None:
    backend = Scripted()
    held = inventory(backend)
    await held.look()
    backend.models, backend.version = None, "2"
    await held.look()
    backend.models = []
    await held.look()
    assert held.identity.version == "2"


async def test_a_window_known_only_while_a_model_is_loaded_is_remembered() -> None:
    backend = Scripted(BackendModel(name="m", digest="d", context=4096, resident=True))
    held = inventory(backend)
    await held.look()
    backend.models = [BackendModel(name="m", digest="d", context=None, resident=False)]
    await held.look()
    assert held.models[0].context == 4096
    backend.models = [BackendModel(name="m", digest="other", context=None)]
    await held.look()
    assert held.models[0].context is None


async def test_a_used_model_counts_as_resident_at_once_and_a_report_does_not_change_for_it() -> None:
    backend, looks = (
        Scripted(BackendModel(name="m", resident=False), BackendModel(name="n", resident=None)),
        list[int](),
    )
    held = Inventory(backend, IDENTITY, {}, lambda _digests: Known(), was_loaded=lambda: looks.append(1))  # type: ignore[arg-type]
    await held.look()
    before = held.lasting()
    for name in ("m", "m", "n"):
        held.mark_resident(name)
    assert sum(looks) == 1
    assert [model.resident for model in held.models] == [True, None]
    assert held.lasting() == before
    assert held.resident() is None  # of n nobody knows


async def test_what_loaded_models_take_is_told_under_the_fleets_names_while_the_backend_answers() -> None:
    memory = Memory(bytes=100, vram_bytes=40, expires_at=1.0)
    backend = Scripted(
        BackendModel(name="m:latest", resident=True, memory=memory),
        BackendModel(name="said", resident=True),
        BackendModel(name="away", resident=False, memory=memory),
    )
    held = Inventory(backend, IDENTITY, {"m:latest": "mine"}, lambda _digests: Known())  # type: ignore[arg-type]
    assert held.loaded() == ()
    await held.look()
    assert held.loaded() == (Loaded(model="mine", bytes=100, vram_bytes=40, expires_at=1.0),)
    backend.models = None
    await held.look()
    assert held.loaded() == ()


async def test_case_27_a_window_that_is_set_is_the_one_reported_up_to_what_the_model_was_made_for() -> None:
    models = [
        BackendModel(name="a:latest", aliases=("a",), context=4096, resident=True),
        BackendModel(name="b", context_max=2048),
        BackendModel(name="c"),
    ]
    table = {"a": {"context": 16384}, "c": "other"}
    held = Inventory(Scripted(*models), IDENTITY, table, lambda _digests: Known(), context=8192)  # type: ignore[arg-type]
    await held.look()
    assert [model.context for model in held.models] == [16384, 2048, 8192]
    assert [held.window(name) for name in ("a:latest", "b", "c", "nobody")] == [16384, 2048, 8192, None]
    assert [model.name for model in held.models] == ["a:latest", "b", "other"]


async def test_only_an_ollama_takes_its_window_from_requests() -> None:
    backend = Scripted(BackendModel(name="m", context=4096))
    identity = Identity(kind="llama.cpp", version="1", backend_id="b")
    held = Inventory(backend, identity, {"m": {"context": 16384}}, lambda _digests: Known(), context=8192)  # type: ignore[arg-type]
    held.up = True
    await held.look()
    assert (held.models[0].context, held.window("m")) == (4096, None)
