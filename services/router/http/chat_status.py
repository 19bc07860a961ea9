"""What does Open WebUI show above an answer while it is on its way? Its own events inside the stream, for it alone.

Other clients may choke on a line that is no chunk. Nothing is said twice.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from services.router.http.headers import worker_name
from services.router.port import RouterPort, TaskStatus

_encode = msgspec.json.Encoder().encode


def is_open_webui(headers: Mapping[str, str]) -> bool:
    return any(name.lower().startswith("x-openwebui-") for name in headers)


class Statuses:
    """``said`` for each status: an SSE line, or nothing where it says what the last one said."""

    def __init__(self, router: RouterPort) -> None:
        self._router = router
        self._last: tuple[str, bool] | None = None

    def said(self, status: TaskStatus) -> bytes:
        words = self._words(status), status.state == "running"
        if words == self._last:
            return b""
        self._last = words
        data = {"description": words[0], "done": words[1]}
        return b"data: " + _encode({"event": {"type": "status", "data": data}}) + b"\n\n"

    def _words(self, status: TaskStatus) -> str:
        model = status.model or (status.choice.model if status.choice is not None else None)
        worker = worker_name(self._router, status.worker or status.expected_worker)
        who = f"{model} @ {worker}" if model and worker else model or "…"
        where = f"{status.domain} → {who}" if status.domain else who
        if status.position is None:
            return where
        return f"{where} · place {status.position} in the queue{_starts(status.eta_s)}"


def _starts(eta_s: float | None) -> str:
    if eta_s is None:
        return ""
    return ", starts in less than 1 s" if eta_s < 1 else f", starts in about {eta_s:.0f} s"
