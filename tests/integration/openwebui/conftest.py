"""A desk with its function, or several in a row."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import pytest

from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from support.function_desk import Desk, Make, function_desk


@pytest.fixture
def make(natsd: EmbeddedServer, bus: Bus) -> Make:
    return partial(function_desk, natsd.url, bus)


@pytest.fixture
async def desk(make: Make) -> AsyncIterator[Desk]:
    async with make() as desk:
        yield desk
