"""A changed file comes into force when it is good; what is refused leaves the former value there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from schemas.errors import SettingsError
from services.runtime.watch import Watched
from support.eventually import eventually


def number(content: bytes | None) -> int:
    try:
        return -1 if content is None else int(content)
    except ValueError as error:
        raise SettingsError(f"line 1: {content!r} is no number") from error


def watched(tmp_path: Path, text: str = "1") -> Watched[int]:
    path = tmp_path / "number"
    path.write_text(text)
    return Watched(path, number)


def test_a_change_comes_into_force_once(tmp_path: Path) -> None:
    file = watched(tmp_path)
    assert (file.value, file.look()) == (1, False)
    file.path.write_text("2")
    assert (file.look(), file.value, file.look()) == (True, 2, False)


def test_what_is_refused_is_said_and_the_former_value_stays(tmp_path: Path) -> None:
    file = watched(tmp_path)
    file.path.write_text("two")
    assert (file.look(), file.value, file.problem) == (False, 1, "line 1: b'two' is no number")
    assert (file.look(), file.problem) == (False, "line 1: b'two' is no number")
    file.path.write_text("1")
    assert (file.look(), file.value, file.problem) == (True, 1, None)


def test_a_file_that_goes_away_is_a_change_like_any_other(tmp_path: Path) -> None:
    file = watched(tmp_path)
    file.path.unlink()
    assert (file.look(), file.value) == (True, -1)


def test_a_file_that_cannot_be_read_for_a_while_changes_nothing(tmp_path: Path) -> None:
    file = watched(tmp_path)
    file.path.unlink()
    file.path.mkdir()
    assert (file.look(), file.value) == (False, 1)
    assert file.problem is not None and file.problem.startswith("cannot read ")
    file.path.rmdir()
    file.path.write_text("1")
    file.look()
    assert (file.value, file.problem) == (1, None)


def test_a_program_does_not_start_with_a_file_that_it_cannot_use(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no number"):
        watched(tmp_path, "one")


async def test_each_value_is_handed_over_when_it_comes_into_force(tmp_path: Path) -> None:
    file, seen = watched(tmp_path), list[int]()
    watching = asyncio.create_task(file.run(seen.append))
    file.path.write_text("2")
    await eventually(lambda: seen == [2])
    watching.cancel()
    await asyncio.wait([watching])
