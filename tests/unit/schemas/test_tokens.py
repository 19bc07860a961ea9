from __future__ import annotations

import pytest

from schemas.errors import InvalidToken
from schemas.tokens import MAX_TOKEN, decode_token, encode_token

HOSTILE = [
    "*",
    ">",
    "a.b",
    "a b",
    "\x00",
    "\r\n",
    "\x7f",
    "=",
    "=2E",
    "~",
    "日本語のモデル",
    "🧭",
    "$SYS",
    "..",
    "-",
    "_",
    "%2E",
]


@pytest.mark.parametrize(
    ("name", "token"),
    [
        ("qwen2.5:7b", "qwen2=2E5=3A7b"),
        ("hf.co/elyza/L-3:Q4_K_M", "hf=2Eco=2Felyza=2FL-3=3AQ4_K_M"),
        ("日", "=E6=97=A5"),
        ("plain-name_1", "plain-name_1"),
    ],
)
def test_a_name_becomes_the_token_that_is_documented(name: str, token: str) -> None:
    assert encode_token(name) == token
    assert decode_token(token) == name


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_comes_back_as_it_was(name: str) -> None:
    assert decode_token(encode_token(name)) == name


def test_different_names_have_different_tokens() -> None:
    assert len({encode_token(name) for name in HOSTILE}) == len(HOSTILE)


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(InvalidToken, match="at least one character"):
        encode_token("")


def test_half_a_surrogate_pair_is_refused_by_name() -> None:
    with pytest.raises(InvalidToken, match=r"\\ud800"):
        encode_token("a\ud800")


def test_a_name_that_would_break_the_control_line_is_refused() -> None:
    assert len(encode_token("x" * MAX_TOKEN)) == MAX_TOKEN
    with pytest.raises(InvalidToken, match="901 bytes"):
        encode_token("x" * (MAX_TOKEN + 1))


@pytest.mark.parametrize("token", ["", "a.b", "a b", "=2e", "=G0", "=2", "a=", "é", "a\n", "=41", "=FF", "=ED=A0=80"])
def test_what_encoding_cannot_have_made_does_not_decode(token: str) -> None:
    with pytest.raises(InvalidToken):
        decode_token(token)
