"""What a machine's owner does with it: sleeps, games, unplugged hours, and work at the hours when people work.

Answers "what happens to the machines, hour by hour?". Hour 0 is midnight, but nothing may depend on that: nights exist with the
clock turned by a random number of hours as well.
"""

from __future__ import annotations

import random

from simulation.fleet import instances
from simulation.fleet.physics import FLEETS, MACHINES, Instance, Span, capacity

HOUR = 3600.0
DAY = 24 * HOUR
NIGHT = (22 * HOUR, 31 * HOUR)
"""From ten in the evening to seven."""
HOURLY = (0, 0, 0, 0, 0, 0, 0, 1, 3, 5, 6, 5, 3, 4, 6, 6, 5, 3, 2, 3, 4, 3, 2, 1)
"""How the day's work falls on its hours."""
DAY_LOAD, LIGHT_LOAD = 0.05, 0.01
"""Of what the whole fleet could do in a day with every model in memory: some 1,270 tasks; twice that in the busiest hours."""
GAME, FILM = 0.7, 0.15


def joining(fleet: str, seed: int, *, tasks: int = 100) -> Instance:
    """The laptop has been here for long and has 100 samples; the others come without one, at light load."""
    made = instances.steady(fleet, seed, load=0.2, tasks=tasks)
    return Instance(**{**made.__dict__, "known": 25, "known_on": ("laptop",)})


def nights(seed: int, *, turned: bool) -> Instance:
    """Two days of a fleet in which the desk, new and unmeasured, sleeps nine hours of each; the clock ``turned`` at random."""
    rng = instances.rng_of("nights", seed)
    shift = rng.uniform(0.0, DAY) if turned else 0.0
    spans = [(NIGHT[0] + shift + day * DAY, NIGHT[1] + shift + day * DAY) for day in (-2, -1, 0, 1)]
    naps = tuple(_cut(span, 2 * DAY) for span in spans if span[1] > 0.0 and span[0] < 2 * DAY)
    return instances.timed("F3", seed, _moments(rng, "F3", 2, LIGHT_LOAD), naps={"desk": naps})


def day(seed: int) -> Instance:
    """A day of work, of a machine that sleeps at night and is played on in the evening, of one that is unplugged at noon and
    shows films, and of a silent one."""
    rng = instances.rng_of("day", seed)
    game, film, lunch = rng.uniform(18, 20) * HOUR, rng.uniform(20, 21) * HOUR, rng.uniform(11, 13) * HOUR
    return instances.timed(
        "F3", seed, _moments(rng, "F3", 1, DAY_LOAD),
        naps={"desk": ((0.0, rng.uniform(6.5, 7.5) * HOUR), (23.5 * HOUR, DAY + HOUR)), "laptop": ((0.0, 8 * HOUR),)},
        used={"desk": ((game, game + 2.5 * HOUR, GAME),), "mini": ((film, film + 2 * HOUR, FILM),)},
        unplugged={"mini": ((lunch, lunch + 3 * HOUR),)},
    )  # fmt: skip


def _moments(rng: random.Random, fleet: str, days: int, load: float) -> list[float]:
    """Arrivals of each hour by its share of the day's work."""
    mean_hour = load * capacity(tuple(MACHINES[name] for name in FLEETS[fleet])) * HOUR
    found = list[float]()
    for hour in range(24 * days):
        rate = mean_hour * HOURLY[hour % 24] * 24 / sum(HOURLY)
        at = hour * HOUR
        while rate > 0.0 and (at := at + rng.expovariate(rate) * HOUR) < (hour + 1) * HOUR:
            found.append(at)
    return found


def _cut(span: Span, end: float) -> Span:
    return max(span[0], 0.0), min(span[1], end + HOUR)
