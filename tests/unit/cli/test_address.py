from __future__ import annotations

import pytest

from services.cli.address import base_url, bearer
from services.cli.exits import CommandFailed, Exit


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        (" 127.0.0.1:8420", "http://127.0.0.1:8420"),
        (" https://router.example/headrace/ ", "https://router.example/headrace"),
        ("[::1]:8420", "http://[::1]:8420"),
    ],
)
def test_what_people_type_is_an_address(typed: str, url: str) -> None:
    assert base_url(typed, "x") == url


@pytest.mark.parametrize("typed", ["", "http://", "http://[::1", "http://host:99999", "ftp://host", "http://ho st:x"])
def test_what_is_none_is_said_to_be_none(typed: str) -> None:
    with pytest.raises(CommandFailed, match="is no address") as failed:
        base_url(typed, "http://127.0.0.1:8420")
    assert failed.value.code == Exit.USAGE


def test_a_key_that_can_be_none_is_never_shown() -> None:
    assert bearer(" secret\n", "HEADRACE_KEY") == {"authorization": "Bearer secret"}
    assert bearer("", "HEADRACE_KEY") == {}
    for key in ("geheim\nnis", "schlüssel"):
        with pytest.raises(CommandFailed, match="HEADRACE_KEY holds characters") as failed:
            bearer(key, "HEADRACE_KEY")
        assert key[:6] not in str(failed.value)
