"""The real Open WebUI as one process on a fresh data folder, and what an administrator and a user do there over HTTP.

Answers "is it there, and what has it stored?". ``make e2e-openwebui`` installs it into ``.parts/``; what cannot be had skips.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from pathlib import Path
from typing import Any

import httpx

from services.cli.stack import free_port
from services.runtime.llama_server import die_with_parent
from support.docker import PARTS, Unavailable
from support.eventually import eventually

COMMAND = PARTS / "openwebui" / "venv" / "bin" / "open-webui"
START_S = 240.0
"""15 s on a quiet machine, 70 s under load, more where byte code is compiled first."""
ADMIN, USER = "admin@example.com", "user@example.com"
PASSWORD = "a-password-for-tests"
Json = dict[str, Any]


class OpenWebUI:
    """``async with OpenWebUI(folder, openai_url) as webui``; then ``admin`` and ``user`` are clients that are signed in.

    ``more`` are further variables of its environment."""

    def __init__(self, folder: Path, openai_url: str, **more: str) -> None:
        if not COMMAND.exists():
            raise Unavailable("no Open WebUI in .parts; `make e2e-openwebui` installs it (Python 3.11 or 3.12, 1.7 GB)")
        self._folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = {
            **{name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ},
            "HOME": str(folder), "DATA_DIR": str(folder / "data"), "WEBUI_SECRET_KEY": secrets.token_hex(16),
            "WEBUI_AUTH": "True", "WEBUI_ADMIN_EMAIL": ADMIN, "WEBUI_ADMIN_PASSWORD": PASSWORD, "ENABLE_API_KEYS": "True",
            "OFFLINE_MODE": "true", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "ENABLE_VERSION_UPDATE_CHECK": "false",
            "RAG_EMBEDDING_ENGINE": "openai", "ENABLE_OLLAMA_API": "False", "ENABLE_OPENAI_API": "True",
            "OPENAI_API_BASE_URLS": openai_url, "OPENAI_API_KEYS": "none", "ENABLE_FORWARD_USER_INFO_HEADERS": "True",
            "ANONYMIZED_TELEMETRY": "false", "DO_NOT_TRACK": "true", "SCARF_NO_ANALYTICS": "true", "CORS_ALLOW_ORIGIN": self.url,
            **more,
        }  # fmt: skip

    async def __aenter__(self) -> OpenWebUI:
        (self._folder / "data").mkdir(parents=True)
        self.log = self._folder / "open-webui.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(COMMAND), "serve", "--host", "127.0.0.1", "--port", str(self.port)],
                cwd=self._folder / "data", env=self._environment, stdout=log, stderr=log, preexec_fn=die_with_parent,
            )  # fmt: skip
        self.http = httpx.AsyncClient(base_url=self.url, timeout=60, trust_env=False)
        try:
            await eventually(self._answers, within_s=START_S, every_s=0.5)
            self.admin = await self._signed_in(ADMIN)
            made = {"name": "A user", "email": USER, "password": PASSWORD, "role": "user"}
            (await self.admin.post("/api/v1/auths/add", json=made)).raise_for_status()
            self.user = await self._signed_in(USER)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()
        for client in ("admin", "user"):
            if hasattr(self, client):
                await getattr(self, client).aclose()
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    async def api_key(self) -> str:
        answer = await self.admin.post("/api/v1/auths/api_key")
        answer.raise_for_status()
        return str(answer.json()["api_key"])

    async def chat(self, chat: str) -> Json:
        """A chat of the user's as it is stored."""
        answer = await self.user.get(f"/api/v1/chats/{chat}")
        answer.raise_for_status()
        return dict(answer.json()["chat"])

    async def message(self, chat: str, message: str) -> Json:
        return dict((await self.chat(chat))["history"]["messages"][message])

    async def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise Unavailable(f"Open WebUI ended at its start: {self.log.read_text()[-2000:]}")
        try:
            return "version" in (await self.http.get("/api/version")).json()
        except (httpx.HTTPError, ValueError):
            return False

    async def _signed_in(self, email: str) -> httpx.AsyncClient:
        answer = await self.http.post("/api/v1/auths/signin", json={"email": email, "password": PASSWORD})
        answer.raise_for_status()
        headers = {"authorization": f"Bearer {answer.json()['token']}"}
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=60, trust_env=False)
