"""Somebody at a terminal: command lines typed at a router, and what came of them on both outputs."""

from __future__ import annotations

import asyncio

import pytest

from services.cli.__main__ import run
from support.router_port import MemoryRouter


class Shell:
    """``out`` and ``err`` are what the last line printed."""

    def __init__(self, url: str, router: MemoryRouter, capture: pytest.CaptureFixture[str]) -> None:
        self.url, self.router, self._capture = url, router, capture
        self.out = self.err = ""

    async def type(self, *words: str) -> int:
        code = await asyncio.to_thread(run, [*words, "--router", self.url])
        self.out, self.err = self._capture.readouterr()
        return code
