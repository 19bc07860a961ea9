"""What does an OpenAI-compatible server get to read? A request as it came, with the words that its kind of server knows.

Never a limit that a vLLM would refuse it for where nobody asked for one.
"""

from __future__ import annotations

from typing import Any

from services.worker.backends.port import BackendRequest
from services.worker.backends.thinking import think_at_llama_cpp, think_at_vllm

LLAMA_CPP, VLLM, LM_STUDIO, OTHER = "llama.cpp", "vllm", "lmstudio", "openai"
_THINKS = {LLAMA_CPP: think_at_llama_cpp, VLLM: think_at_vllm}
_PROMPTS = "/v1/completions"


def chat_body(request: BackendRequest, kind: str) -> tuple[str, dict[str, Any]]:
    """The path and body of a request; what we do not interpret goes on as it came."""
    wants = request.options
    body: dict[str, Any] = {
        name: value for name, value in request.body.extra.items() if name not in ("options", "think")
    }
    body |= {"model": request.model, "stream": True, "stream_options": {"include_usage": True}}
    is_prompt = request.body.prompt is not None and not request.body.messages
    # Without a limit vLLM ends a chat at its window, by its own count of the prompt.
    if wants.max_tokens is not None or is_prompt or kind != VLLM:
        body["max_tokens"] = wants.max_tokens or request.most_tokens
    for name, value in (("temperature", wants.temperature), ("top_p", wants.top_p), ("seed", wants.seed)):
        if value is not None:
            body[name] = value
    if kind == LLAMA_CPP:
        body["return_progress"] = True
    if kind in _THINKS and (said := _THINKS[kind](request.body.extra)):
        body.pop("reasoning_effort", None)
        if given := body.get("chat_template_kwargs"):
            said["chat_template_kwargs"] = said.get("chat_template_kwargs", {}) | given
        body |= said
    if is_prompt:
        return _PROMPTS, body | {"prompt": request.body.prompt}
    return "/v1/chat/completions", body | {"messages": list(request.body.messages)}


def to_the_window(path: str, body: dict[str, Any], kind: str) -> dict[str, Any] | None:
    """The same request with no limit but the window; None where that is nothing else, or where another kind of server may know
    no end. vLLM refuses a limit that passes what the prompt leaves, though nobody could get more; of a prompt only null is no
    limit, as 16 tokens stand for one that is not there."""
    if kind != VLLM or body.get("max_tokens") is None:
        return None
    unlimited = {name: value for name, value in body.items() if name not in ("max_tokens", "max_completion_tokens")}
    return unlimited | {"max_tokens": None} if path == _PROMPTS else unlimited
