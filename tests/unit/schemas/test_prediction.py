"""From what is known to seconds, by hand."""

from __future__ import annotations

import pytest

from schemas import events
from schemas.prediction import written_most


@pytest.mark.parametrize(
    ("kind", "asked", "most"), [("chat", None, None), ("chat", 50, 50), ("embedding", None, 0), ("embedding", 50, 0)]
)
def test_only_embeddings_are_never_written(kind: events.Kind, asked: int | None, most: int | None) -> None:
    assert written_most(kind, asked) == most
