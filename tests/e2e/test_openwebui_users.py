"""Whom the real Open WebUI signs for is the client, and with another secret nobody is. ``make e2e-openwebui``."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.router.http.access import Access
from services.router.http.app import create_app
from services.router.http.serving import serving
from services.runtime.settings import Http, Key
from support.docker import Unavailable
from support.openwebui import OpenWebUI
from support.router_port import MemoryRouter

pytestmark = pytest.mark.e2e
SECRET = "no secret of anybody, 32 bytes long"
KEYS = {"webui": Key(sha256=hashlib.sha256(b"w").hexdigest())}
"""It may not speak for users: their names count by the signature alone."""


@asynccontextmanager
async def site_of(folder: Path, router: MemoryRouter, access: Access) -> AsyncIterator[OpenWebUI]:
    async with serving(create_app(router, access=access), "127.0.0.1", 0, drain_s=1) as url:
        site = OpenWebUI(folder, f"{url}/v1", OPENAI_API_KEYS="w", FORWARD_USER_INFO_HEADER_JWT_SECRET=SECRET)
        try:
            await site.__aenter__()
        except Unavailable as reason:
            pytest.skip(str(reason))
        try:
            yield site
        finally:
            await site.__aexit__()


async def test_its_signed_users_are_clients_of_their_own_and_another_secret_lets_nobody_in(tmp_path: Path) -> None:
    router, access = MemoryRouter(), Access(keys=KEYS, http=Http(user_jwt_secret=SECRET))
    async with site_of(tmp_path / "webui", router, access) as site:
        me = (await site.admin.get("/api/v1/auths/")).raise_for_status().json()["id"]
        listed = (await site.admin.get("/api/models")).raise_for_status().json()["data"]
        asked = {"model": "auto", "messages": [{"role": "user", "content": "Hi"}], "stream": False}
        assert "auto" in {model["id"] for model in listed}
        (await site.admin.post("/api/chat/completions", json=asked)).raise_for_status()
        assert router.last.asked.client == me

        access.http = Http(user_jwt_secret="another one")
        told = await site.admin.post("/api/chat/completions", json=asked)
        assert told.status_code >= 400 and "user_jwt_secret" in told.text and len(router.plays) == 1
