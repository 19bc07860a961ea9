"""What does a request of OpenAI's Responses ask of the router? Items to messages, tools to functions (docs/http/openai.md).

Every fault is named by its field. Tools that only OpenAI's own servers can run are left out, since no model here has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from schemas.events import Options
from schemas.work import Body
from services.router.fleet import Fleet
from services.router.http.asking import Limit, Name, RoutedConstraints, Share, Temperature, given, limit_of
from services.router.http.chat_request import asker_of, task_of
from services.router.http.reading import BadRequest, typed
from services.router.http.tool_choice import narrowed
from services.router.port import NewTask

PATH = "/v1/responses"
CUSTOM = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "the whole input, as plain text"}},
    "required": ["input"],
}
"""A custom tool takes free text; a model that calls functions gives it as this function's only argument."""


class TextFormat(msgspec.Struct, frozen=True, kw_only=True):
    format: dict[str, Any] | None = None
    verbosity: str | None = None


class Reasoning(msgspec.Struct, frozen=True, kw_only=True):
    effort: str | None = None
    summary: str | None = None


class ResponsesRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that mean something here. Of the others those that only OpenAI's servers know are left out."""

    input: Any = None
    model: Name | None = None
    instructions: str | None = None
    stream: bool | None = None
    max_output_tokens: Limit | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    tools: list[Any] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    text: TextFormat | None = None
    reasoning: Reasoning | None = None
    previous_response_id: str | None = None
    prompt_cache_key: str | None = None
    top_logprobs: int | None = None
    include: list[str] | None = None
    metadata: dict[str, Any] | None = None
    user: str | None = None
    store: bool | None = None
    background: bool | None = None
    conversation: Any = None
    prompt: Any = None
    headrace: RoutedConstraints | None = None


TAKEN = frozenset(ResponsesRequest.__struct_fields__)
THEIRS = frozenset(
    ("truncation", "service_tier", "safety_identifier", "max_tool_calls", "stream_options", "prompt_cache_retention",
     "client_metadata", "context_management")
)  # fmt: skip


def read_responses(values: dict[str, Any]) -> ResponsesRequest:
    """Raises BadRequest for what cannot be done here."""
    request = typed(values, ResponsesRequest)
    for field, words in (
        ("conversation", "conversations are not kept; send previous_response_id, or the whole input"),
        ("prompt", "stored prompts are not kept; send instructions and input"),
        ("background", "an answer is waited for; POST /route gives a task to come back for"),
    ):
        if getattr(request, field):
            raise BadRequest(f"{field}: {words}", field)
    return request


def responses_task(
    request: ResponsesRequest,
    values: dict[str, Any],
    before: Sequence[dict[str, Any]],
    headers: Mapping[str, str],
    fleet: Fleet,
) -> NewTask:
    """``before`` is the conversation that it goes on with."""
    history = list(before)
    if request.instructions:
        if history and history[0].get("role") == "system":
            history = history[1:]  # the former instructions do not hold any more
        history.insert(0, {"role": "system", "content": request.instructions})
    messages = (*history, *messages_of(request.input))
    if not messages:
        raise BadRequest("input is empty; send a text or a list of items", "input")
    extra = given(values, TAKEN | THEIRS) | _extra(request)
    options = Options(
        max_tokens=limit_of(request.max_output_tokens, "max_output_tokens"),
        temperature=request.temperature,
        top_p=request.top_p,
    )
    asker = asker_of(headers, PATH, request.headrace, request.prompt_cache_key)
    return task_of(Body(messages=messages, extra=extra), options, request.model, request.headrace, asker, fleet)


def _extra(request: ResponsesRequest) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    if tools := [tool for at, each in enumerate(request.tools or ()) if (tool := _tool(each, at)) is not None]:
        extra["tools"] = tools
        if request.tool_choice is not None:
            extra["tool_choice"] = _tool_choice(request.tool_choice)
        if request.parallel_tool_calls is not None:
            extra["parallel_tool_calls"] = request.parallel_tool_calls
    if request.text is not None and request.text.format and request.text.format.get("type") != "text":
        extra["response_format"] = _response_format(request.text.format)
    if request.reasoning is not None and request.reasoning.effort:
        extra["reasoning_effort"] = request.reasoning.effort
    if request.top_logprobs or "message.output_text.logprobs" in (request.include or ()):
        extra |= {"logprobs": True, "top_logprobs": request.top_logprobs or 0}
    return narrowed(extra)


def _tool(tool: Any, at: int) -> dict[str, Any] | None:
    """None for a tool that only OpenAI's servers run."""
    field = f"tools[{at}]"
    if not isinstance(tool, dict) or not isinstance(tool.get("type"), str):
        raise BadRequest(f"{field} has no type; a tool is an object with type, name and parameters", field)
    if tool["type"] not in ("function", "custom"):
        return None
    if not isinstance(tool.get("name"), str):
        raise BadRequest(f"{field}.name is missing", f"{field}.name")
    function = {
        name: tool[name] for name in ("name", "description", "parameters", "strict") if tool.get(name) is not None
    }
    return {"type": "function", "function": function | ({"parameters": CUSTOM} if tool["type"] == "custom" else {})}


