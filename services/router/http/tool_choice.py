"""Which of its tools may a model call? OpenAI's ``allowed_tools`` in words that each server knows: fewer tools, and the mode."""

from __future__ import annotations

from typing import Any


def narrowed(extra: dict[str, Any]) -> dict[str, Any]:
    """Fields of a chat, with the tools alone that ``tool_choice`` allows. No server here knows the form, and a tool that is shown
    may be called. Names that are no tool's allow nothing."""
    choice, tools = extra.get("tool_choice"), extra.get("tools")
    if not (isinstance(choice, dict) and choice.get("type") == "allowed_tools" and isinstance(tools, list)):
        return extra
    said = choice.get("allowed_tools")
    allowed = said if isinstance(said, dict) else choice  # in Responses they stand beside the type
    named = allowed.get("tools")
    names = {_name(tool) for tool in named} - {None} if isinstance(named, list) else set()
    kept = [tool for tool in tools if _name(tool) in names]
    rest = {name: value for name, value in extra.items() if name not in ("tools", "tool_choice")}
    return rest | {"tools": kept, "tool_choice": allowed.get("mode") or "auto"} if kept else rest


def _name(tool: Any) -> str | None:
    """Of a tool, or of what names one."""
    if not isinstance(tool, dict):
        return None
    inner = tool.get(str(tool.get("type")))
    name = inner.get("name") if isinstance(inner, dict) else tool.get("name")
    return name if isinstance(name, str) else None
