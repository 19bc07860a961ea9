"""Seeded work for a fleet: steady and bursty arrivals, cold bursts, sleep, drift, cold starts, serial machines in a closed loop.

Answers "what happens to whom, before any policy has a say?". One seed is one instance.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

from simulation.fleet.physics import (
    DOMAINS,
    FLEETS,
    MACHINES,
    MODELS,
    SPREAD,
    Domain,
    Instance,
    Job,
    Machine,
    capacity,
)

PROMPT_SIGMA, OUTPUT_SIGMA = 0.6, 0.7
SESSIONS = 12
BURST = 12
"""Tasks of one burst of the bursty traffic: they come together, and the gaps between bursts make up for it."""


def steady(fleet: str, seed: int, *, load: float, tasks: int = 400, open_models: bool = False) -> Instance:
    """Poisson arrivals at ``load`` times the fleet's pooled warm capacity."""
    rng, machines = _begin(fleet, seed, "steady")
    rate = load * capacity(machines)
    at, moments = 0.0, []
    for _ in range(tasks):
        at += rng.expovariate(rate)
        moments.append(at)
    return _instance(seed, rng, machines, moments, open_models)


def bursty(fleet: str, seed: int, *, load: float = 0.4, tasks: int = 400, open_models: bool = False) -> Instance:
    """The same mean load in bursts of about a dozen tasks that come within seconds."""
    rng, machines = _begin(fleet, seed, "bursty")
    rate = load * capacity(machines)
    at, moments = 0.0, list[float]()
    while len(moments) < tasks:
        at += rng.expovariate(rate / BURST)
        size = min(max(1, round(rng.expovariate(1.0 / BURST))), tasks - len(moments))
        moments += sorted(at + rng.random() * 2.0 for _ in range(size))
    return _instance(seed, rng, machines, sorted(moments), open_models)


def burst(fleet: str, seed: int, *, tasks: int = 20, chat_only: bool = False, open_models: bool = False) -> Instance:
    """All at once onto cold machines of which nothing is known."""
    rng, machines = _begin(fleet, seed, "burst")
    domains = DOMAINS[:1] if chat_only else DOMAINS
    return _instance(seed, rng, machines, [0.001 * n for n in range(tasks)], open_models, domains=domains)


def sleeping(fleet: str, seed: int, *, load: float = 0.4, tasks: int = 400) -> Instance:
    """The fast machine vanishes for half an hour, most likely in the middle of a run."""
    made = steady(fleet, seed, load=load, tasks=tasks)
    gone = made.jobs[len(made.jobs) // 3].at + 2.0
    return _with(made, away={"desk": (gone, gone + 1800.0)})


def drift(fleet: str, seed: int, *, load: float = 0.4, tasks: int = 400) -> Instance:
    """The fast machine is throttled to a quarter from the middle on."""
    made = steady(fleet, seed, load=load, tasks=tasks)
    return _with(made, throttled={"desk": (made.jobs[len(made.jobs) // 2].at, 4.0)})


def closed_loop(machines_s: Iterable[float], seed: int, *, tasks: int, concurrency: int, warmup: int = 0) -> Instance:
    """Serial machines that take a fixed time for everything; the first ``warmup`` tasks run before the clock does."""
    machines = tuple(
        Machine(f"m{n}", 1.0, 1.0, 1.0, 100.0, reports=True, fixed_s=s) for n, s in enumerate(machines_s, 1)
    )
    jobs = tuple(
        Job(f"t{n}", 0.0, "chat", "chat-8b", 10, 10, noise={m.name: 1.0 for m in machines})
        for n in range(tasks + warmup)
    )
    return Instance(seed, machines, jobs, concurrency=concurrency, warmup=warmup, warm=True)


def random_work(fleet: str, seed: int, *, tasks: int, load: float) -> Instance:
    """Poisson arrivals of several clients and classes; the random limits belong to whoever checks them."""
    rng, machines = _begin(fleet, seed, "random")
    rate = load * capacity(machines)
    at, moments = 0.0, []
    for _ in range(tasks):
        at += rng.expovariate(rate)
        moments.append(at)
    return _instance(seed, rng, machines, moments, False, clients=4, classes=True)


def timed(fleet: str, seed: int, moments: list[float], **changes: object) -> Instance:
    """Tasks at ``moments`` and whatever else happens to the machines meanwhile."""
    rng, machines = _begin(fleet, seed, "timed")
    return _with(_instance(seed, rng, machines, moments, False), **changes)


def rng_of(kind: str, seed: int) -> random.Random:
    """Chance of its own for everything that has a name."""
    return random.Random(f"{kind}.{seed}")


def _begin(fleet: str, seed: int, kind: str) -> tuple[random.Random, tuple[Machine, ...]]:
    return rng_of(f"{kind}.{fleet}", seed), tuple(MACHINES[name] for name in FLEETS[fleet])


def _instance(
    seed: int,
    rng: random.Random,
    machines: tuple[Machine, ...],
    moments: list[float],
    open_models: bool,
    *,
    domains: tuple[Domain, ...] = DOMAINS,
    clients: int = 1,
    classes: bool = False,
) -> Instance:
    rates = {(model, m.name): rng.lognormvariate(0.0, SPREAD) for model in MODELS for m in machines}
    jobs = tuple(_job(rng, n, at, machines, open_models, domains, clients, classes) for n, at in enumerate(moments))
    return Instance(seed, machines, jobs, rates, judged=12 if open_models else 0)


def _job(
    rng: random.Random,
    n: int,
    at: float,
    machines: tuple[Machine, ...],
    open_models: bool,
    domains: tuple[Domain, ...],
    clients: int,
    classes: bool,
) -> Job:
    domain = rng.choices(domains, [d.share for d in domains])[0]
    luck = rng.random()
    return Job(
        id=f"t{n:05}", at=at, domain=domain.label, model=None if open_models else domain.model,
        prompt=_length(rng, domain.prompt, PROMPT_SIGMA), output=_length(rng, domain.output, OUTPUT_SIGMA),
        session=f"s{rng.randrange(SESSIONS)}", client=f"c{rng.randrange(clients)}",
        urgency="interactive" if not classes or luck < 0.7 else "batch" if luck < 0.9 else "background",
        noise={m.name: rng.lognormvariate(0.0, SPREAD) for m in machines},
    )  # fmt: skip


def _length(rng: random.Random, mean: float, sigma: float) -> int:
    return max(1, round(rng.lognormvariate(math.log(mean) - sigma**2 / 2, sigma)))


def _with(made: Instance, **changes: object) -> Instance:
    return Instance(**{**made.__dict__, **changes})
