"""The line that joins: read back as it was said, put right where it was mistyped, kept for its owner alone."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from services.cli.exits import CommandFailed, Exit
from services.cli.join_code import JoinCode, address_here, fleet_secret, joined_before, parse_code, remember


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("s3-cret@192.168.1.20:4222", JoinCode("s3-cret", "192.168.1.20", 4222)),
        (" s@tower:24222\n", JoinCode("s", "tower", 24222)),
        ("s@tower", JoinCode("s", "tower", 4222)),
        ("s@[fd00::5]:4222", JoinCode("s", "fd00::5", 4222)),
    ],
)
def test_a_code_is_a_secret_and_where_it_is_good_for(text: str, code: JoinCode) -> None:
    assert parse_code(text) == code
    assert parse_code(str(code)) == code


@pytest.mark.parametrize(
    "text",
    ["", "nosuch", "@tower:4222", "s3cret@", "s3cret@tower:port", "s3cret@tower:99999", "s3cret@http://tower:4222/"],
)
def test_what_is_no_code_is_said_with_its_form_and_where_it_comes_from_and_without_the_secret(text: str) -> None:
    with pytest.raises(CommandFailed, match="is no join code") as refused:
        parse_code(text)
    assert refused.value.code == Exit.USAGE
    assert "SECRET@HOST:PORT" in str(refused.value.hint) and "headrace up --lan" in str(refused.value.hint)
    assert "s3cret" not in str(refused.value)


def test_a_fleet_keeps_its_secret_until_somebody_deletes_it(tmp_path: Path) -> None:
    first = fleet_secret(tmp_path / "data")
    assert fleet_secret(tmp_path / "data") == first and len(first) >= 32
    (file,) = (tmp_path / "data").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.unlink()
    assert fleet_secret(tmp_path / "data") != first


def test_by_what_a_machine_joined_is_remembered_for_the_next_time(tmp_path: Path) -> None:
    assert joined_before(tmp_path / "data") is None
    for host in ("tower", "fd00::5"):
        remember(tmp_path / "data", JoinCode("s", host))
        assert joined_before(tmp_path / "data") == JoinCode("s", host)
    (file,) = (tmp_path / "data").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_place_that_keeps_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CommandFailed, match=r"cannot write .*file/joined: ") as refused:
        remember(tmp_path / "file", JoinCode("s", "tower"))
    assert "--data" in str(refused.value.hint)


def test_this_machine_has_an_address_for_others() -> None:
    assert address_here() not in ("", "127.0.0.1", "0.0.0.0")
