"""Wrong keys of one address: ten, then one for each six seconds, in bounded memory."""

from __future__ import annotations

import pytest

from services.router.http.tries import ADDRESSES_MAX, BURST, STEP_S, Tries, neighbourhood


def test_ten_wrong_keys_are_within_the_limit_and_then_one_for_each_six_seconds() -> None:
    tries = Tries()
    assert [tries.wait_s("10.0.0.7", 100.0) for _ in range(BURST)] == [0.0] * BURST
    assert tries.wait_s("10.0.0.7", 100.0) == pytest.approx(STEP_S)
    assert tries.wait_s("10.0.0.7", 104.0) == pytest.approx(2.0), "what was refused costs nothing further"
    assert tries.wait_s("10.0.0.7", 106.0) == 0.0
    assert tries.wait_s("10.0.0.7", 106.0) == pytest.approx(STEP_S)
    assert [tries.wait_s("10.0.0.7", 166.0) for _ in range(BURST)] == [0.0] * BURST, "after a minute all is forgiven"


def test_one_address_costs_another_nothing() -> None:
    tries = Tries()
    for _ in range(2 * BURST):
        tries.wait_s("10.0.0.7", 0.0)
    assert tries.wait_s("10.0.0.8", 0.0) == 0.0


def test_however_many_addresses_there_are_the_memory_is_bounded_and_the_latest_are_known() -> None:
    tries = Tries()
    for at in range(ADDRESSES_MAX + 500):
        tries.wait_s(f"10.1.{at >> 8}.{at & 255}", 0.0)
    assert len(tries) == ADDRESSES_MAX
    few = Tries(addresses_max=2)
    for host in ("a", "b", "a", "c"):
        few.wait_s(host, 0.0)
    left = [few.wait_s("a", 0.0) for _ in range(BURST - 1)]
    assert left[-2:] == [0.0, pytest.approx(STEP_S)], "a tried after b, so b was forgotten and a was not"


@pytest.mark.parametrize(
    ("host", "counts_as"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::"),
        ("unknown", "unknown"),
    ],
)
def test_a_house_of_ipv6_counts_as_one(host: str, counts_as: str) -> None:
    assert neighbourhood(host) == counts_as
