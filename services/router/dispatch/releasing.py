"""To the group or to one lane, and under which permits? (PROTOCOL.md, "Permits" and "How many at once")

Answers "how is this task handed to the machine that the planner wants?". The group serves whoever's standing pull has the best
priority, so a task goes there only where that is the planned machine, or one as good, and where everybody who may pull from it
may serve the task and has a permit of its backend reserved. Else it goes to the planned machine's lane, which is certain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from schemas.events import WorkerInput
from schemas.subjects import ANY_LANE, group_durable, lane_durable
from services.router.dispatch.completion import Machine
from services.router.dispatch.live import ALIVE_S, Live
from services.router.dispatch.offers import Offer
from services.router.dispatch.permits import UNBOUND, Counts
from services.router.dispatch.state import RouterState, Task, served

ABOUT = 0.89
"""Half a step of the pull priorities, of which three double a machine's time: what they cannot tell apart is equal."""

TakesS = Callable[[Task, str, str], float]
"""(task, model, worker) -> seconds from now until that machine would have answered it."""


class Release(msgspec.Struct, frozen=True):
    """One task that may go now. ``lane`` is ``any`` or a worker's id; ``holders`` are all who may serve it; ``reason`` says why
    it is another pair than the first idea, and ``offers`` are all pairs then; ``behind`` counts the tasks waiting behind it;
    ``inputs`` is what the machines looked like."""

    task: str
    attempt: int
    model: str
    reason: str | None
    capability: str
    lane: str
    expected: str
    holders: tuple[str, ...]
    permits: tuple[str, ...]
    offer: Offer
    behind: int = 0
    offers: tuple[Offer, ...] = ()
    inputs: tuple[WorkerInput, ...] = ()


class Refused(msgspec.Struct, frozen=True):
    """Not now: ``code: words``."""

    reason: str


@dataclass
class Releasing:
    state: RouterState
    live: Live
    now: float
    counts: Counts
    machines: dict[str, Machine]
    takes_s: TakesS

    def __post_init__(self) -> None:
        self._pulling: dict[tuple[str, str], tuple[str, ...]] = {}

    def release(self, task: Task, offer: Offer, behind: int, may_serve: tuple[str, ...]) -> Release | Refused:
        """``may_serve``: who may serve the task with this model by every hard rule."""
        submitted, model, expected = task.submitted, offer.model, offer.worker
        capability = self._capability(expected, model)
        alike = tuple(w for w in may_serve if self._capability(w, model) == capability and not self._is_out(w))
        shared = self._permits(model, submitted.client, alike)
        if self._may_take_the_group(task, offer, capability, alike) and self.counts.lacking(shared) is None:
            lane, holders, permits = ANY_LANE, alike, shared
        else:
            lane, holders = expected, (expected,)
            permits = self._permits(model, submitted.client, holders)
            if lane_durable(expected) not in self._armed(expected):
                return Refused(f"busy: the lane of {self.machines[expected].name} is not armed")
            lacking = self.counts.lacking(permits)
            if lacking is not None:
                return Refused(self.counts.full(lacking) or f"busy: {lacking}")
        return Release(
            submitted.task, task.next_attempt, model, None, capability, lane, expected, holders, permits, offer, behind
        )

    def _may_take_the_group(self, task: Task, offer: Offer, capability: str, alike: tuple[str, ...]) -> bool:
        """Never where backends have limits: a release to the group reserves a place at every holder's until one of them has
        started, and a burst over idle machines would leave one by one."""
        durable = group_durable(capability, offer.model)
        everyone = self._pullers(offer.model, capability)
        return (
            task.submitted.wants.worker is None
            and not _was_refused(task)
            and self.counts.limits.backend == UNBOUND
            and set(everyone) <= set(alike)
            and all(self._heard(worker) for worker in everyone)
            and durable in self._armed(offer.worker)
            and self._is_first_in_line(task, offer, durable, everyone)
        )

    def _is_first_in_line(self, task: Task, offer: Offer, durable: str, everyone: tuple[str, ...]) -> bool:
        """Whether the group would give it to the planned machine, or to one whose pull says that it is as good, and is right."""
        expected = offer.worker
        armed = {
            w: self._armed(w)[durable] for w in everyone if self.machines[w].free > 0 and durable in self._armed(w)
        }
        if not armed or armed.get(expected) != min(armed.values()):
            return False
        equals = [w for w, priority in armed.items() if priority == armed[expected] and w != expected]
        return all(self._is_as_good(task, offer, w) for w in equals)

    def _is_as_good(self, task: Task, offer: Offer, other: str) -> bool:
        """Of two pulls of one priority. A machine of several slots has as many pulls, and the server serves all of one machine's
        before another's. And a pull's priority is of the moment when it was armed and of a usual task: it does not know who uses
        the machine now, which model was loaded or pushed out since, or that a short answer is not worth a load."""
        alone = self.machines[offer.worker].slots == self.machines[other].slots == 1
        return alone and ABOUT * self.takes_s(task, offer.model, other) <= offer.parts.total_s

    def _pullers(self, model: str, capability: str) -> tuple[str, ...]:
        """Everybody whose pull may stand in the group: heard within its expiry, or not yet, so soon after our start."""
        found = self._pulling.get((model, capability))
        if found is None:
            found = self._pulling[model, capability] = tuple(
                worker
                for worker, record in sorted(self.state.workers.items())
                if not record.left
                and any(m.name == model and m.capability == capability for m in served(record.report))
                and self.now - self._heard_at(worker) <= ALIVE_S
            )
        return found

    def _is_out(self, worker: str) -> bool:
        """Taken out by somebody: its pull may stand for a moment yet."""
        return self.state.workers[worker].paused

    def _permits(self, model: str, client: str, holders: tuple[str, ...]) -> tuple[str, ...]:
        """Of the model, the client and each holder's backend; a backend that somebody else limits takes the first two only."""
        own = [w for w in holders if self.state.workers[w].report.local]
        return tuple(
            dict.fromkeys((f"model:{model}", f"client:{client}", *(self.state.backend_permit(w) for w in own)))
        )

    def _heard_at(self, worker: str) -> float:
        """Heard time starts at 0 with the router, and so does everybody's silence."""
        heard = self.live.workers.get(worker)
        return heard.heard_at if heard is not None else 0.0

    def _heard(self, worker: str) -> bool:
        heard = self.live.workers.get(worker)
        return heard is not None and not heard.suspect and self.now - heard.heard_at <= ALIVE_S

    def _armed(self, worker: str) -> dict[str, int]:
        heard = self.live.workers.get(worker)
        return heard.credit.armed if heard is not None and heard.credit is not None else {}

    def _capability(self, worker: str, model: str) -> str:
        models = self.state.workers[worker].report.models
        return next((m.capability for m in models if m.name == model), "cpu_inference")


def _was_refused(task: Task) -> bool:
    """Somebody pulls from the group who must not have it (his report is late or lost): a lane reaches who may."""
    return bool(task.attempts) and task.attempts[max(task.attempts)].failure == "refused"
