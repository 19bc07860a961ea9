"""The end of a machine's pause, when it was taken out for a time.

Answers "whose pause is over?". A pause ends as a fact, so that every router and every page learns of it from the log.
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas.events import WorkerResumed
from schemas.subjects import resume_id
from services.router.dispatch.actions import Publish
from services.router.dispatch.turn import Turn


def resumes(turn: Turn) -> Iterator[Publish]:
    """``paused_until_us`` is the server's clock plus a duration, ``stamp.at`` ours: a skew of seconds does not matter here."""
    for worker, record in turn.state.workers.items():
        until_us = record.paused_until_us
        if record.paused and until_us is not None and turn.stamp.at * 1e6 >= until_us:
            stamp = turn.stamp
            over = WorkerResumed(
                id=stamp.new_id(),
                at=stamp.at,
                by=stamp.by,
                cause=record.pause,
                worker=worker,
                reason="its pause is over",
            )
            yield Publish(over, resume_id(worker, until_us))
