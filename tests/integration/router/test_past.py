"""services.router.past where the projector is away, or slow."""

from __future__ import annotations

import pytest

from schemas.errors import BusError
from services.router import past
from services.runtime.bus import Bus


async def test_without_a_projector_an_old_task_is_unknown(bus: Bus) -> None:
    assert await past.status(bus, "t1") is None


async def test_a_projector_that_does_not_answer_in_time_is_no_proof_that_a_task_is_unknown(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "ANSWER_S", 0.1)
    await bus.listen(past.PROJECTOR_TASK, lambda _message: None)
    with pytest.raises(BusError, match="no answer"):
        await past.status(bus, "t1")
