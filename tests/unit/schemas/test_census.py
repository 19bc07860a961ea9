from __future__ import annotations

import random

from schemas.census import Census

KEYS = [(model, domain, worker) for model in "ab" for domain in "cd" for worker in (None, "w")]


def counted(states: list[tuple[tuple[str, str, str | None], int]]) -> Census:
    census = Census()
    for key, last_seq in states:
        census.put(key, last_seq)
    return census


def test_the_same_states_count_the_same_in_any_order_and_by_any_way() -> None:
    final = [(key, 100 + n) for n, key in enumerate(KEYS)]
    detours = [(key, n) for n, key in enumerate(KEYS)] + final + final[:3]
    shuffled = list(final)
    random.Random(7).shuffle(shuffled)
    assert counted(final).marker(9) == counted(detours).marker(9) == counted(shuffled).marker(9)


def test_an_older_state_changes_nothing() -> None:
    census = counted([(KEYS[0], 5)])
    before = census.marker(5)
    census.put(KEYS[0], 4)
    assert census.marker(5) == before


def test_a_missing_cell_and_a_missed_update_are_both_seen() -> None:
    whole = counted([(key, 5) for key in KEYS])
    assert whole.marker(5) != counted([(key, 5) for key in KEYS[1:]]).marker(5)
    assert whole.marker(5) != counted([*((key, 5) for key in KEYS[1:]), (KEYS[0], 4)]).marker(5)
