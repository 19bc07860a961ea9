"""What is wrong with an address, or with who stands behind it, is said with the way out and without a password."""

from __future__ import annotations

import pytest

from schemas.errors import BusError
from services.runtime.nats_address import REFUSED, check_address, is_refusal, no_connection, public_url


@pytest.mark.parametrize("url", ["nats://tower:4222", "tls://tower", "tower:4222", "nats://u:p@tower"])
def test_what_leads_to_a_nats_server_passes(url: str) -> None:
    check_address(url)


def test_another_kind_of_address_is_refused_before_it_is_looked_up() -> None:
    with pytest.raises(
        BusError, match=r"http://tower:8420 is no address of a nats-server, such as nats://127\.0\.0\.1:4222"
    ):
        check_address("http://u:p@tower:8420")


def test_a_refusal_says_what_is_wanted_and_silence_what_may_be_missing() -> None:
    refused = no_connection("nats://u:p@tower:4222", 5, RuntimeError("nats: 'Authorization Violation'"))
    assert refused.code == REFUSED
    assert str(refused).startswith("nats://tower:4222 wants a user and a password") and "headrace join" in str(refused)
    silent = no_connection("nats://tower:4222", 5, TimeoutError())
    assert silent.code is None
    assert "within 5 s: nothing there speaks NATS; is nats-server running there? --server names another" in str(silent)


def test_a_refusal_is_told_from_every_other_end() -> None:
    assert is_refusal(RuntimeError("nats: 'Authorization Violation'"))
    assert not any(map(is_refusal, (None, TimeoutError(), ConnectionRefusedError("Connect call failed"))))


def test_a_url_is_shown_without_its_password() -> None:
    assert public_url("nats://u:p@tower:4222") == "nats://tower:4222"
