"""Whether a decision is the same when computed again, as a value and in words."""

from __future__ import annotations

import msgspec

from services.router.differences import Difference


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """Of one decision. ``same`` None: it cannot be computed again, for ``reason``. ``position`` and ``folded`` are how far the
    statistics and the rest of the log were read for it."""

    decision: str
    attempt: int | None = None
    same: bool | None = None
    position: int | None = None
    folded: int | None = None
    differences: tuple[Difference, ...] = ()
    reason: str | None = None

    @property
    def words(self) -> str:
        """One sentence, and one for each difference."""
        what = "The decision" if self.attempt is None else f"The release of attempt {self.attempt}"
        if self.same is None:
            return f"{what} cannot be computed again: {self.reason}."
        if self.same:
            return f"{what} was computed again from the log up to {self.folded}, and is the same to the last bit."
        told = "; ".join(difference.words for difference in self.differences[:3])
        more = f"; and {len(self.differences) - 3} more" if len(self.differences) > 3 else ""
        return f"{what} comes out otherwise when computed again: {told}{more}."
