"""What machines and models are, and how long a piece of work really takes where (ROUTING.md B2).

Answers "what is true?". Nothing here knows a policy. Rates follow the size law (tokens/s fall with the gigabytes of the model)
but for one lognormal factor for each (model, machine) and one for each run; everything random was drawn before the first task
arrives, so that every policy meets the same luck.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SPREAD = 0.12
"""Sigma of the lognormal factors: of a (model, machine) pair's rate, and of each run."""
REFERENCE_GB = 4.7
"""The 8B model that the machines' rates are given for."""
LOAD_FLOOR_S = 1.0
OTHERS_LEAVE = 0.25
"""Whatever others do, so much of a machine is left."""
Span = tuple[float, float]


@dataclass(frozen=True)
class Machine:
    """``decode`` and ``prefill`` are tokens/s of the 8B model, ``disk`` GB/s, ``vram`` GB. ``fixed_s``: every run takes that."""

    name: str
    decode: float
    prefill: float
    disk: float
    vram: float
    reports: bool = True
    fixed_s: float | None = None


MACHINES = {
    m.name: m
    for m in (
        Machine("desk", 73.0, 2500.0, 2.0, 16.0),
        Machine("desk2", 60.0, 2000.0, 1.5, 12.0),
        Machine("oldgpu", 40.0, 1200.0, 0.8, 10.0),
        Machine("mini", 25.0, 500.0, 2.5, 16.0),
        Machine("cpu", 12.0, 90.0, 1.0, 32.0),
        Machine("laptop", 10.0, 250.0, 0.5, 10.0, reports=False),
    )
}
FLEETS = {
    "F2": ("laptop", "desk"),
    "F3": ("laptop", "desk", "mini"),
    "F6": ("laptop", "desk", "mini", "desk2", "oldgpu", "cpu"),
}
MODELS = {"small-3b": 2.0, "chat-8b": 4.7, "code-8b": 5.0, "large-14b": 9.0}
"""Gigabytes, on disk and in memory."""


@dataclass(frozen=True)
class Domain:
    """A kind of work: its share of the tasks, the model that it is sent to, and the means of its lognormal lengths in tokens."""

    label: str
    share: float
    model: str
    prompt: float
    output: float


DOMAINS = (
    Domain("chat", 0.45, "chat-8b", 150.0, 220.0),
    Domain("code", 0.25, "code-8b", 600.0, 450.0),
    Domain("summarise", 0.20, "small-3b", 1500.0, 160.0),
    Domain("maths", 0.10, "large-14b", 120.0, 600.0),
)

QUALITY = {
    "small-3b": {"chat": 0.62, "code": 0.42, "summarise": 0.66, "maths": 0.35},
    "chat-8b": {"chat": 0.74, "code": 0.58, "summarise": 0.72, "maths": 0.52},
    "code-8b": {"chat": 0.66, "code": 0.72, "summarise": 0.66, "maths": 0.58},
    "large-14b": {"chat": 0.80, "code": 0.75, "summarise": 0.76, "maths": 0.72},
}
"""What an answer is worth in [0, 1], for tasks that may take any model. An assumption: bigger is better, code knows code."""


@dataclass(frozen=True)
class Job:
    """One task as it really is. ``model`` None: any model will do. ``noise`` is one factor for each machine."""

    id: str
    at: float
    domain: str
    model: str | None
    prompt: int
    output: int
    session: str = "s0"
    client: str = "c0"
    urgency: str = "interactive"
    noise: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Instance:
    """A fleet and its work. ``rates``: (model, machine) -> its factor on the size law. ``away``: machine -> when it vanishes
    and when it comes back. ``throttled``: machine -> (from when, its rates are divided by). ``concurrency``: so many tasks are
    under way at any time, and ``at`` means nothing. ``warm``: models are where they are asked for; nothing is ever loaded.
    ``judged``: answers judged before for each model and domain; ``known``: runs measured before for each, on ``known_on``.

    A day has more: ``naps`` are the spans in which a machine is asleep, ``used`` those in which somebody else uses a share of
    it, ``unplugged`` those on battery."""

    seed: int
    machines: tuple[Machine, ...]
    jobs: tuple[Job, ...]
    rates: dict[tuple[str, str], float] = field(default_factory=dict)
    away: dict[str, tuple[float, float]] = field(default_factory=dict)
    throttled: dict[str, tuple[float, float]] = field(default_factory=dict)
    concurrency: int | None = None
    warmup: int = 0
    warm: bool = False
    judged: int = 0
    known: int = 0
    known_on: tuple[str, ...] | None = None
    naps: dict[str, tuple[Span, ...]] = field(default_factory=dict)
    used: dict[str, tuple[tuple[float, float, float], ...]] = field(default_factory=dict)
    unplugged: dict[str, tuple[Span, ...]] = field(default_factory=dict)

    def models_of(self, machine: Machine) -> tuple[str, ...]:
        """What is installed there: whatever fits its memory."""
        return tuple(model for model, gb in MODELS.items() if gb <= machine.vram)

    def run_s(self, job: Job, model: str, machine: Machine, at: float) -> tuple[float, float]:
        """(prefill, decode) in seconds of the loaded model, begun at ``at``."""
        if machine.fixed_s is not None:
            return 0.0, machine.fixed_s
        slower = MODELS[model] / REFERENCE_GB * self.rates.get((model, machine.name), 1.0) * job.noise[machine.name]
        if machine.name in self.throttled and at >= self.throttled[machine.name][0]:
            slower *= self.throttled[machine.name][1]
        slower /= max(1.0 - self.others_use(machine.name, at), OTHERS_LEAVE)
        return job.prompt / machine.prefill * slower, job.output / machine.decode * slower

    def load_s(self, model: str, machine: Machine) -> float:
        return 0.0 if self.warm else MODELS[model] / machine.disk + LOAD_FLOOR_S

    def others_use(self, machine: str, at: float) -> float:
        return max((use for since, until, use in self.used.get(machine, ()) if since <= at < until), default=0.0)

    def on_battery(self, machine: str, at: float) -> bool:
        return any(since <= at < until for since, until in self.unplugged.get(machine, ()))

    def is_away(self, machine: str, at: float) -> bool:
        gone, back = self.away.get(machine, (0.0, 0.0))
        return gone <= at < back


@dataclass
class Memory:
    """A machine's video memory: the models in it, the least recently used first."""

    vram: float
    resident: list[str] = field(default_factory=list)

    def touch(self, model: str) -> bool:
        """Use ``model``, loading it where it is not there; whether it was there already."""
        was_there = model in self.resident
        if was_there:
            self.resident.remove(model)
        while self.resident and sum(MODELS[m] for m in self.resident) + MODELS[model] > self.vram:
            del self.resident[0]
        self.resident.append(model)
        return was_there

    def copy(self) -> Memory:
        return Memory(self.vram, list(self.resident))


def mean_service_s(machine: Machine) -> float:
    """Seconds of a mean task there with its model loaded: what a machine's capacity is the inverse of."""
    if machine.fixed_s is not None:
        return machine.fixed_s
    return sum(
        d.share * MODELS[d.model] / REFERENCE_GB * (d.prompt / machine.prefill + d.output / machine.decode)
        for d in DOMAINS
    )


def capacity(machines: tuple[Machine, ...]) -> float:
    """Mean tasks per second of the whole fleet, warm."""
    return sum(1.0 / mean_service_s(machine) for machine in machines)
