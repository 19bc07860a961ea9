"""What does a request of Anthropic's Messages ask of the router? Blocks become chat messages (docs/http/anthropic.md).

Every fault is named by its field. Fields that only Anthropic's servers know, and tools that only they run, are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from schemas.events import Options
from schemas.work import Body
from services.router.fleet import Fleet
from services.router.http.asking import Count, Name, RoutedConstraints, Share, Temperature, given, wanted_model
from services.router.http.chat_request import asker_of, task_of
from services.router.http.reading import BadRequest, typed
from services.router.nearest import resolve_model
from services.router.port import NewTask

PATH = "/v1/messages"
BILLING = "x-anthropic-billing-header:"
"""Claude Code begins its system prompt with this line, other in each request: no prompt would ever be found in a cache."""
SESSION_MARK = "_session_"
"""Claude Code's user_id ends in the conversation's id behind this."""
TopK = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """What ``count_tokens`` reads, and what a message has as well."""

    messages: list[Any]
    model: Name | None = None
    system: Any = None
    tools: list[Any] | None = None
    tool_choice: dict[str, Any] | None = None
    thinking: dict[str, Any] | None = None


class MessagesRequest(Counted, frozen=True, kw_only=True):
    max_tokens: Count | None = None
    stream: bool | None = None
    stop_sequences: list[str] | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    top_k: TopK | None = None
    metadata: dict[str, Any] | None = None
    output_format: dict[str, Any] | None = None
    output_config: dict[str, Any] | None = None
    prompt_cache_key: str | None = None
    headrace: RoutedConstraints | None = None


TAKEN = frozenset(MessagesRequest.__struct_fields__)
THEIRS = frozenset(
    ("anthropic_beta", "betas", "cache_control", "container", "context_management", "inference_geo", "mcp_servers",
     "service_tier", "speed")
)  # fmt: skip


def messages_task(values: dict[str, Any], headers: Mapping[str, str], fleet: Fleet) -> tuple[MessagesRequest, NewTask]:
    """Raises BadRequest naming the field."""
    request = typed(values, MessagesRequest)
    extra = given(values, TAKEN | THEIRS) | tools_of(request)
    if request.stop_sequences:
        extra["stop"] = request.stop_sequences
    if request.top_k is not None:
        extra["top_k"] = request.top_k
    effort = (request.output_config or {}).get("effort")
    if isinstance(effort, str) and (request.thinking or {}).get("type") in (None, "adaptive"):
        extra["reasoning_effort"] = effort  # how long it may think, where that is left to it
    elif (thinks := _thinks(request, fleet)) is not None:
        extra["think"] = thinks
    if (form := _format(request)) is not None:
        extra["response_format"] = form
    body = Body(messages=messages_of(request), extra=extra)
    options = Options(max_tokens=request.max_tokens, temperature=request.temperature, top_p=request.top_p)
    asker = asker_of(headers, PATH, request.headrace, request.prompt_cache_key or _conversation(request))
    return request, task_of(body, options, request.model, request.headrace, asker, fleet)


def _conversation(request: MessagesRequest) -> str | None:
    user = (request.metadata or {}).get("user_id")
    if not isinstance(user, str) or SESSION_MARK not in user:
        return None
    return user.rpartition(SESSION_MARK)[2][:128] or None


def _thinks(request: Counted, fleet: Fleet) -> bool | None:
    """None leaves it to the model's own habit; so does a wish to think where a backend would refuse it."""
    kind = (request.thinking or {}).get("type")
    if kind == "disabled":
        return False
    if kind not in ("enabled", "adaptive"):
        return None
    wanted = wanted_model(request.model)
    name = resolve_model(fleet, wanted) if wanted is not None else None
    infos = [info for worker in fleet.workers.values() for info in worker.models.values() if name in (None, info.name)]
    return None if any("thinking" in info.lacks for info in infos) else True


def _format(request: MessagesRequest) -> dict[str, Any] | None:
    form = request.output_format or (request.output_config or {}).get("format")
    if not isinstance(form, dict) or form.get("type") != "json_schema":
        return None
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": form.get("schema") or {}, "strict": True},
    }


def tools_of(request: Counted) -> dict[str, Any]:
    """``tools`` and ``tool_choice`` as chat completions have them."""
    tools = [tool for at, each in enumerate(request.tools or ()) if (tool := _tool(each, at)) is not None]
    if not tools:
        return {}
    extra: dict[str, Any] = {"tools": tools}
    choice = request.tool_choice or {}
    match choice.get("type"):
        case "any":
            extra["tool_choice"] = "required"
        case "tool":
            extra["tool_choice"] = {"type": "function", "function": {"name": choice.get("name")}}
        case "auto" | "none" as kind:
            extra["tool_choice"] = kind
    if "disable_parallel_tool_use" in choice:
        extra["parallel_tool_calls"] = not choice["disable_parallel_tool_use"]
    return extra


def _tool(tool: Any, at: int) -> dict[str, Any] | None:
    """None for a tool of Anthropic's own, whose form only their models know."""
    field = f"tools[{at}]"
    if not isinstance(tool, dict):
        raise BadRequest(f"{field} is a {type(tool).__name__}; a tool is an object with name and input_schema", field)
    if tool.get("type") not in (None, "custom"):
        return None
    if not isinstance(tool.get("name"), str):
        raise BadRequest(f"{field}.name is missing", f"{field}.name")
    function = {"name": tool["name"], "parameters": tool.get("input_schema") or {"type": "object", "properties": {}}}
    return {"type": "function", "function": function | ({"description": d} if (d := tool.get("description")) else {})}


