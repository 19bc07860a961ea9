"""Ollama's messages and the router's own, which are OpenAI's: what does each say in the other's form?

Answers for images (bare base64), tool calls (arguments as objects, often without ids) and thinking. Nothing is lost on the
way, and a message that cannot be read is named by its place.
"""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from typing import Any

import msgspec

from services.router.http.reading import BadRequest

_KINDS = (("/9j/", "jpeg"), ("iVBOR", "png"), ("R0lGOD", "gif"), ("UklGR", "webp"), ("Qk", "bmp"))
"""The first bytes of an image file, in base64."""
_encode = msgspec.json.Encoder().encode


def openai_messages(messages: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    """Raises BadRequest naming the field. Calls without an id get one, and their results are given the same."""
    calls = _Calls()
    return tuple(_message(message, f"messages[{at}]", calls) for at, message in enumerate(messages))


def user_message(prompt: str, images: Any) -> dict[str, Any]:
    return {"role": "user", "content": _content(prompt, images, "images")}


def ollama_call(call: dict[str, Any], index: int) -> dict[str, Any] | None:
    """A whole call in Ollama's form; None where its arguments are no JSON object, so that it is no call."""
    function = call.get("function") or {}
    arguments = arguments_of(function.get("arguments"))
    if arguments is None:
        return None
    named = {"index": index, "name": function.get("name") or "", "arguments": arguments}
    return {"id": call.get("id") or f"call_{index}", "function": named}


def arguments_of(text: Any) -> dict[str, Any] | None:
    """The object that a call's arguments are, "" being none; None where they are no object, or not yet."""
    if not text:
        return {}
    if isinstance(text, dict):
        return text
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    return value if isinstance(value, dict) else None


class _Calls:
    """The calls of a conversation that have no result yet: Ollama names results by the tool, in the order of the calls."""

    def __init__(self) -> None:
        self._open: list[tuple[str, str]] = []
        self._count = 0

    def begin(self, call: Any, field: str) -> dict[str, Any]:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise BadRequest(f"{field} has no function with a name", field)
        arguments = function.get("arguments") or {}
        if not isinstance(arguments, dict):
            raise BadRequest(
                f"{field}.function.arguments is a {type(arguments).__name__}; expected an object",
                f"{field}.function.arguments",
            )
        name = function["name"]
        given = call.get("id")
        id_ = given if isinstance(given, str) and given else f"call_{self._count}"
        self._count += 1
        self._open.append((id_, name))
        return {"id": id_, "type": "function", "function": {"name": name, "arguments": _encode(arguments).decode()}}

    def result(self, message: dict[str, Any]) -> str | None:
        given, name = message.get("tool_call_id"), message.get("tool_name")
        fits = [
            entry for entry in self._open if (entry[0] == given if given else name is None or entry[1] == name)
        ] or self._open
        if not fits:
            return given if isinstance(given, str) else None
        self._open.remove(fits[0])
        return given if isinstance(given, str) and given else fits[0][0]


def _message(message: Any, field: str, calls: _Calls) -> dict[str, Any]:
    if not isinstance(message, dict):
        raise BadRequest(f"{field} is a {type(message).__name__}; a message is an object with role and content", field)
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or not role:
        raise BadRequest(f"{field}.role is {role!r}; expected system, user, assistant or tool", f"{field}.role")
    if content is not None and not isinstance(content, str):
        raise BadRequest(f"{field}.content is a {type(content).__name__}; expected a text", f"{field}.content")
    result: dict[str, Any] = {
        "role": role.lower(),
        "content": _content(content or "", message.get("images"), f"{field}.images"),
    }
    if thinking := message.get("thinking"):
        result["reasoning_content"] = thinking
    if asked := message.get("tool_calls"):
        if not isinstance(asked, list):
            raise BadRequest(f"{field}.tool_calls is a {type(asked).__name__}; expected a list", f"{field}.tool_calls")
        result["tool_calls"] = [calls.begin(call, f"{field}.tool_calls[{n}]") for n, call in enumerate(asked)]
    if result["role"] == "tool":
        if (id_ := calls.result(message)) is not None:
            result["tool_call_id"] = id_
        if name := message.get("tool_name"):
            result["tool_name"] = name
    return result


def _content(text: str, images: Any, field: str) -> str | list[dict[str, Any]]:
    """A text, or parts where there are images."""
    if not images:
        return text
    if not isinstance(images, list):
        raise BadRequest(f"{field} is a {type(images).__name__}; expected a list of base64 texts", field)
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    return parts + [
        {"type": "image_url", "image_url": {"url": _data_uri(image, f"{field}[{n}]")}} for n, image in enumerate(images)
    ]


def _data_uri(image: Any, field: str) -> str:
    if not isinstance(image, str) or not image:
        raise BadRequest(f"{field} is no text; expected an image in base64", field)
    try:
        binascii.a2b_base64(image, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequest(f"{field}: illegal base64 data: {error}; send the image alone, without data:", field) from None
    kind = next((kind for start, kind in _KINDS if image.startswith(start)), "png")
    return f"data:image/{kind};base64,{image}"
