"""What does Ollama get to read? A request in its own form: messages, options, format, and one window for each model.

Never an option at which Ollama would load the model anew, whoever asked for it: the machine's owner sets the window, and each
request carries the same (case 27).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from schemas.errors import BackendError
from schemas.load_options import LOAD_OPTIONS
from services.worker.backends.port import BackendRequest

_PASSED_ON = ("format", "logprobs", "top_logprobs")
_OPTION_NAMES = (
    "stop", "top_k", "min_p", "typical_p", "repeat_last_n", "repeat_penalty", "presence_penalty", "frequency_penalty",
)  # fmt: skip
_OF_A_PROMPT = ("raw", "suffix", "template", "system")


def chat_body(request: BackendRequest) -> tuple[str, dict[str, Any]]:
    """The path and body of a request: a bare prompt goes to /api/generate, a chat to /api/chat.

    Raises BackendError (rejected) for a message that is none: whoever asked is told, and no other machine is tried; for a part
    that is neither text nor image another server may be."""
    extra = {name: value for name, value in request.body.extra.items() if value is not None}
    body: dict[str, Any] = {name: extra[name] for name in _PASSED_ON if name in extra}
    body |= {
        "model": request.model,
        "stream": True,
        "truncate": bool(extra.get("truncate")),
        "options": _options(request),
    }
    if isinstance(form := extra.get("response_format"), dict):
        body["format"] = _format(form)
    if isinstance(most := extra.get("logprobs"), int) and not isinstance(most, bool):
        body |= {"logprobs": True, "top_logprobs": most}  # a plain completion's, of OpenAI's form
    if request.body.prompt is not None and not request.body.messages:
        body |= {name: extra[name] for name in _OF_A_PROMPT if name in extra}
        return "/api/generate", body | {"prompt": request.body.prompt}
    try:
        return "/api/chat", body | _tools(extra) | {"messages": _messages(request.body.messages)}
    except (KeyError, TypeError, AttributeError, msgspec.DecodeError) as error:
        raise BackendError("rejected", f"a message that cannot be read: {error!r}", retryable=False) from error


def embed_body(request: BackendRequest, inputs: Sequence[str]) -> dict[str, Any]:
    extra = request.body.extra
    body: dict[str, Any] = {"model": request.model, "input": list(inputs), "truncate": bool(extra.get("truncate"))}
    if "dimensions" in extra:
        body["dimensions"] = extra["dimensions"]
    if request.context is not None:
        body["options"] = {"num_ctx": request.context}
    return body


def _options(request: BackendRequest) -> dict[str, Any]:
    wants, extra = request.options, request.body.extra
    options: dict[str, Any] = {name: extra[name] for name in _OPTION_NAMES if extra.get(name) is not None}
    given = extra.get("options")
    if isinstance(given, dict):
        options |= {name: value for name, value in given.items() if name not in LOAD_OPTIONS}
    if isinstance(options.get("stop"), str):
        options["stop"] = [options["stop"]]  # OpenAI takes one as it is, Ollama a list alone
    options["num_predict"] = wants.max_tokens or request.most_tokens
    for name, value in (("temperature", wants.temperature), ("top_p", wants.top_p), ("seed", wants.seed)):
        if value is not None:
            options[name] = value
    if request.context is not None:
        options["num_ctx"] = request.context
    return options


def _format(response_format: dict[str, Any]) -> Any:
    """OpenAI's ``response_format`` as Ollama's ``format``: "json", or the schema itself; "" is free text."""
    if response_format.get("type") == "json_schema":
        return (response_format.get("json_schema") or {}).get("schema", "json")
    if response_format.get("type") != "json_object":
        return ""
    schema = response_format.get("schema")  # llama.cpp's own form
    return schema if isinstance(schema, dict) else "json"


def _tools(extra: dict[str, Any]) -> dict[str, Any]:
    """Ollama knows no ``tool_choice``: what must not be called is not shown. That something must be called it cannot be told."""
    tools, choice = extra.get("tools"), extra.get("tool_choice")
    if tools and isinstance(choice, dict) and (name := (choice.get("function") or {}).get("name")):
        tools = [tool for tool in tools if tool["function"]["name"] == name] or tools
    return {"tools": tools} if tools and choice != "none" else {}


def _messages(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ollama knows a result by its tool's name, OpenAI by the call's id."""
    tools: dict[str, str] = {}
    result = []
    for message in messages:
        for call in message.get("tool_calls") or ():
            if isinstance(call, dict) and isinstance(call.get("id"), str):
                tools[call["id"]] = (call.get("function") or {}).get("name", "")
        told = _message(message)
        name = tools.get(str(message.get("tool_call_id"))) or message.get("name")
        if message.get("role") == "tool" and name and "tool_name" not in told:
            told["tool_name"] = name
        result.append(told)
    return result


def _message(message: dict[str, Any]) -> dict[str, Any]:
    """An OpenAI-style message as Ollama reads it: images as bare base64, tool arguments as an object."""
    result = dict(message)
    content = message.get("content")
    if isinstance(content, list):
        result["content"] = "\n".join(text for part in content if (text := _text(part, message)))
        urls = [part["image_url"]["url"] for part in content if part.get("type") == "image_url"]
        if urls:
            result["images"] = [url.split(",", 1)[-1] for url in urls]
    elif content is None:
        result["content"] = ""
    if thought := result.pop("reasoning_content", None):
        result["thinking"] = thought
    if calls := message.get("tool_calls"):
        result["tool_calls"] = [{**call, "function": _with_object(call["function"])} for call in calls]
    return result


def _text(part: dict[str, Any], message: dict[str, Any]) -> str:
    """Of an assistant's parts the rest is no loss; of what the user sent it would be answered as if it had never been there."""
    kind = part.get("type")
    if kind in ("text", "refusal"):
        return str(part.get(kind) or "")
    if kind != "image_url" and message.get("role") != "assistant":
        raise BackendError("rejected", f"Ollama reads texts and images; the message has a part of type {kind}")
    return ""


def _with_object(function: dict[str, Any]) -> dict[str, Any]:
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        return {**function, "arguments": msgspec.json.decode(arguments) if arguments else {}}
    return function
