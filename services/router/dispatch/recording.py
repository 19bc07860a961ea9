"""What a release keeps of the moment at which it was decided: the machines, and every pair where it was no first idea.

Answers "what did it know, and why is it not what was said at first?" for the log, so that it can be computed again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from schemas.events import Choice
from services.router.dispatch.completion import Machine, worker_input
from services.router.dispatch.holds import changed_mind
from services.router.dispatch.offers import Offer
from services.router.dispatch.releasing import Release

RECORDED_MOST = 32
"""Machines and pairs: 32 with all their parts are about 25 KiB of the 64 that an event may have."""
TOLD_S = 0.1
"""Between equal machines the choice changes all the time; all pairs are recorded only where it means so much."""


def recorded(
    release: Release, first: Choice | None, offers: Sequence[Offer], machines: Mapping[str, Machine]
) -> Release:
    """``release`` with what the machines looked like; and, where it is not the ``first`` idea, with all pairs and why."""
    others = sorted({o.worker for o in offers} - {release.expected})
    inputs = tuple(worker_input(machines[w]) for w in sorted([release.expected, *others[: RECORDED_MOST - 1]]))
    names = {worker: machine.name for worker, machine in machines.items()}
    reason = changed_mind(release.offer, first, offers, names)
    mine, idea = (release.model, release.expected), first and (first.model, first.worker)
    as_good = any((o.model, o.worker) == idea and abs(o.cost_s - release.offer.cost_s) < TOLD_S for o in offers)
    if reason is None or as_good:
        return msgspec.structs.replace(release, inputs=inputs, reason=reason)
    told = sorted(offers, key=lambda o: ((o.model, o.worker) not in (mine, idea), not o.fresh, o.cost_s))
    return msgspec.structs.replace(release, inputs=inputs, reason=reason, offers=tuple(told[:RECORDED_MOST]))
