"""Why a place in the queue, or the time until a start, got worse: each rise with its own reason.

Answers "why do I wait longer than I was told?" by comparing the queue as it is with the queue as it was last shown. A rise
without a reason does not exist. It predicts nothing: places and seconds are the planner's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from services.router.fleet import Fleet, WorkerView
from services.router.port import Rise, RiseCode, TaskStatus

STEADY_S = 1.0
STEADY_SHARE = 0.1
"""A prediction trembles with each credit; what rises by less is shown as it was, so that a rise means something."""
RENEW_S = 5.0
"""How soon somebody who watches is told the seconds again although nothing happened but time."""
NAMES_MAX = 3


class Scene(NamedTuple):
    """What is shown at one moment: the waiting tasks in order, then the others; and the machines."""

    tasks: tuple[TaskStatus, ...]
    fleet: Fleet


class Rises:
    """Remembers what was shown last, and each waiting task's latest rise of place and of seconds."""

    def __init__(self) -> None:
        self._shown = Scene((), Fleet())
        self._latest: dict[str, dict[str, Rise]] = {}

    def look(self, tasks: tuple[TaskStatus, ...], fleet: Fleet) -> tuple[TaskStatus, ...]:
        """``tasks`` as they are to be shown now."""
        former = {status.task: status for status in self._shown.tasks}
        steadied = tuple(_steady(former.get(status.task), status) for status in tasks)
        scene = Scene(steadied, fleet)
        risen = rises(self._shown, scene)
        waiting = [status.task for status in steadied if status.state == "waiting"]
        present = {status.task: status for status in steadied}
        self._latest = {
            task: {of: rise for of, rise in self._of(task, risen).items() if not _made_good(rise, present[task])}
            for task in waiting
        }
        shown = tuple(
            msgspec.structs.replace(status, rises=tuple(latest[of] for of in sorted(latest)))
            if (latest := self._latest.get(status.task))
            else status
            for status in steadied
        )
        self._shown = Scene(shown, fleet)
        return shown

    def _of(self, task: str, risen: dict[str, tuple[Rise, ...]]) -> dict[str, Rise]:
        return self._latest.get(task, {}) | {rise.of: rise for rise in risen.get(task, ())}


def rises(before: Scene, now: Scene) -> dict[str, tuple[Rise, ...]]:
    """For each task that waited before and waits now: what rose since, and why."""
    former = {status.task: status for status in before.tasks}
    change = _Change(before, now, former)
    found: dict[str, tuple[Rise, ...]] = {}
    for status in now.tasks:
        if status.state != "waiting":
            continue
        was = former.get(status.task)
        if was is None:
            change.joined.append(status)
        elif was.state != "waiting":
            change.returned.append(was)
            found[status.task] = (change.lost(was, status),)
        else:
            found[status.task] = tuple(change.of_place(was, status) + change.of_eta(was, status))
    return {task: risen for task, risen in found.items() if risen}


def is_news(told: TaskStatus, now: TaskStatus, passed_s: float) -> bool:
    """Whether somebody who was ``told`` that, ``passed_s`` ago, should hear of it again."""
    if (told.position, told.rises, _code(told)) != (now.position, now.rises, _code(now)):
        return True
    if (told.eta_s is None) != (now.eta_s is None):
        return True
    if told.eta_s is not None and now.eta_s is not None:
        expected_s = max(0.0, told.eta_s - passed_s)
        if abs(now.eta_s - expected_s) > max(STEADY_S, 2 * STEADY_SHARE * told.eta_s):
            return True
    return passed_s >= RENEW_S and (told.eta_s, told.reason) != (now.eta_s, now.reason)


