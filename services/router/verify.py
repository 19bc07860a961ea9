"""Were a task's decisions right, given what was known? Each is computed again from the log and compared.

Answers ``explain --verify``. It reads the log and asks the projector; whether the results are the same is ``differences``' word.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from schemas.events import AnyEvent, TaskReleased, TaskRouted, TaskSubmitted, type_of
from services.router.as_of import as_of
from services.router.differences import differences
from services.router.recompute import routed_again
from services.router.recompute_release import released_again
from services.router.verification import Verification
from services.runtime.bus import Bus

Decided = TaskRouted | TaskReleased


async def verify(bus: Bus, events: Iterable[AnyEvent]) -> list[Verification]:
    """A verdict on each decision among a task's events. Raises HeadraceError where nobody can be asked."""
    known = list(events)
    submitted = next((event for event in known if isinstance(event, TaskSubmitted)), None)
    routed = next((event for event in known if isinstance(event, TaskRouted)), None)
    if submitted is None or routed is None:
        return []
    return [
        await _verdict(bus, submitted, routed, event) for event in known if isinstance(event, TaskRouted | TaskReleased)
    ]


async def _verdict(bus: Bus, submitted: TaskSubmitted, routed: TaskRouted, event: Decided) -> Verification:
    verdict = Verification(
        decision=type_of(event),
        attempt=event.attempt if isinstance(event, TaskReleased) else None,
        position=event.position,
        folded=event.folded,
    )
    if event.folded is None or event.position is None:
        return msgspec.structs.replace(verdict, reason="it was made by a version that did not record enough")
    if not event.exact:
        reason = "the router had only a part of the projector's last batch of statistics then"
        return msgspec.structs.replace(verdict, reason=reason)
    then = await as_of(bus, position=event.position, folded=event.folded)
    again: Decided
    if isinstance(event, TaskReleased):
        again = released_again(submitted, routed, event, then.workers, then.stats)
    else:
        again = routed_again(submitted, event, then.workers, then.stats)
    found = tuple(differences(event, again))
    return msgspec.structs.replace(verdict, same=not found, differences=found)
