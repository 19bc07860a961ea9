"""What every HTTP backend shares: connections, lines, and what an HTTP error means.

Answers "was this the request's fault, the machine's, or the moment's?". It never decides about a retry.

Connections are not reused: llama.cpp closes idle ones after 5 s, and a request that meets the closing one looks like a
dying server. A fresh connection costs 0.1–1 ms in a local network.
"""

from __future__ import annotations

import hashlib
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec

from schemas.errors import BackendError
from schemas.overlong import is_overlong
from services.worker.backends import http_stream

LINE_BYTES_MAX = 16 * 1024 * 1024
"""No honest server writes a longer line (an embedding of 8,192 numbers has 0.2 MiB)."""
ASK_S = 5.0
"""For questions about the server itself: they are answered from memory, or the server is in trouble."""

_OOM = re.compile(
    r"out of memory|more system memory|failed to allocate|insufficient memory|cudaMalloc|unable to allocate|\boom\b",
    re.I,
)
_GONE = re.compile(r"runner process|proxy error|connection (?:refused|reset)|unexpected EOF|broken pipe", re.I)
_BUSY = re.compile(r"server busy|loading model|unavailable_error|pending requests|no slot", re.I)
_WRONG = re.compile(r"^option \"?\w+\"? must be |^invalid format\b|invalid JSON schema in format", re.I)
"""What Ollama says of a request that is wrong, beside a 500 [read in 0.24]: no other machine would take it either."""
_decode = msgspec.json.Decoder()


def client(url: str, *, connect_s: float = 5.0, transport: httpx.AsyncBaseTransport | None = None) -> httpx.AsyncClient:
    """An HTTP client for one backend. Reads have no limit of their own: ``watchdogs`` counts tokens, not bytes."""
    return httpx.AsyncClient(
        base_url=url,
        transport=transport,
        trust_env=False,  # a proxy of the environment must never see a local server's prompts
        timeout=httpx.Timeout(None, connect=connect_s),
        limits=httpx.Limits(max_keepalive_connections=0),
        headers={"Accept-Encoding": "identity"},
    )


async def ask(http: httpx.AsyncClient, path: str, body: dict[str, Any] | None = None) -> Any:
    """One small question about the server; raises BackendError, classified. Answers any JSON value."""
    try:
        if body is None:
            response = await http.get(path, timeout=ASK_S)
        else:
            response = await http.post(path, json=body, timeout=ASK_S)
    except httpx.HTTPError as error:
        raise from_transport(error, path) from error
    if response.status_code != 200:
        raise from_status(response.status_code, response.text)
    return parse(response.content)


