"""What the backend holds right now, under the fleet's names, and whether it answers at all.

Answers "may this worker promise a slot, and for which models?". One look asks the backend for its list; it never loads a model to
find something out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from schemas.errors import BackendError
from schemas.events import Loaded, ModelInfo
from services.worker.backends.names import Known, canonical, context_of, find
from services.worker.backends.port import Backend, BackendModel, Identity, Memory

SETS_WINDOW = "ollama"
"""The one kind of server that takes a model's window from its requests."""
KnownNames = Callable[[Collection[str | None]], Known]


class Inventory:
    """``look`` refreshes; the rest answers from the last look. ``reason`` says why the backend is down."""

    def __init__(
        self,
        backend: Backend,
        identity: Identity,
        table: Mapping[str, Any],
        known: KnownNames,
        *,
        context: int | None = None,
        was_loaded: Callable[[], None] = lambda: None,
    ) -> None:
        self.backend = backend
        self.identity = identity
        self.models: tuple[ModelInfo, ...] = ()
        self.up = False
        self.reason = "not asked yet"
        self._table, self._known = table, known
        self._contexts: dict[tuple[str, str | None], int] = {}
        self._context, self._windows = context, dict[str, int]()
        self._memory: dict[str, Memory] = {}
        self._was_loaded = was_loaded

    async def look(self) -> None:
        """Never raises: a backend that does not answer is down, and its models stay known for when it is back."""
        try:
            listed = await self.backend.inventory()
            if not self.up:
                self.identity = await self.backend.identify()
        except BackendError as error:
            self.up, self.reason = False, str(error)
            return
        self.up, self.reason = True, ""
        known = self._known({model.digest for model in listed})
        self.models = canonical([self._with_context(model) for model in listed], self._table, known)
        self._memory = {model.name: model.memory for model in listed if model.memory is not None}

    def find(self, name: str) -> ModelInfo | None:
        return find(self.models, name)

    def window(self, backend_name: str) -> int | None:
        """The one window that requests for this model carry, so that no two of them make the server load it anew (case 27).

        None where none is set, or where the server's own start-up settles it."""
        return self._windows.get(backend_name)

    def resident(self) -> tuple[str, ...] | None:
        """Canonical names of the models in memory; None where the backend is down or does not say."""
        if not self.up or any(model.resident is None for model in self.models):
            return None
        return tuple(model.name for model in self.models if model.resident)

    def loaded(self) -> tuple[Loaded, ...]:
        """What the backend says of its models in memory, as it was at the last look."""
        if not self.up:
            return ()
        told = ((model.name, self._memory.get(model.backend_name)) for model in self.models if model.resident)
        return tuple(
            Loaded(model=name, **msgspec.structs.asdict(memory)) for name, memory in told if memory is not None
        )

    def lasting(self) -> tuple[ModelInfo, ...]:
        """The models without what changes by the minute: what a report is about."""
        return tuple(msgspec.structs.replace(model, resident=None) for model in self.models)

    def _with_context(self, model: BackendModel) -> BackendModel:
        """Ollama tells the window only while a model is loaded; what it was is what it will be. A window that is set is what
        each request gets, whatever is loaded now."""
        if (window := self._set_window(model)) is not None:
            self._windows[model.name] = window
            return msgspec.structs.replace(model, context=window)
        key = (model.name, model.digest)
        if model.context is not None:
            self._contexts[key] = model.context
        return msgspec.structs.replace(model, context=self._contexts.get(key))

    def _set_window(self, model: BackendModel) -> int | None:
        if self.identity.kind != SETS_WINDOW:
            return None
        window = context_of(model, self._table) or self._context
        return window if window is None or model.context_max is None else min(window, model.context_max)

    def mark_resident(self, name: str) -> None:
        """A run just used the model, so it is in memory: known before the next look, for the next pull's priority. What it takes
        there only a look tells, so ``was_loaded`` is called."""
        if any(model.name == name and model.resident is False for model in self.models):
            self.models = tuple(
                msgspec.structs.replace(model, resident=True)
                if model.name == name and model.resident is False
                else model
                for model in self.models
            )
            self._was_loaded()
