"""What did the client send? Bytes to typed values, every fault named by its field.

Nothing here may answer a bad request with anything but BadRequest or TooLarge.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from schemas.errors import HeadraceError
from services.router.http.faults import explained
from services.router.http.unpacking import Unpacked
from services.router.port import TooLarge

MAX_BODY_BYTES = 32 * 1024 * 1024
"""PROTOCOL.md, "Sizes": a chat with a dozen photographs fits, a film does not."""

BOM = b"\xef\xbb\xbf"
"""Windows' editors and its older PowerShell write it before any text."""
PATIENCE_S = 30.0
PACE_BYTES_S = 16 * 1024
"""A body may take ``PATIENCE_S``, and a second more for each 16 KiB: a tenth of what a bad mobile network carries."""

_NUMBERS = (
    "top_k", "min_p", "typical_p", "repeat_last_n", "repeat_penalty", "presence_penalty", "frequency_penalty",
)  # fmt: skip
_FORMS: tuple[tuple[str, tuple[type, ...], str], ...] = (
    ("tools", (list,), "a list of tools"),
    ("response_format", (dict,), "an object with a type"),
    ("chat_template_kwargs", (dict,), "an object"),
    ("stop", (str, list), "a text or a list of texts"),
    *((name, (int, float), "a number") for name in _NUMBERS),
)
"""Ollama answers a wrong one with 500: the request would be tried again elsewhere, and the machine be thought faulty."""

T = TypeVar("T")