@asynccontextmanager
async def stream(http: httpx.AsyncClient, path: str, body: dict[str, Any]) -> AsyncIterator[AsyncIterator[bytes]]:
    """A streamed reply's lines. Leaving it closes the connection at once, which is how a server learns of a cancel."""
    data = msgspec.json.encode(body)
    try:
        async with http_stream.post(str(http.base_url), path, data, connect_s=http.timeout.connect) as reply:
            if reply.status != 200:
                text = b"".join([piece async for piece in reply.pieces])
                raise from_status(reply.status, text.decode(errors="replace"))
            yield _lines(reply.pieces)
    except TimeoutError as error:
        raise BackendError("timeout", f"{path}: no connection in time") from error
    except (OSError, http_stream.BrokenReply) as error:
        raise BackendError("disconnect", f"{path}: {str(error) or type(error).__name__}") from error


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Lines as bytes, split at newlines alone: U+2028 and others stand inside JSON texts."""
    rest = bytearray()
    async for data in pieces:
        rest += data
        while (end := rest.find(b"\n")) >= 0:
            line = bytes(rest[:end]).strip()
            del rest[: end + 1]
            if line:
                yield line
        if len(rest) > LINE_BYTES_MAX:
            raise BackendError("protocol", f"a line of more than {LINE_BYTES_MAX} bytes without an end")
    if last := bytes(rest).strip():
        yield last


def parse(data: bytes) -> Any:
    """Raises BackendError (protocol), with the first bytes, for what is not JSON."""
    try:
        return _decode.decode(data)
    except msgspec.DecodeError as error:
        text = data[:120].decode(errors="replace")
        if _GONE.search(text):
            raise BackendError("disconnect", f"the server's own backend went away: {text}") from error
        raise BackendError("protocol", f"not JSON: {text!r}") from error


def parse_object(data: bytes) -> dict[str, Any]:
    """``parse`` for what must be an object."""
    value = parse(data)
    if not isinstance(value, dict):
        raise BackendError("protocol", f"expected a JSON object, got {data[:120]!r}")
    return value


def from_status(status: int, text: str) -> BackendError:
    """An HTTP error with its body: read the text before the number, since 500 also means "this request is too long"."""
    said = message_of(text)
    detail = f"HTTP {status}: {said}"
    if is_overlong(text):
        return BackendError("rejected", detail, retryable=False)
    if status in (429, 503) or (status >= 500 and _BUSY.search(text)):
        return BackendError("busy", detail)
    if status in (401, 403, 404, 405):
        return BackendError("rejected", detail)  # another machine may hold the model, or let us in
    if 400 <= status < 500:
        wrong_model = "model" in said and "not found" in said  # llama.cpp's router mode says it with 400
        return BackendError("rejected", detail, retryable=wrong_model)
    if status == 501:
        return BackendError("rejected", detail, retryable=False)
    return from_text(said, f"HTTP {status}: ")


def from_text(said: str, where: str = "") -> BackendError:
    """An error that a server reports in words, within a stream or beside a 500."""
    detail = f"{where}{said}"
    if _OOM.search(said):
        return BackendError("oom", detail)
    if _GONE.search(said):
        return BackendError("disconnect", detail)
    if _BUSY.search(said):
        return BackendError("busy", detail)
    if is_overlong(said) or _WRONG.search(said):
        return BackendError("rejected", detail, retryable=False)
    return BackendError("protocol", detail)


def from_transport(error: httpx.HTTPError, path: str) -> BackendError:
    if isinstance(error, httpx.TimeoutException):
        return BackendError("timeout", f"{path}: no answer in time ({type(error).__name__})")
    if isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError):
        return BackendError("disconnect", f"{path}: {str(error) or type(error).__name__}")
    return BackendError("protocol", f"{path}: {str(error) or type(error).__name__}")


def message_of(text: str) -> str:
    """The words of an error body in any of the known shapes, cut to a readable length."""
    try:
        body = _decode.decode(text.encode())
    except msgspec.DecodeError:
        return text.strip()[:300]
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        kind, message = error.get("type"), error.get("message", error)
        return f"{message} ({kind})"[:300] if kind else str(message)[:300]
    return str(error)[:300]


def backend_id(url: str) -> str:
    """One name for one server: a loopback address means another server on each host."""
    parts = urlsplit(url)
    is_loopback = (parts.hostname or "") in ("127.0.0.1", "localhost", "::1")
    host = socket.gethostname() if is_loopback else parts.hostname
    return hashlib.sha256(f"{host}:{parts.port or 80}{parts.path.rstrip('/')}".encode()).hexdigest()[:16]


def micros(value: Any, per_unit: float) -> int | None:
    """A number of the backend in microseconds; None for what is no number, or none that a clock can have given."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        return None
    return round(value * per_unit)


def count(value: Any) -> int | None:
    """A token or byte count; None for anything that cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return int(value)


def words(value: Any) -> str | None:
    """A text field; the empty ones that servers send for "unknown" become None."""
    return value if isinstance(value, str) and value else None


def moment(value: Any) -> float | None:
    """An RFC 3339 time in Unix seconds; None for the year 1, Go's word for none, and for what is no time with a zone."""
    try:
        at = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return at.timestamp() if at.tzinfo is not None and at.year > 1970 else None
