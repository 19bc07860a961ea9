"""One machine as the log has it: its last report, whether it left since, whether somebody took it out.

Answers "what did the log last say of this worker?". It knows nothing of what was only heard (``live``), and reads no clock.
"""

from __future__ import annotations

import msgspec

from schemas.events import WorkerPaused, WorkerReported, WorkerResumed


class WorkerRecord(msgspec.Struct, kw_only=True):
    """``seen_us`` is when its last own fact was stored. ``paused`` without ``paused_until_us`` lasts until it is resumed; a pause
    outlives the worker's restart, its leaving and every new report. ``pause`` is the id of the present one's fact."""

    report: WorkerReported
    seq: int
    seen_us: int = 0
    left: bool = False
    paused: bool = False
    paused_until_us: int | None = None
    pause: str | None = None

    def reported(self, report: WorkerReported, seq: int, at_us: int) -> None:
        self.report, self.seq, self.seen_us, self.left = report, seq, at_us, False

    def went(self, boot: str, at_us: int) -> None:
        """An older boot's goodbye may come after the next one's report, and changes nothing then."""
        if self.report.boot == boot:
            self.left, self.seen_us = True, at_us

    def held(self, event: WorkerPaused | WorkerResumed, at_us: int) -> None:
        """The last word counts: a second pause replaces the first one's end, and is not ended by it: that may be on its way."""
        if isinstance(event, WorkerResumed) and event.cause not in (None, self.pause):
            return
        self.pause = event.id if isinstance(event, WorkerPaused) else None
        self.paused, self.paused_until_us = isinstance(event, WorkerPaused), None
        if isinstance(event, WorkerPaused) and event.for_s is not None:
            self.paused_until_us = at_us + int(event.for_s * 1e6)
