"""What was the answer worth calling: ok, empty, truncated, substituted, in the wrong language?

A stream that ended well is not yet a success. Pure: texts in, a word out; it never judges quality.
"""

from __future__ import annotations

from collections.abc import Collection

from schemas.events import Outcome

LETTERS_MIN = 40
"""Below this a name or a number decides the script, not the language."""
FOREIGN_SHARE = 0.9
"""Of the letters; an answer that quotes the other language is not wrong."""
LENGTH_REASONS = frozenset({"length", "max_tokens"})
MIXED_DOMAINS = frozenset({"translation", "code", "maths"})
"""Where another language than the prompt's is what was asked for."""


def outcome_of(
    *,
    text: str,
    has_tool_calls: bool,
    finish_reason: str,
    expected_models: Collection[str],
    answered_by: str | None,
    output_tokens: int | None,
    limit: int | None,
    language: str | None,
    domain: str,
) -> Outcome:
    """The first that applies, worst first. All thinking and no text is empty, whatever the tokens cost (case 32). Stopping at
    ``limit``, the client's or ours, is what the request said and no fault of the model: only other cuts are ``truncated``."""
    if answered_by is not None and answered_by not in expected_models:
        return "substituted"
    if not text.strip() and not has_tool_calls:
        return "empty"
    if finish_reason in LENGTH_REASONS and not _is_at(limit, output_tokens):
        return "truncated"
    if domain not in MIXED_DOMAINS and _is_other_language(text, language):
        return "wrong_language"
    return "ok"


def _is_at(limit: int | None, output_tokens: int | None) -> bool:
    return limit is not None and (output_tokens is None or output_tokens >= limit)


def _is_other_language(text: str, language: str | None) -> bool:
    """Only what scripts can tell: Japanese without kana, or anything else that is nearly all Japanese."""
    letters = [char for char in text if char.isalpha()]
    if len(letters) < LETTERS_MIN or language is None:
        return False
    latin = sum(1 for char in letters if char < "\u0250")
    japanese = sum(1 for char in letters if "\u3040" <= char <= "\u30ff" or "\u4e00" <= char <= "\u9fff")
    if language == "ja":
        return latin / len(letters) >= FOREIGN_SHARE
    return language == "en" and japanese / len(letters) >= FOREIGN_SHARE
