"""services.router.past where the projector is away, or slow."""

from __future__ import annotations

import httpx
import pytest

from schemas.errors import HeadraceError
from schemas.subjects import PROJECTOR_TASK
from services.router import past
from services.router.http.app import create_app
from services.router.http.serving import serving
from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from support.routers import running_router


async def test_without_a_projector_nobody_says_that_an_old_task_is_unknown(bus: Bus) -> None:
    with pytest.raises(HeadraceError, match="the projector does not answer"):
        await past.status(bus, "t1")


async def test_over_http_that_is_an_error_of_the_moment_and_not_of_the_client(natsd: EmbeddedServer) -> None:
    async with (
        running_router(natsd.url) as service,
        serving(create_app(service), "127.0.0.1", 0) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        for path in ("/task/t1", "/explain/t1"):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable"), path
            assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.parametrize("reply", [b"?", b'{"found": false, "error": "the store is being healed"}'])
async def test_a_projector_that_failed_at_the_question_is_no_proof_either(bus: Bus, reply: bytes) -> None:
    await bus.listen(PROJECTOR_TASK, lambda message: bus.nc.publish(message.reply, reply))
    with pytest.raises(HeadraceError, match="the projector does not answer"):
        await past.status(bus, "t1")


async def test_a_projector_that_does_not_answer_in_time_is_no_proof_that_a_task_is_unknown(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "ANSWER_S", 0.1)
    await bus.listen(PROJECTOR_TASK, lambda _message: None)
    with pytest.raises(HeadraceError, match="no answer"):
        await past.status(bus, "t1")
