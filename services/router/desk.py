"""The dispatcher's desk: fold, live view, statistics and engine in one place, still without a socket.

Answers "given what came in, what is to be done, and how does it look?". The shell feeds it and executes what it wants; time,
ids and the seed come from there.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import msgspec

from schemas.errors import UnknownModel
from schemas.events import AnyEvent, TaskReleased, TaskRouted
from schemas.statistics import Cell, Statistics
from services.router.dispatch import engine
from services.router.dispatch.actions import Action
from services.router.dispatch.heard import HeardClock
from services.router.dispatch.live import Live, Wait
from services.router.dispatch.permits import Limits
from services.router.dispatch.planner import Plan, plan
from services.router.dispatch.state import RouterState, Task
from services.router.dispatch.turn import Config, Stamp
from services.router.fleet import Fleet
from services.router.policy.decide import Decision, decide, rank_workers, worker_input
from services.router.policy.filters import may_serve
from services.router.policy.request import RouteRequest, request_of
from services.router.view import fleet_of


class Desk:
    """``epoch`` is set by whoever holds the dispatcher's key; while it is not in force nothing is decided."""

    def __init__(self, router: str, *, slider: float, limits: Limits, new_id: Callable[[], str]) -> None:
        self.router, self.slider, self.limits, self.new_id = router, slider, limits, new_id
        self.state = RouterState()
        self.live = Live()
        self.clock = HeardClock()
        self.stats = Statistics()
        self.epoch = -1
        self.unix = 0.0
        self._fleet: tuple[float, Fleet] | None = None
        self._plan: Plan | None = None
        self._unanswerable: dict[str, tuple[int, int]] = {}

    @property
    def now(self) -> float:
        """Heard time, in seconds."""
        return self.clock.seconds

    def fold(self, events: list[tuple[AnyEvent, int, int]]) -> None:
        """(event, sequence, server time in microseconds), in the stream's order."""
        for event, seq, at_us in events:
            self.state.apply(event, seq, at_us)
        self.refresh()

    def passed(self, position: int) -> None:
        """Everything up to ``position`` was read, foldable or not."""
        self.state.position = max(self.state.position, position)
        self.live.folded(self.state.position)

    def elected(self, epoch: int) -> None:
        """The dispatcher's key is ours under ``epoch``; decisions follow once the fold has seen that said."""
        self.epoch = epoch
        self.live.elected()

    def beat(self, monotonic: float, unix: float) -> float:
        """A pulse of ours was heard: time passed, and each waiting task was held meanwhile, for what it is held for now."""
        before, self.unix = self.now, unix
        passed = self.clock.beat(monotonic) - before
        self.refresh()
        if passed and self.state.epoch == self.epoch:
            for task, reason in self.plan().holds.items():
                held, code = self.live.waits.setdefault(task, Wait()).held_s, reason.partition(":")[0]
                held[code] = held.get(code, 0.0) + passed
        return self.now

    def put_cell(self, cell: Cell) -> None:
        self.stats.put(cell)

    def decide(self, unix: float) -> list[Action]:
        """What is to be done now; it counts as being on its way from here on."""
        self.unix = unix
        config = Config(route=self._route, decorate=self._decorate, limits=self.limits, holders=self._holders)
        stamp = Stamp(self.router, unix, self.new_id)
        actions = engine.decide(self.state, self.live, self.now, config, stamp, self.epoch)
        engine.mark_pending(self.live, actions)
        return actions

    def plan(self) -> Plan:
        """The plan of this moment, with every reason; for people, nothing is released."""
        if self._plan is None:
            self._plan = plan(self.state, self.live, self.now, self.limits, holders=self._holders)
        return self._plan

    def fleet(self, unix: float) -> Fleet:
        """The fleet as of now. Made at most once for each moment of heard time and fold."""
        if self._fleet is None or self._fleet[0] != self.now:
            self._fleet = (self.now, fleet_of(self.state, self.live, self.stats, self.now, int(unix * 1e6)))
        return self._fleet[1]

    def refresh(self) -> None:
        """A fact, a credit or a load came, or time passed: the next fleet and plan are new ones."""
        self._fleet = self._plan = None

    def decision(self, request: RouteRequest, task: str, unix: float) -> Decision:
        """The decision on a task now. Raises UnknownModel. The seed is the task's own, so that it can be repeated."""
        seed = zlib.crc32(task.encode())
        return decide(request, self.fleet(unix), self.stats, seed=seed, now_us=int(unix * 1e6), slider=self.slider)

    def routed(self, decision: Decision, task: str, cause: str | None, unix: float) -> TaskRouted:
        return decision.routed(task, id=self.new_id(), at=unix, by=self.router, epoch=max(self.epoch, 0), cause=cause)

    def _route(self, task: Task) -> TaskRouted | None:
        submitted, moment = task.submitted, self._moment()
        if self._unanswerable.get(submitted.task) == moment:
            return None
        try:
            decision = self.decision(request_of(submitted), submitted.task, self.unix)
        except UnknownModel as unknown:  # its last holder left since it was accepted; one may come back
            why = str(unknown)
        else:
            if decision.choice is not None:
                self._unanswerable.pop(submitted.task, None)
                return self.routed(decision, submitted.task, submitted.id, self.unix)
            why = decision.removed[0].reason if decision.removed else "no machine has reported a model"
        self._unanswerable[submitted.task] = moment
        self.live.unanswered[submitted.task] = why
        return None

    def _moment(self) -> tuple[int, int]:
        """A task that nobody could answer is tried again after the next report, and each second; not with every credit."""
        if len(self._unanswerable) > len(self.state.tasks):
            self._unanswerable = {t: m for t, m in self._unanswerable.items() if t in self.state.tasks}
        return max((record.seq for record in self.state.workers.values()), default=0), int(self.now)

    def _holders(self, state: RouterState, model: str, task: Task) -> tuple[str, ...]:
        """Who may serve it by every hard rule of the policy; whether they are free is the planner's question."""
        return may_serve(model, self.fleet(self.unix), request_of(task.submitted))

    def _decorate(self, release: TaskReleased, task: Task) -> TaskReleased:
        """Add what the release expects of its worker, and what it knew."""
        fleet = self.fleet(self.unix)
        view = fleet.workers.get(release.expected_worker or "")
        if view is None:
            return release
        request = request_of(task.submitted)
        ranked = rank_workers(
            release.model, request, fleet, self.stats, seed=0, now_us=int(self.unix * 1e6), slider=self.slider
        )
        found = next((c for c in ranked if c.worker == view.id), None)
        return msgspec.structs.replace(
            release,
            position=self.stats.position,
            inputs=(worker_input(view),),
            predicted=found.predicted if found else release.predicted,
            uncertainty=found.uncertainty if found else None,
            cost_s=found.cost_s if found else None,
        )
