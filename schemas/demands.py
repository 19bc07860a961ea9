"""What travels when somebody asks for a suite to be run, the demand and how far its run is; and what is measured unasked.

Answers "what does ``headrace bench`` say to the benchmarker, and what does it hear?", over whichever router is between. Numbers
and words only: no prompt's and no answer's text.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from schemas.work import Wire

RunState = Literal["running", "done", "cancelled"]


class Demand(Wire, frozen=True, kw_only=True):
    """``worker`` is an id. Without a model those that are in memory are run; ``limit`` is of prompts for each
    (model, domain, worker)."""

    model: str | None = None
    worker: str | None = None
    domain: str | None = None
    limit: int | None = None


class RunNamed(Wire, frozen=True, kw_only=True):
    """A run that somebody wants to see, or to end."""

    run: str


class RunRow(Wire, frozen=True, kw_only=True):
    """One (model, domain, worker): ``grade`` is the mean over ``n`` prompts, between ``low`` and ``high`` with 95 % confidence;
    ``ungraded`` were asked and give no grade, for the reason ``why`` (the last). Speed in tokens per second of decoding."""

    model: str
    domain: str
    worker: str
    worker_name: str
    grade: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    total: int = 0
    ungraded: int = 0
    why: str | None = None
    decode: float | None = None


class RunAsked(Wire, frozen=True, kw_only=True):
    """One prompt of a suite that has ended, by its ``task`` (None: it was never asked). ``why`` are the grader's words, or what
    there is no grade for."""

    task: str | None
    model: str
    worker: str
    worker_name: str
    domain: str
    suite: str
    prompt: str
    grade: float | None = None
    why: str = ""


class RunVersus(Wire, frozen=True, kw_only=True):
    """Two models on the same prompts of a domain. ``better`` None: undecided, the interval of the difference holds 0."""

    domain: str
    first: str
    second: str
    better: str | None
    difference: float
    low: float
    high: float
    n: int


class RunShown(Wire, frozen=True, kw_only=True):
    """``eta_s`` None until something has ended. ``judged`` prompts have no check and were not asked: shadow pairs weigh them.
    ``asked`` are prompts that have ended, those without a grade and the worst first, 200 at most."""

    run: str
    state: RunState
    done: int
    total: int
    eta_s: float | None = None
    judged: int = 0
    rows: tuple[RunRow, ...] = ()
    asked: tuple[RunAsked, ...] = ()
    versus: tuple[RunVersus, ...] = ()


class RunReply(Wire, frozen=True, kw_only=True):
    """Either ``shown``, or why not: ``unknown_run``, or the ``field`` of the demand that cannot be met."""

    shown: RunShown | None = None
    code: Literal["unknown_run", "cannot"] | None = None
    message: str = ""
    field: str | None = None


class Owed(Wire, frozen=True, kw_only=True):
    """Something worth measuring. ``why`` it waits, in words; None: it is being measured now. ``gain`` orders them (seconds for
    each real task); ``free`` ones cost no budget."""

    kind: str
    model: str
    worker: str
    domain: str
    reason: str
    gain: float
    free: bool = False
    why: str | None = None


class Measuring(Wire, frozen=True, kw_only=True):
    """What the benchmarker does unasked. ``left_s`` are the seconds that each machine may still be asked for; ``total`` counts
    all that is owed, of which the first are here."""

    on: bool
    total: int = 0
    owed: tuple[Owed, ...] = ()
    left_s: dict[str, float] = msgspec.field(default_factory=dict)
