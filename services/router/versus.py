"""A decision beside another one, as a value."""

from __future__ import annotations

import msgspec

from schemas.events import TaskRouted


class Versus(msgspec.Struct, frozen=True, kw_only=True):
    """``other`` is what ``what`` says or said, ``asked`` the decision that was asked about; ``label`` says in words what
    ``other`` is, ``words`` compare the two, part by part: from what was to what was asked about, or, with ``what_if``, from
    that to what would be."""

    what: str
    label: str
    what_if: bool = False
    other: TaskRouted
    asked: TaskRouted
    words: tuple[str, ...]

    @property
    def before(self) -> TaskRouted:
        return self.asked if self.what_if else self.other

    @property
    def after(self) -> TaskRouted:
        return self.other if self.what_if else self.asked
