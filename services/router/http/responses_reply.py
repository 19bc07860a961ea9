"""How does an answer look as OpenAI's Responses have it? Items for the whole, a numbered sequence of events for the stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from schemas.events import Tokens
from schemas.work import Answer
from services.router.http.chat_reply import Told
from services.router.http.problems import Problem, openai_form
from services.router.http.responses_request import ResponsesRequest, custom_names
from services.router.port import TaskStatus, TokenUpdate

_encode = msgspec.json.Encoder().encode


class Shape:
    """One response: what of it does not depend on the answer."""

    def __init__(self, request: ResponsesRequest, task: str, created: int, model: str) -> None:
        self.task, self.model = task, model
        self.custom = custom_names(request.tools)
        self._fixed: dict[str, Any] = {
            "id": f"resp_{task}",
            "object": "response",
            "created_at": created,
            "background": False,
            "instructions": request.instructions,
            "max_output_tokens": request.max_output_tokens,
            "metadata": request.metadata or {},
            "parallel_tool_calls": request.parallel_tool_calls is not False,
            "previous_response_id": request.previous_response_id,
            "prompt_cache_key": request.prompt_cache_key,
            "reasoning": {
                "effort": request.reasoning.effort if request.reasoning is not None else None,
                "summary": None,
            },
            "store": request.store is not False,
            "temperature": request.temperature,
            "text": {"format": (request.text and request.text.format) or {"type": "text"}},
            "tool_choice": request.tool_choice or "auto",
            "tools": request.tools or [],
            "top_p": request.top_p,
            "truncation": "disabled",
            "user": request.user,
        }

    def response(self, status: str, output: Sequence[dict[str, Any]] = (), **more: Any) -> dict[str, Any]:
        empty = {"error": None, "incomplete_details": None, "usage": None}
        return {**self._fixed, "model": self.model, "status": status, "output": output, **empty, **more}

    def of_answer(self, answer: Answer, told: Told | None) -> dict[str, Any]:
        self.model = answer.model
        is_cut = answer.finish_reason == "length"
        return self.response(
            "incomplete" if is_cut else "completed",
            self.items(answer),
            incomplete_details={"reason": "max_output_tokens"} if is_cut else None,
            usage=usage_of(answer.tokens),
            **({"headrace": told} if told is not None else {}),
        )

    def items(self, answer: Answer) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        if answer.thinking:
            items.append(self.reasoning(answer.thinking))
        if answer.text or not answer.tool_calls:
            items.append(self.message(answer.text, answer.logprobs))
        items += [self.call(at, call) for at, call in enumerate(answer.tool_calls)]
        return items

    def reasoning(self, text: str, at: int = 0) -> dict[str, Any]:
        """``at`` counts those of a stream in which a model thought more than once."""
        content = [{"type": "reasoning_text", "text": text}]
        return {
            "id": self._named("rs", at), "type": "reasoning", "summary": [], "content": content, "status": "completed",
        }  # fmt: skip

    def message(self, text: str, logprobs: Sequence[dict[str, Any]] = (), at: int = 0) -> dict[str, Any]:
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}
        return {
            "id": self._named("msg", at), "type": "message", "role": "assistant", "status": "completed", "content": [part],
        }  # fmt: skip

    def _named(self, kind: str, at: int) -> str:
        return f"{kind}_{self.task}_{at}" if at else f"{kind}_{self.task}"

    def call(self, at: int, call: dict[str, Any], status: str = "completed") -> dict[str, Any]:
        function, call_id = call.get("function") or {}, call.get("id") or f"call_{at}"
        name, arguments = function.get("name") or "", function.get("arguments") or ""
        if name in self.custom:
            item = {"id": f"ctc_{self.task}_{at}", "type": "custom_tool_call", "input": custom_input(arguments)}
        else:
            item = {"id": f"fc_{self.task}_{at}", "type": "function_call", "arguments": arguments}
        return item | {"call_id": call_id, "name": name, "status": status}


def custom_input(arguments: str) -> str:
    """The text within the function's only argument; whatever else the model wrote stays as it is."""
    try:
        value = msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return arguments
    text = value.get("input") if isinstance(value, dict) else None
    return text if isinstance(text, str) else arguments


def usage_of(tokens: Tokens | None) -> dict[str, Any] | None:
    """None unless both counts are known."""
    if tokens is None or tokens.prompt is None or tokens.output is None:
        return None
    return {
        "input_tokens": tokens.prompt,
        "input_tokens_details": {"cached_tokens": tokens.cached or 0},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.thinking or 0},
        "total_tokens": tokens.prompt + tokens.output,
    }


