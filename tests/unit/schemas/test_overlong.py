"""What each server says of a prompt that is too long, word for word; and what sounds like it and is something else."""

from __future__ import annotations

import pytest

from schemas.overlong import is_overlong


@pytest.mark.parametrize(
    "words",
    [
        "request (144055 tokens) exceeds the available context size (131072 tokens), try increasing it",
        "the request is too large (exceed_context_size_error)",
        "prompt too long; exceeded max context length by 12 tokens",
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
        "However, the model is loaded with context length of only 4096 tokens",
        "the prompt has about 60000 tokens, qwen3 has 8192; no model in the fleet can",
    ],
)
def test_every_servers_words_are_known(words: str) -> None:
    assert is_overlong(words)


@pytest.mark.parametrize("words", ["32768 tokens were asked for, qwen3 has 8192", "bad tool", "no context here"])
def test_nothing_else_is_taken_for_it(words: str) -> None:
    assert not is_overlong(words)
