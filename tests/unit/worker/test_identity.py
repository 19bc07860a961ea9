from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import SettingsError
from services.worker.identity import claim_identity


def test_the_id_survives_a_restart_and_differs_between_directories(tmp_path: Path) -> None:
    first = claim_identity(tmp_path / "a")
    first.release()
    again, other = claim_identity(tmp_path / "a"), claim_identity(tmp_path / "b")
    assert first.id == again.id != other.id
    again.release()
    other.release()


def test_two_workers_cannot_share_a_directory(tmp_path: Path) -> None:
    first = claim_identity(tmp_path)
    with pytest.raises(SettingsError, match="another worker is using"):
        claim_identity(tmp_path)
    first.release()


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="cannot write to .*file"):
        claim_identity(tmp_path / "file")