def messages_of(request: Counted) -> tuple[dict[str, Any], ...]:
    messages: list[dict[str, Any]] = []
    if request.system:
        texts = [_unbilled(part["text"]) for part in _parts(request.system, "system") if part["type"] == "text"]
        if content := "\n\n".join(text for text in texts if text):
            messages.append({"role": "system", "content": content})
    if not request.messages:
        raise BadRequest("messages is empty; send at least one message", "messages")
    for at, message in enumerate(request.messages):
        field = f"messages[{at}]"
        role = message.get("role") if isinstance(message, dict) else None
        match role:
            case "user":
                messages += _user(message.get("content"), f"{field}.content")
            case "assistant":
                messages.append(_assistant(message.get("content"), f"{field}.content"))
            case "system":
                messages.append(
                    {"role": "system", "content": _flat(_parts(message.get("content"), f"{field}.content"))}
                )
            case _:
                raise BadRequest(f"{field}.role is {role!r}; expected user or assistant", f"{field}.role")
    return tuple(messages)


def _unbilled(text: str) -> str:
    return text.partition("\n")[2] if text.startswith(BILLING) else text


def _user(content: Any, field: str) -> list[dict[str, Any]]:
    """Results of tools are messages of their own, before what the user says."""
    results: list[dict[str, Any]] = []
    rest: list[dict[str, Any]] = []
    for block, here in _blocks(content, field):
        if block["type"] != "tool_result":
            rest.append(_part(block, here))
            continue
        parts = _parts(block.get("content") or "", f"{here}.content")
        text = "".join(part["text"] for part in parts if part["type"] == "text")
        told = f"Error: {text}" if block.get("is_error") else text
        results.append({"role": "tool", "tool_call_id": _text(block, "tool_use_id", here), "content": told})
        rest += [part for part in parts if part["type"] != "text"]
    return [*results, {"role": "user", "content": _flat(rest)}] if rest or not results else results


def _assistant(content: Any, field: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    texts: list[str] = []
    for block, here in _blocks(content, field):
        match block["type"]:
            case "text":
                texts.append(_text(block, "text", here))
            case "thinking":
                message["reasoning_content"] = message.get("reasoning_content", "") + _text(block, "thinking", here)
            case "tool_use":
                arguments = msgspec.json.encode(block.get("input") or {}).decode()
                function = {"name": _text(block, "name", here), "arguments": arguments}
                call = {"id": _text(block, "id", here), "type": "function", "function": function}
                message.setdefault("tool_calls", []).append(call)
    if texts or "tool_calls" not in message:
        message["content"] = "".join(texts)
    return message


def _blocks(content: Any, field: str) -> list[tuple[dict[str, Any], str]]:
    if isinstance(content, str):
        return [({"type": "text", "text": content}, field)]
    if not isinstance(content, list):
        raise BadRequest(f"{field} is a {type(content).__name__}; expected a text or a list of blocks", field)
    for at, block in enumerate(content):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise BadRequest(
                f"{field}[{at}] has no type; a block is an object with a type such as text", f"{field}[{at}]"
            )
    return [(block, f"{field}[{at}]") for at, block in enumerate(content)]


def _parts(content: Any, field: str) -> list[dict[str, Any]]:
    return [_part(block, here) for block, here in _blocks(content, field)]


def _part(block: dict[str, Any], field: str) -> dict[str, Any]:
    """A block as a part of a chat message."""
    source = block.get("source") if isinstance(block.get("source"), dict) else {}
    assert isinstance(source, dict)
    match block["type"], source.get("type"):
        case "text", _:
            return {"type": "text", "text": _text(block, "text", field)}
        case "image", "base64":
            data = f"data:{source.get('media_type', 'image/png')};base64,{_text(source, 'data', field)}"
            return {"type": "image_url", "image_url": {"url": data}}
        case "image", "url":
            return {"type": "image_url", "image_url": {"url": _text(source, "url", field)}}
        case "document", "text":
            return _titled(block, _text(source, "data", field))
        case ("document", "content") | ("search_result", _) as kind:
            inner = (source if kind[0] == "document" else block).get("content") or ""
            return _titled(block, "\n".join(part["text"] for part in _parts(inner, field) if part["type"] == "text"))
        case "tool_reference", _:  # what a search among tools found
            return {"type": "text", "text": _text(block, "tool_name", field)}
        case kind, of:
            what = f"{kind} with a source of type {of}" if of else kind
            raise BadRequest(
                f"{field} is a {what}; texts, images, text documents and tool results are read here", field
            )


def _titled(block: dict[str, Any], text: str) -> dict[str, Any]:
    """What a document is called, and what it is about, is part of what was said."""
    heads = [head for name in ("title", "source", "context") if isinstance(head := block.get(name), str) and head]
    return {"type": "text", "text": "\n".join([*heads, text])}


def _flat(parts: list[dict[str, Any]]) -> Any:
    """A text where it is nothing but text."""
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _text(block: dict[str, Any], name: str, field: str) -> str:
    value = block.get(name)
    if not isinstance(value, str):
        raise BadRequest(f"{field}.{name} is a {type(value).__name__}; expected a text", f"{field}.{name}")
    return value
