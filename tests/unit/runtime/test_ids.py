"""services.runtime.ids: ids that sort by their making and need no encoding."""

from __future__ import annotations

import time

from hypothesis import given, strategies as st

from schemas.tokens import encode_token
from services.runtime.ids import ID_CHARS, ID_LENGTH, encode_id, new_id

NUMBERS = st.integers(min_value=0, max_value=2**128 - 1)


def test_ids_of_one_process_are_unique_and_sorted() -> None:
    made = [new_id() for _ in range(5_000)]
    assert made == sorted(set(made))


def test_an_id_is_legal_everywhere_without_encoding() -> None:
    made = new_id()
    assert len(made) == ID_LENGTH
    assert set(made) <= set(ID_CHARS)
    assert encode_token(made) == made


def test_an_id_made_later_sorts_later() -> None:
    old = encode_id((time.time_ns() // 1_000_000 - 1_000) << 80)
    assert old < new_id()


@given(NUMBERS, NUMBERS)
def test_ids_sort_as_their_numbers(one: int, other: int) -> None:
    assert (encode_id(one) < encode_id(other)) is (one < other)
