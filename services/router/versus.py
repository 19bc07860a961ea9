"""A decision beside another one, as a value."""

from __future__ import annotations

import msgspec

from schemas.events import TaskRouted


class Versus(msgspec.Struct, frozen=True, kw_only=True):
    """``before`` is what ``what`` says or said, ``after`` the decision that was asked about; ``label`` says in words what
    ``before`` is, ``words`` compare the two, part by part."""

    what: str
    label: str
    before: TaskRouted
    after: TaskRouted
    words: tuple[str, ...]
