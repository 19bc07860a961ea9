"""Any name whatever is one legal token, and no two names share one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from schemas import subjects
from schemas.errors import InvalidToken
from schemas.tokens import decode_token, encode_token

names = st.text(min_size=1, max_size=75)
"""75 characters of 4 bytes each still fit a token."""
KV_KEY = re.compile(r"[-/_=.a-zA-Z0-9]+")
DURABLE = re.compile(r"[^\s.*>/\\\x00]{1,255}")


@given(names)
def test_every_name_comes_back(name: str) -> None:
    assert decode_token(encode_token(name)) == name


@given(names)
def test_every_token_is_legal_in_subjects_keys_and_durables(name: str) -> None:
    token = encode_token(name)
    assert re.fullmatch(r"[A-Za-z0-9_=-]+", token)
    assert KV_KEY.fullmatch(subjects.stats_key(name, name, name))
    assert DURABLE.fullmatch(subjects.group_durable(name[:30], name))


@given(st.text(alphabet="=09AFaf41._-x", min_size=1, max_size=12))
def test_a_token_has_one_spelling(text: str) -> None:
    try:
        name = decode_token(text)
    except InvalidToken:
        return
    assert encode_token(name) == text


@given(names, names, names, names, st.integers(1, 20))
def test_every_work_item_can_be_taken_apart(capability: str, model: str, lane: str, task: str, attempt: int) -> None:
    subject = subjects.item_subject(capability, model, lane, task, attempt)
    assert subjects.parse_item_subject(subject) == (capability, model, lane, task, attempt)


@given(st.text(alphabet=st.characters(codec=None, categories=["Cs"]), min_size=1, max_size=3))
def test_what_is_not_text_is_refused(name: str) -> None:
    with pytest.raises(InvalidToken):
        encode_token(name)
