"""A wish to think, in each server's words."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.work import Body
from services.worker.backends.openai_body import LLAMA_CPP, LM_STUDIO, VLLM, chat_body
from services.worker.backends.port import BackendRequest
from services.worker.backends.thinking import think_at_ollama

HI = ({"role": "user", "content": "Hi"},)


@pytest.mark.parametrize(
    ("extra", "levelled", "other"),
    [
        ({}, None, None),
        ({"think": "max"}, "max", "max"),  # Ollama's own word
        ({"think": False, "reasoning_effort": "high"}, False, False),
        ({"think": None, "reasoning_effort": "high"}, "high", True),
        ({"reasoning_effort": "none"}, False, False),
        ({"reasoning_effort": "minimal"}, "low", False),
        ({"reasoning_effort": "medium"}, "medium", True),
        ({"reasoning_effort": "xhigh"}, "high", True),
        ({"reasoning_effort": "very"}, None, None),
        ({"reasoning_effort": ["high"]}, None, None),
    ],
)
def test_ollama_is_told_a_level_where_the_family_has_them(extra: dict[str, Any], levelled: Any, other: Any) -> None:
    assert [think_at_ollama(extra, family) for family in ("gptoss", "qwen3", None)] == [levelled, other, other]


@pytest.mark.parametrize(
    ("extra", "llama_cpp", "vllm"),
    [
        ({"think": True}, {"chat_template_kwargs": {"enable_thinking": True}}, None),
        ({"reasoning_effort": "none"}, {"chat_template_kwargs": {"enable_thinking": False}}, None),
        ({"think": "low"}, {"chat_template_kwargs": {"reasoning_effort": "low"}}, {"reasoning_effort": "low"}),
        (
            {"reasoning_effort": "max", "chat_template_kwargs": {"a": 1}},
            {"chat_template_kwargs": {"reasoning_effort": "high", "a": 1}},
            {"reasoning_effort": "high", "chat_template_kwargs": {"a": 1}},
        ),
        ({"reasoning_effort": "very"}, {"reasoning_effort": "very"}, None),
    ],
)
def test_a_template_is_told_in_its_own_words(extra: dict[str, Any], llama_cpp: Any, vllm: Any) -> None:
    """``vllm`` None: as llama.cpp."""
    assert told(extra, LLAMA_CPP) == llama_cpp
    assert told(extra, VLLM) == (llama_cpp if vllm is None else vllm)


def test_a_server_of_which_nothing_is_known_gets_what_was_said() -> None:
    assert told({"reasoning_effort": "minimal"}, LM_STUDIO) == {"reasoning_effort": "minimal"}


def told(extra: dict[str, Any], kind: str) -> dict[str, Any]:
    body = chat_body(BackendRequest(model="m", body=Body(messages=HI, extra=extra)), kind)[1]
    return {name: body[name] for name in ("reasoning_effort", "chat_template_kwargs", "think") if name in body}
