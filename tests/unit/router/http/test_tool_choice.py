from __future__ import annotations

from typing import Any

import pytest

from services.router.http.tool_choice import narrowed


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {}}}


TOOLS = [tool("read"), tool("write"), {"type": "custom", "custom": {"name": "patch"}}]


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [tool("write")]}},
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "write"}]},
    ],
)
def test_a_model_sees_the_tools_alone_that_are_allowed(choice: dict[str, Any]) -> None:
    extra = {"tools": TOOLS, "tool_choice": choice, "stop": "x"}
    assert narrowed(extra) == {"tools": [tool("write")], "tool_choice": "required", "stop": "x"}


def test_a_mode_that_is_not_said_leaves_it_to_the_model() -> None:
    allowed = {"tools": [{"type": "custom", "custom": {"name": "patch"}}]}
    said = narrowed({"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "allowed_tools": allowed}})
    assert said == {"tools": TOOLS[2:], "tool_choice": "auto"}


@pytest.mark.parametrize("tools", [[], None, [7], [{"type": "function"}], [tool("unknown")]])
def test_nothing_allowed_is_nothing_shown(tools: Any) -> None:
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": tools}}
    assert narrowed({"tools": TOOLS, "tool_choice": choice}) == {}


def test_what_is_no_list_of_tools_is_left_to_whoever_checks_it() -> None:
    extra = {"tools": 7, "tool_choice": {"type": "allowed_tools", "mode": "auto"}}
    assert narrowed(extra) is extra


@pytest.mark.parametrize("choice", ["auto", "none", tool("read"), None, 7])
def test_every_other_choice_goes_on_as_it_came(choice: Any) -> None:
    extra = {"tools": TOOLS, "tool_choice": choice}
    assert narrowed(extra) is extra