class BadRequest(HeadraceError, ValueError):
    """A request that cannot be understood; ``field`` is where, in the client's own words; ``nearest`` what may be meant."""

    def __init__(self, message: str, field: str | None = None, nearest: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.field = field
        self.nearest = nearest


class Refused(HeadraceError, PermissionError):
    """401 without a key that is known, 403 with one that may not do this."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class TooSlow(HeadraceError, TimeoutError):
    """A body that does not come, or too slowly: 408."""


async def read_json(request: Request) -> dict[str, Any]:
    """The body as one JSON object. Raises BadRequest or TooLarge."""
    return parse_object(await read_body(request))


async def read_body(request: Request, limit: int = MAX_BODY_BYTES) -> bytes:
    """Stops reading at the limit, declared or not, packed or not. Raises TooLarge, or TooSlow for who sends below any pace."""
    unpacked = Unpacked(request.headers.get("content-encoding", ""))
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared) > limit:
        raise _too_large(declared, limit)
    pieces: list[bytes] = []
    came = size = 0
    began = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout_at(began + PATIENCE_S) as patience, aclosing(request.stream()) as stream:
            async for piece in stream:
                came += len(piece)
                pieces.append(unpacked.piece(piece, limit + 1 - size))
                size += len(pieces[-1])
                if size > limit:
                    raise _too_large(f"more than {limit}", limit)
                patience.reschedule(began + PATIENCE_S + came / PACE_BYTES_S)
    except TimeoutError:
        raise TooSlow(
            f"{came} bytes of the body came and then nothing, or too slowly; send it again in one go"
        ) from None
    unpacked.end()
    return b"".join(pieces)


def parse_object(data: bytes) -> dict[str, Any]:
    data = data.removeprefix(BOM)
    if not data.strip():
        raise BadRequest("the body is empty; send one JSON object")
    try:
        value = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from error
    except RecursionError:
        raise BadRequest("the body is nested too deeply; send flatter JSON") from None
    if not isinstance(value, dict):
        raise BadRequest(f"the body is JSON, but a {type(value).__name__}; send one JSON object")
    return value


def typed(values: Mapping[str, Any], kind: type[T], *, prefix: str = "", strict: bool = True) -> T:
    """``values`` as ``kind``; ``strict`` False also takes numbers written as texts, as in a query string."""
    try:
        try:
            return msgspec.convert(values, type=kind, strict=strict)
        except msgspec.ValidationError as error:
            if "got `float`" not in str(error):
                raise
            return msgspec.convert(_with_whole_numbers(values), type=kind, strict=strict)
    except msgspec.ValidationError as error:
        raise BadRequest(*explained(str(error), kind, values, prefix)) from error


def _with_whole_numbers(values: Mapping[str, Any], depth: int = 2) -> dict[str, Any]:
    """8192.0 is 8192: JSON has one kind of number, and clients write windows and seeds so (Home Assistant does). No field that
    is read here lies deeper than ``depth`` objects."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if type(value) is float and value.is_integer():
            found[name] = int(value)
        else:
            found[name] = _with_whole_numbers(value, depth - 1) if isinstance(value, dict) and depth > 1 else value
    return found


def check_messages(messages: Iterable[Any]) -> tuple[dict[str, Any], ...]:
    """OpenAI-style messages, kept whole: only what the router itself reads is checked, the rest is the backend's to judge."""
    checked = tuple(_message(message, f"messages[{at}]") for at, message in enumerate(messages))
    if not checked:
        raise BadRequest("messages is empty; send at least one message", "messages")
    return checked


def check_extra(extra: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """What goes to the backend as it came; only what is read on the way, or translated for some, must have its form."""
    for name, kinds, words in _FORMS:
        if (value := extra.get(name)) is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
            raise BadRequest(f"{prefix}{name} is a {type(value).__name__}; expected {words}", f"{prefix}{name}")
    for at, text in enumerate(extra.get("stop") or ()):
        if not isinstance(text, str):
            raise BadRequest(f"{prefix}stop[{at}] is a {type(text).__name__}; expected a text", f"{prefix}stop[{at}]")
    schema, field = (extra.get("response_format") or {}).get("json_schema"), f"{prefix}response_format.json_schema"
    if schema is not None and not isinstance(schema, dict):
        raise BadRequest(f"{field} is a {type(schema).__name__}; expected an object with name and schema", field)
    if (inner := (schema or {}).get("schema")) is not None and not isinstance(inner, dict):
        raise BadRequest(f"{field}.schema is a {type(inner).__name__}; expected an object", f"{field}.schema")
    return extra


def _message(message: Any, field: str) -> dict[str, Any]:
    if not isinstance(message, dict):
        raise BadRequest(f"{field} is a {type(message).__name__}; a message is an object with role and content", field)
    role = message.get("role")
    if not isinstance(role, str) or not role:
        raise BadRequest(f"{field}.role is {role!r}; expected system, user, assistant or tool", f"{field}.role")
    _check_calls(message.get("tool_calls"), f"{field}.tool_calls")
    # OpenAI's newer word for it; most chat templates drop what they do not know
    said: dict[str, Any] = {**message, "role": "system"} if role == "developer" else message
    content = message.get("content")
    if content is None or isinstance(content, str):
        return said
    if not isinstance(content, list):
        raise BadRequest(
            f"{field}.content is a {type(content).__name__}; expected a text or a list of parts", f"{field}.content"
        )
    return {**said, "content": [_part(part, f"{field}.content[{at}]") for at, part in enumerate(content)]}


def _part(part: Any, field: str) -> dict[str, Any]:
    """An image that stands without its object gets it: Ollama and vLLM take it so, other servers refuse it."""
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise BadRequest(f"{field} has no type; a part is an object with a type such as text or image_url", field)
    if part["type"] == "text" and not isinstance(part.get("text"), str):
        raise BadRequest(f"{field}.text is not a text", f"{field}.text")
    if part["type"] == "image_url":
        image = part.get("image_url")
        if isinstance(image, str):
            return {**part, "image_url": {"url": image}}
        if not isinstance(image, dict) or not isinstance(image.get("url"), str):
            raise BadRequest(f"{field}.image_url.url is not a text", f"{field}.image_url.url")
    return part


def _check_calls(calls: Any, field: str) -> None:
    """Backends take them apart: Ollama wants the arguments as an object."""
    if calls is None:
        return
    if not isinstance(calls, list):
        raise BadRequest(f"{field} is a {type(calls).__name__}; expected a list of calls", field)
    for at, call in enumerate(calls):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise BadRequest(f"{field}[{at}].function.name is not a text", f"{field}[{at}].function.name")


def _too_large(size: str, limit: int) -> TooLarge:
    return TooLarge(f"the body has {size} bytes; the limit is {limit}: send fewer or smaller images, or split the text")