class ResponseEvents:
    """A response's stream: a Speech. Items open when their first piece comes; of texts one is open at a time."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._number = 0
        self._items = 0
        self._open: tuple[str, int, list[str]] | None = None
        self._texts: Counter[str] = Counter()
        self._calls: dict[int, tuple[int, dict[str, Any]]] = {}
        self._prefix = b""
        self._done: list[tuple[int, dict[str, Any]]] = []

    def set_model(self, model: str) -> None:
        self._shape.model = model

    def begin(self) -> bytes:
        started = self._shape.response("in_progress")
        return self._event("response.created", response=started) + self._event("response.in_progress", response=started)

    def moved(self, status: TaskStatus) -> bytes:
        return b""

    def token(self, update: TokenUpdate) -> bytes:
        plain = not (update.thinking or update.tool_calls or update.logprobs)
        if plain and update.text and self._open is not None and self._open[0] == "message":
            return self._text(update.text)
        said: list[bytes] = []
        if update.thinking:
            said += [self._begin("reasoning"), self._thinking(update.thinking)]
        if update.text:
            said += [self._begin("message"), self._text(update.text, update.logprobs)]
        if update.tool_calls:
            said.append(self._close())
            said += [self._call(delta) for delta in update.tool_calls]
        return b"".join(said)

    def end(self, answer: Answer | None, reason: str | None, told: Told) -> bytes:
        said = []
        if self._open is None and not self._items:
            said.append(self._begin("message"))
        said.append(self._close())
        said += [self._close_call(at, call) for at, call in self._calls.values()]
        output = [item for _, item in sorted(self._done, key=lambda each: each[0])]
        if answer is not None:
            final = self._shape.of_answer(answer, told)
            if max(self._texts.values(), default=0) > 1:  # what was told in parts stays in parts
                final["output"] = output
        else:
            final = self._shape.response("completed", output, headrace=told)
        said.append(self._event(f"response.{final['status']}", response=final))
        return b"".join(said)

    def tail(self, tokens: Tokens | None) -> bytes:
        return b""

    def error(self, problem: Problem) -> bytes:
        told = openai_form(problem)["error"]
        error = {"code": told["code"], "message": told["message"]}
        return self._event("response.failed", response=self._shape.response("failed", error=error))

    def _event(self, name: str, /, **fields: Any) -> bytes:
        body = {"type": name, **fields, "sequence_number": self._number}
        self._number += 1
        return b"".join((b"event: ", name.encode(), b"\ndata: ", _encode(body), b"\n\n"))

    def _begin(self, kind: str) -> bytes:
        """Open the item of this kind, unless it is."""
        if self._open is not None and self._open[0] == kind:
            return b""
        said, at = self._close(), self._items
        self._items += 1
        self._open = (kind, at, [])
        self._texts[kind] += 1
        item = self._text_item(kind, "")
        part = item["content"][0]
        item = {**item, "status": "in_progress", "content": []}
        said += self._event("response.output_item.added", output_index=at, item=item)
        where = {"item_id": item["id"], "output_index": at, "content_index": 0}
        said += self._event("response.content_part.added", **where, part=part)
        name = "response.output_text.delta" if kind == "message" else "response.reasoning_text.delta"
        self._prefix = b"".join(
            (b"event: ", name.encode(), b"\ndata: ", _encode({"type": name, **where})[:-1], b',"delta":')
        )
        return said

    def _text(self, text: str, logprobs: Sequence[dict[str, Any]] = ()) -> bytes:
        assert self._open is not None
        self._open[2].append(text)
        number, self._number = self._number, self._number + 1
        probable = _encode(logprobs) if logprobs else b"[]"
        return b"".join(
            (self._prefix, _encode(text), b',"logprobs":', probable, b',"sequence_number":%d}\n\n' % number)
        )

    def _thinking(self, text: str) -> bytes:
        assert self._open is not None
        self._open[2].append(text)
        number, self._number = self._number, self._number + 1
        return b"".join((self._prefix, _encode(text), b',"sequence_number":%d}\n\n' % number))

    def _text_item(self, kind: str, text: str) -> dict[str, Any]:
        at = self._texts[kind] - 1
        return self._shape.message(text, at=at) if kind == "message" else self._shape.reasoning(text, at)

    def _close(self) -> bytes:
        if self._open is None:
            return b""
        (kind, at, texts), self._open = self._open, None
        text = "".join(texts)
        item = self._text_item(kind, text)
        where = {"item_id": item["id"], "output_index": at, "content_index": 0}
        self._done.append((at, item))
        name = "response.output_text.done" if kind == "message" else "response.reasoning_text.done"
        logprobs: dict[str, Any] = {"logprobs": []} if kind == "message" else {}
        return b"".join(
            (
                self._event(name, **where, text=text, **logprobs),
                self._event("response.content_part.done", **where, part=item["content"][0]),
                self._event("response.output_item.done", output_index=at, item=item),
            )
        )

    def _call(self, delta: dict[str, Any]) -> bytes:
        """A custom tool's input is within the arguments, and comes in one piece at the end."""
        index, function = delta.get("index", len(self._calls)), delta.get("function") or {}
        said = b""
        if index not in self._calls:
            call = {"id": delta.get("id"), "function": {"name": function.get("name") or "", "arguments": ""}}
            at = self._items
            self._items += 1
            self._calls[index] = at, call
            item = self._shape.call(len(self._calls) - 1, call, "in_progress")
            said = self._event("response.output_item.added", output_index=at, item=item)
        at, call = self._calls[index]
        arguments = function.get("arguments") or ""
        call["function"]["arguments"] += arguments
        if not arguments or call["function"]["name"] in self._shape.custom:
            return said
        item_id = self._shape.call(list(self._calls).index(index), call)["id"]
        return said + self._event(
            "response.function_call_arguments.delta", item_id=item_id, output_index=at, delta=arguments
        )

    def _close_call(self, at: int, call: dict[str, Any]) -> bytes:
        place = next(n for n, (known, _) in enumerate(self._calls.values()) if known == at)
        item = self._shape.call(place, call)
        self._done.append((at, item))
        where = {"item_id": item["id"], "output_index": at}
        if item["type"] == "custom_tool_call":
            said = self._event("response.custom_tool_call_input.delta", **where, delta=item["input"])
            said += self._event("response.custom_tool_call_input.done", **where, input=item["input"])
        else:
            name, arguments = item["name"], item["arguments"]
            said = self._event("response.function_call_arguments.done", **where, name=name, arguments=arguments)
        return said + self._event("response.output_item.done", output_index=at, item=item)
