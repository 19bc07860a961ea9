"""Is a refusal about a prompt that fits into no window of the model? Servers say it in words alone, each in its own.

For a worker, since another machine with the same window would refuse it too, and for the router, whose clients shorten a
conversation only where they recognise this error. Pure.
"""

from __future__ import annotations

import re

_WORDS = re.compile(
    r"exceed_context_size|exceeds? the (?:available |model'?s? )?(?:maximum )?context|context length"
    r"|the prompt has about \d+ tokens",
    re.I,
)
"""llama.cpp's type and its words, Ollama's, vLLM's and LM Studio's "context length", and this router's own."""


def is_overlong(words: str) -> bool:
    return _WORDS.search(words) is not None