class _Change:
    """What happened between two scenes; ``joined`` and ``returned`` grow while the present queue is walked, so that they hold
    what stands ahead of the task in question."""

    def __init__(self, before: Scene, now: Scene, former: dict[str, TaskStatus]) -> None:
        present = {status.task: status for status in now.tasks}
        self._fleets = (before.fleet, now.fleet)
        self.joined: list[TaskStatus] = []
        self.returned: list[TaskStatus] = []
        self._all_returned = [
            was
            for task, was in former.items()
            if was.state in ("released", "running") and task in present and present[task].state == "waiting"
        ]
        self._still = [
            status
            for task, status in present.items()
            if status.state == "running" and task in former and former[task].state == "running"
            and former[task].attempt == status.attempt
        ]  # fmt: skip
        known = now.fleet.workers
        self._gone = [w for id_, w in before.fleet.workers.items() if _works(w) and not _works(known.get(id_))]
        self._paused = [w for w in self._gone if (seen := known.get(w.id)) is not None and seen.paused]
        self._gone = [w for w in self._gone if w not in self._paused]

    def lost(self, was: TaskStatus, now: TaskStatus) -> Rise:
        """It had left the queue and is back in it."""
        return Rise(of="position", before=None, after=now.position, code="died", words=self._attempts([was]))

    def of_place(self, was: TaskStatus, now: TaskStatus) -> list[Rise]:
        if was.position is None or now.position is None or now.position <= was.position:
            return []
        code: RiseCode = "died" if self.returned else "joined_ahead"
        words = self._attempts(self.returned) if self.returned else self._joiners(now.position - was.position)
        return [Rise(of="position", before=was.position, after=now.position, code=code, words=words)]

    def of_eta(self, was: TaskStatus, now: TaskStatus) -> list[Rise]:
        """An unknown time is worse than any known one."""
        if was.eta_s is None or (now.eta_s is not None and now.eta_s <= was.eta_s):
            return []
        code, words = self._why_later(was, now)
        return [Rise(of="eta_s", before=was.eta_s, after=now.eta_s, code=code, words=words)]

    def _why_later(self, was: TaskStatus, now: TaskStatus) -> tuple[RiseCode, str]:
        """What concerns this task comes before what concerns others, whose tasks may now want its machine."""
        mine = [w for w in self._gone if now.model is None or now.model in w.models]
        my_paused = [w for w in self._paused if now.model is None or now.model in w.models]
        moved = (now.position or 0) - (was.position or 0)
        if mine:
            return "died", self._machines(mine)
        if self.returned:
            return "died", self._attempts(self.returned)
        if my_paused:
            return "paused", f"{_names(w.name for w in my_paused)} was paused"
        if self.joined or moved > 0:
            return "joined_ahead", self._joiners(max(moved, 1))
        if self._gone or self._all_returned:
            return "died", self._machines(self._gone) if self._gone else self._attempts(self._all_returned)
        if self._paused:
            return "paused", f"{_names(w.name for w in self._paused)} was paused"
        return "slower_than_predicted", self._slow()

    def _attempts(self, lost: list[TaskStatus]) -> str:
        told = _names(f"{status.task} on {self._name(status.worker or status.expected_worker)}" for status in lost)
        return f"an attempt was lost and is made again: {told}"

    def _machines(self, gone: list[WorkerView]) -> str:
        present = self._fleets[1].workers
        return "; ".join(
            f"{w.name} left"
            if w.id not in present
            else f"the model server of {w.name} is down"
            if present[w.id].backend_up is False and present[w.id].alive
            else f"{w.name} is not heard any more"
            for w in gone[:NAMES_MAX]
        )

    def _joiners(self, moved: int) -> str:
        if not self.joined:
            return f"{moved} {'task' if moved == 1 else 'tasks'} that stood behind it now {'goes' if moved == 1 else 'go'} first"
        count = len(self.joined)
        clients = _names(dict.fromkeys(status.client or "an unnamed client" for status in self.joined))
        return f"{count} {'task' if count == 1 else 'tasks'} of {clients} joined ahead"

    def _slow(self) -> str:
        if not self._still:
            return "the predicted times became longer"
        machines = _names(dict.fromkeys(self._name(status.worker) for status in self._still))
        return f"what runs on {machines} takes longer than was predicted"

    def _name(self, worker: str | None) -> str:
        for fleet in reversed(self._fleets):
            if worker in fleet.workers:
                return fleet.workers[worker].name
        return worker or "nobody yet"


def _steady(was: TaskStatus | None, now: TaskStatus) -> TaskStatus:
    if was is None or was.state != "waiting" or now.state != "waiting" or was.eta_s is None or now.eta_s is None:
        return now
    if was.eta_s < now.eta_s <= was.eta_s + max(STEADY_S, STEADY_SHARE * was.eta_s):
        return msgspec.structs.replace(now, eta_s=was.eta_s)
    return now


def _made_good(rise: Rise, now: TaskStatus) -> bool:
    """It is as good by now as it was before, but for what no rise is made of."""
    value = now.position if rise.of == "position" else now.eta_s
    if rise.before is None or value is None:
        return False
    allowed = 0.0 if rise.of == "position" else max(STEADY_S, STEADY_SHARE * rise.before)
    return value <= rise.before + allowed


def _works(worker: WorkerView | None) -> bool:
    return worker is not None and worker.alive and not worker.paused and worker.backend_up is not False


def _code(status: TaskStatus) -> str:
    return (status.reason or "").partition(":")[0]


def _names(names: Iterable[str]) -> str:
    known = list(names)
    more = len(known) - NAMES_MAX
    return ", ".join(known[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")
