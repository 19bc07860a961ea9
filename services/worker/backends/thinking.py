"""How long shall a model think before it answers? What clients say of it, in the words of each server.

Clients say ``think`` (Ollama's: true, false or a level) or ``reasoning_effort`` (OpenAI's). Servers know fewer levels than
clients, and refuse a request for one that they do not know: the nearest is said, and nothing where nobody knows what was meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LEVELLED = frozenset({"gptoss", "gpt-oss"})
"""Families that each Ollama gives levels to. Those of 2025 refuse a level for any other; 0.24 takes it for mere true."""
_NEAREST = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
"""What each server that takes levels knows."""


def think_at_ollama(extra: Mapping[str, Any], family: str | None) -> bool | str | None:
    """Ollama's ``think``: its own word as it came; None leaves it to the model."""
    if extra.get("think") is not None:
        own: bool | str = extra["think"]
        return own
    effort = _wish(extra)
    if effort == "none":
        return False
    level: str | None = _NEAREST.get(effort) if isinstance(effort, str) else None
    if level is None or family in LEVELLED:
        return level
    return bool(effort != "minimal")


def think_at_llama_cpp(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a chat: what its template reads. A template that reads nothing of it does not fail."""
    return {"chat_template_kwargs": words} if (words := _template_words(extra)) else {}


def think_at_vllm(extra: Mapping[str, Any]) -> dict[str, Any]:
    """A level has a field of its own there, and only on and off are the template's."""
    words = _template_words(extra)
    level = words.pop("reasoning_effort", None)
    said = {"reasoning_effort": level} if level is not None else {}
    return said | ({"chat_template_kwargs": words} if words else {})


def _template_words(extra: Mapping[str, Any]) -> dict[str, Any]:
    wish = _wish(extra)
    if isinstance(wish, bool) or wish == "none":
        return {"enable_thinking": wish is True}
    level = _NEAREST.get(wish) if isinstance(wish, str) else None
    return {"reasoning_effort": level} if level is not None else {}


def _wish(extra: Mapping[str, Any]) -> Any:
    return extra["think"] if extra.get("think") is not None else extra.get("reasoning_effort")
