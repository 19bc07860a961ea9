"""When would this task be done there? The predicted completion of ROUTING.md B3.4, over machines as one pass sees them.

Answers "how long until the answer is whole, part by part?" for a (task, model, machine), and keeps the machines up to date while
a pass places tasks on them. Nothing here decides; nothing is added for uncertainty, and the delay that a task causes to others on
its machine is never part of its own completion (it cost 18 to 38 % in simulation).
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.events import WorkerInput
from schemas.prediction import factor

LEAST_LEFT_S = 0.1
LEAST_LEFT_SHARE = 0.15
"""An attempt that has outlived its prediction is expected to need 15 % of what it took so far, and at least 0.1 s."""


class Speed(NamedTuple):
    """What to expect of a model on a machine for a domain: plain numbers out of ``schemas.prediction.Effective``.

    ``prefill`` and ``decode`` are tokens/s of a single stream on the free machine, ``load_s`` seconds, ``output`` tokens,
    ``quality`` in [0, 1]; ``slowdown`` is β, ``others_weight`` γ, ``use_known`` the share of the
    samples that say what others used; ``size`` the model's bytes, None where nobody knows.
    """

    load_s: float
    prefill: float
    decode: float
    output: float
    quality: float
    slowdown: float
    others_weight: float
    use_known: float
    size: int | None = None


class Parts(NamedTuple):
    """Predicted seconds; their sum is the completion."""

    wait_s: float
    load_s: float
    prefill_s: float
    decode_s: float
    sharing_s: float

    @property
    def total_s(self) -> float:
        return self.wait_s + self.load_s + self.prefill_s + self.decode_s + self.sharing_s


@dataclass(slots=True)
class Machine:
    """A worker as one pass sees it. ``ends`` are the predicted seconds until each attempt there ends, shortest first, those that
    the pass has placed included; ``free`` its credits not yet spent; ``loaded`` the models in memory, the longest unused first;
    ``room`` the most (bytes, models) ever seen loaded there together; ``heard`` whether it may be released to at all; ``left``
    the seconds that each attempt of the log's has left."""

    worker: str
    name: str
    slots: int
    free: int = 0
    ends: list[float] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    resident_known: bool = False
    others_use: float | None = None
    others_reason: str | None = None
    credit_age_s: float | None = None
    heard: bool = True
    fresh: bool = True
    paused: bool = False
    room: tuple[int, int] = (0, 1)
    running: int = 0
    wait_s: float = 0.0
    left: dict[tuple[str, int], float] = field(default_factory=dict)

    def busy_until(self, ends: list[float]) -> None:
        """``ends`` in order; ``wait_s`` is when a slot is free."""
        self.ends = ends
        full = len(ends) - self.slots
        self.wait_s = ends[full] if full >= 0 else 0.0

    def promise(self, model: str, service_s: float) -> None:
        """A release that is on its way there, which no fold shows yet."""
        self.free = max(0, self.free - 1)
        wait = self.wait_s
        self.busy_until(sorted([*self.ends, wait + service_s]))
        if model not in self.loaded:
            self.loaded.append(model)

    def place(self, model: str, parts: Parts, beta: float, sizes: dict[str, int | None]) -> None:
        """Put an attempt behind all that is there: its end joins the others, which move by what it takes from them."""
        rest = running_then(self.ends, self.slots)
        wait = parts.wait_s
        if beta and parts.decode_s and rest:
            together = 1.0 + beta * (len(rest) - 1)
            rest = [end + beta * min(end / together, parts.decode_s) for end in rest]
        ends = sorted(wait + end for end in rest)
        insort(ends, parts.total_s)
        self.busy_until(ends)
        self._load(model, sizes)

    def _load(self, model: str, sizes: dict[str, int | None]) -> None:
        if model in self.loaded:
            self.loaded.remove(model)
        self.loaded.append(model)
        self.keep_what_fits(sizes)

    def keep_what_fits(self, sizes: dict[str, int | None]) -> None:
        """Forget the longest unused models until the rest is no more than was ever seen loaded together."""
        while len(self.loaded) > 1 and not self._fits(sizes):
            self.loaded.pop(0)

    def _fits(self, sizes: dict[str, int | None]) -> bool:
        known = [sizes.get(model) for model in self.loaded]
        if any(size is None for size in known):
            return len(self.loaded) <= self.room[1]
        return sum(size for size in known if size is not None) <= self.room[0] or len(self.loaded) == 1


