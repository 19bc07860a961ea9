"""What a policy plugin is: a function from a case and its contenders to a vote.

Answers "what may a plugin know, and what must it return?". A plugin looks at values only; it never sees another plugin's vote,
a clock or a text. It gives each contender a score in [0, 1], larger is better, the same whatever the order of the contenders
is, or abstains, and says in words why. What is not known is never good. tests/contract/ holds every plugin to this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from schemas.events import Verdict


class Contender(Protocol):
    """One (model, worker) pair that could take the task: the planner's ``Offer``, or ``Pairing`` on arrival."""

    @property
    def model(self) -> str: ...
    @property
    def worker(self) -> str: ...
    @property
    def wait_s(self) -> float | None: ...
    @property
    def load_s(self) -> float: ...
    @property
    def prefill_s(self) -> float: ...
    @property
    def decode_s(self) -> float: ...
    @property
    def sharing_s(self) -> float: ...
    @property
    def quality(self) -> float: ...
    @property
    def cost_s(self) -> float: ...
    @property
    def fresh(self) -> bool: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def slots(self) -> int: ...


class Pairing(msgspec.Struct, frozen=True, kw_only=True):
    """A contender as a value. ``in_flight`` are the router's own live attempts there, never a worker's word."""

    model: str
    worker: str
    wait_s: float | None = 0.0
    load_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    sharing_s: float = 0.0
    quality: float = 0.0
    cost_s: float = 0.0
    fresh: bool = True
    in_flight: int = 0
    slots: int = 1


class LastServed(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session's last answer was made; ``tokens`` are its prompt and answer, which that worker has read already."""

    model: str
    worker: str
    tokens: int


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """The task, as far as plugins may know it."""

    session: str | None = None
    prompt_tokens: int = 0
    verdict: Verdict | None = None
    last: LastServed | None = None


class Vote(msgspec.Struct, frozen=True):
    """``scores`` in the order of the contenders; None abstains. ``strength`` multiplies the plugin's weight."""

    scores: tuple[float, ...] | None
    words: str
    strength: float = 1.0


class Plugin(msgspec.Struct, frozen=True):
    """``weight`` is what it has in a route that does not say."""

    vote: Callable[[Case, Sequence[Contender]], Vote]
    weight: float = 1.0


def abstain(words: str) -> Vote:
    return Vote(None, words)
