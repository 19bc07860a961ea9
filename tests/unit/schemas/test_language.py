"""Language and size from characters alone."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from schemas import language
from schemas.language import estimate_tokens, language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Why is the sky blue?", "en"),
        ("空はなぜ青いの", "ja"),
        ("東京都の人口", "ja"),
        ("日本国憲法前文", "ja"),
        ("你们好吗?请告诉我这个问题的答案", "other"),
        ("오늘 날씨 어때요", "other"),
        ("Как у тебя дела?", "other"),
        ("Wie ist das Wetter heute und was soll ich anziehen?", "other"),
        ("Où est la gare et à quelle heure part le train ?", "other"),
        ("Translate this into English: 「今日はいい天気ですね」", "en"),
        ("次の文を訳して: The quick brown fox jumps over the lazy dog and runs away.", "ja"),
        ("このコードを説明して\ndef total(xs):\n    return sum(x for x in xs if x is not None and x > 0)", "ja"),
        ("```python\n# こんにちは\nprint('x')\n```\nWhat does this print?", "en"),
        ("The naïve café owner is here", "en"),
        ("", None),
        ("1 + 1 = ?", None),
        ("!!! 🙂", None),
    ],
)
def test_the_language_is_read_from_script_and_function_words(text: str, language: str | None) -> None:
    assert language_of(text) == language


def test_a_japanese_character_is_one_token_and_four_others_are_one() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("abcd") == 1
    assert estimate_tokens("abcde") == 2
    assert estimate_tokens("今日は晴れ") == 5
    assert estimate_tokens("今日はPython") == 5


@given(st.text(st.characters(max_codepoint=127)))
def test_the_patterns_find_in_plain_text_what_is_taken_for_granted(text: str) -> None:
    """An accent or a kana in ASCII would mean that the short way answers otherwise than the long one."""
    patterns = (language._KANA, language._HAN, language._ACCENTED)
    assert not any(pattern.search(text) for pattern in patterns)
    assert len(language._LATIN.findall(text)) == sum(map(str.isalpha, text))