def running_then(ends: list[float], slots: int) -> list[float]:
    """What the attempts that still run when a slot is free have left at that moment."""
    full = len(ends) - slots
    if full < 0:
        return ends
    wait = ends[full]
    return [end - wait for end in ends[full + 1 :]]


def parts_of(speed: Speed, machine: Machine, model: str, prompt_tokens: int, max_tokens: int | None) -> Parts:
    """C(t, w) taken apart. With n < k slots busy: X = β · Σ min(rem / f(n), D), f(n) = 1 + β(n - 1); a full machine's slot is
    free at its earliest end, and the rest is as it will be then."""
    share = factor(machine.others_use, speed.others_weight, speed.use_known)
    output = speed.output if max_tokens is None or max_tokens > speed.output else float(max_tokens)
    decode_s = output / (speed.decode * share)
    load_s = 0.0 if model in machine.loaded else speed.load_s
    sharing_s, beta = 0.0, speed.slowdown
    if machine.slots > 1 and beta and decode_s and machine.ends:
        rest = running_then(machine.ends, machine.slots)
        if rest:
            together = 1.0 + beta * (len(rest) - 1)
            sharing_s = beta * sum([min(end / together, decode_s) for end in rest])
    return Parts(machine.wait_s, load_s, prompt_tokens / (speed.prefill * share), decode_s, sharing_s)


def service_s(speed: Speed, machine: Machine, prompt_tokens: int, max_tokens: int | None = None) -> float:
    """S(m, w): what a task with that prompt takes there when nothing else is, the model loaded."""
    share = factor(machine.others_use, speed.others_weight, speed.use_known)
    output = speed.output if max_tokens is None or max_tokens > speed.output else float(max_tokens)
    return prompt_tokens / (speed.prefill * share) + output / (speed.decode * share)


def left_s(predicted_s: float, elapsed_s: float) -> float:
    """What an attempt has left: max(pred - elapsed, 0.15 · elapsed, 0.1 s) (ROUTING.md B3.4)."""
    return max(predicted_s - elapsed_s, LEAST_LEFT_SHARE * elapsed_s, LEAST_LEFT_S)


def worker_input(machine: Machine) -> WorkerInput:
    """What a decision knew about a machine, as the log keeps it; ``machine_of`` reads it back."""
    return WorkerInput(
        worker=machine.worker,
        free=machine.free,
        slots=machine.slots,
        running=machine.running,
        waiting_s=machine.wait_s,
        others_use=machine.others_use,
        others_reason=machine.others_reason,
        resident=tuple(machine.loaded) if machine.resident_known or machine.loaded else None,
        credit_age_s=machine.credit_age_s,
        remaining_s=tuple(machine.ends),
        paused=machine.paused,
        alive=machine.heard,
        fresh=machine.fresh,
    )


def machine_of(given: WorkerInput) -> Machine:
    """The machine that a recorded decision saw, for computing it again."""
    machine = Machine(
        worker=given.worker,
        name=given.worker,
        slots=given.slots or 1,
        free=given.free or 0,
        loaded=list(given.resident or ()),
        resident_known=given.resident is not None,
        others_use=given.others_use,
        others_reason=given.others_reason,
        credit_age_s=given.credit_age_s,
        paused=given.paused,
        heard=given.alive,
        fresh=given.fresh,
        running=given.running or 0,
    )
    machine.busy_until(list(given.remaining_s or ()))
    return machine