def custom_names(tools: Sequence[Any] | None) -> frozenset[str]:
    return frozenset(tool["name"] for tool in tools or () if isinstance(tool, dict) and tool.get("type") == "custom")


def _tool_choice(choice: Any) -> Any:
    if not isinstance(choice, dict):
        return choice
    if choice.get("type") == "allowed_tools":
        return choice
    return {"type": "function", "function": {"name": choice["name"]}} if "name" in choice else "auto"


def _response_format(text_format: dict[str, Any]) -> dict[str, Any]:
    if text_format.get("type") != "json_schema":
        return text_format
    return {"type": "json_schema", "json_schema": {key: text_format[key] for key in text_format if key != "type"}}


def messages_of(given_input: Any) -> tuple[dict[str, Any], ...]:
    """Chat messages in order; reasoning and calls belong to the assistant's message beside them."""
    if given_input is None:
        return ()
    if isinstance(given_input, str):
        return ({"role": "user", "content": given_input},)
    if not isinstance(given_input, list):
        raise BadRequest("input: expected a text or a list of items", "input")
    messages: list[dict[str, Any]] = []
    for at, item in enumerate(given_input):
        _add(messages, item, f"input[{at}]")
    return tuple(messages)


def _add(messages: list[dict[str, Any]], item: Any, field: str) -> None:
    if not isinstance(item, dict):
        raise BadRequest(f"{field} is a {type(item).__name__}; an item is an object", field)
    match item.get("type") or "message":
        case "message":
            role = item.get("role")
            if role not in ("user", "assistant", "system", "developer"):
                raise BadRequest(
                    f"{field}.role is {role!r}; expected user, assistant, system or developer", f"{field}.role"
                )
            content = _content(item.get("content"), f"{field}.content")
            if role == "assistant":
                _assistant(messages, free="content")["content"] = content
            else:
                messages.append({"role": "system" if role == "developer" else role, "content": content})
        case "reasoning":
            if text := _reasoning(item):
                _assistant(messages, free="reasoning_content")["reasoning_content"] = text
        case "function_call" | "custom_tool_call" as kind:
            named = item.get("arguments") if kind == "function_call" else _as_custom(item.get("input"))
            function = {
                "name": _text(item.get("name"), f"{field}.name"),
                "arguments": _text(named, f"{field}.arguments"),
            }
            call = {"id": _text(item.get("call_id"), f"{field}.call_id"), "type": "function", "function": function}
            _assistant(messages).setdefault("tool_calls", []).append(call)
        case "function_call_output" | "custom_tool_call_output":
            output = item.get("output")
            content = output if isinstance(output, str) else _content(output, f"{field}.output")
            call_id = _text(item.get("call_id"), f"{field}.call_id")
            messages.append({"role": "tool", "tool_call_id": call_id, "content": content})
        case other:
            raise BadRequest(
                f"{field} is a {other}; messages, function calls, their outputs and reasoning are understood here",
                field,
            )


def _assistant(messages: list[dict[str, Any]], free: str | None = None) -> dict[str, Any]:
    """The assistant's message that is being put together; a new one where ``free`` is said already: it may speak twice."""
    if not messages or messages[-1]["role"] != "assistant" or (free and messages[-1].get(free) is not None):
        messages.append({"role": "assistant", "content": None})
    return messages[-1]


def _reasoning(item: dict[str, Any]) -> str:
    parts = [part for name in ("content", "summary") if isinstance(item.get(name), list) for part in item[name]]
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def _as_custom(text: Any) -> str:
    return msgspec.json.encode({"input": text}).decode()


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise BadRequest(f"{field} is a {type(value).__name__}; expected a text", field)
    return value


def _content(content: Any, field: str) -> Any:
    """A text where it is nothing but text."""
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise BadRequest(f"{field} is a {type(content).__name__}; expected a text or a list of parts", field)
    parts = [_part(part, f"{field}[{at}]") for at, part in enumerate(content)]
    if all(part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


def _part(part: Any, field: str) -> dict[str, Any]:
    kind: Literal["text"] | Any = part.get("type") if isinstance(part, dict) else None
    match kind:
        case "input_text" | "output_text" | "text":
            return {"type": "text", "text": _text(part.get("text"), f"{field}.text")}
        case "refusal":
            return {"type": "text", "text": _text(part.get("refusal"), f"{field}.refusal")}
        case "input_image":
            url = _text(part.get("image_url"), f"{field}.image_url")  # a file's id means nothing here
            detail = {"detail": part["detail"]} if part.get("detail") else {}
            return {"type": "image_url", "image_url": {"url": url, **detail}}
        case _:
            raise BadRequest(f"{field} is a {kind}; texts and images with an image_url are understood here", field)
