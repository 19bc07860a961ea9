"""The dispatcher's desk: fold, live view, statistics and engine in one place, still without a socket.

Answers "given what came in, what is to be done, and how does it look?". The shell feeds it and executes what it wants; time,
ids and the seed come from there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

import msgspec

from schemas.errors import UnknownModel
from schemas.events import AnyEvent, TaskReleased, TaskRouted
from schemas.statistics import Cell, Statistics
from services.router.cells import Cells
from services.router.dispatch import absent, engine
from services.router.dispatch.actions import Action
from services.router.dispatch.heard import HeardClock
from services.router.dispatch.live import Live, Wait
from services.router.dispatch.offers import Offer
from services.router.dispatch.outlook import Outlook
from services.router.dispatch.permits import Limits
from services.router.dispatch.planner import WINDOW, WINDOW_SHOWN, Plan, plan
from services.router.dispatch.releasing import Release
from services.router.dispatch.state import RouterState, Task
from services.router.dispatch.turn import Absence, Config, Stamp
from services.router.fleet import Fleet
from services.router.policy.decide import Decision, decide
from services.router.policy.filters import ESTIMATE_ERROR, Pair, allowed_models, best_suited, lack, may_serve, pairs_of
from services.router.policy.request import RouteRequest, request_of
from services.router.policy.routes import Route, Routes
from services.router.policy.settle import Pool, pool_of
from services.router.released import with_candidates
from services.router.routing import narrowed, preferred, routing_of, seed_of
from services.router.view import fleet_of

ALLOWED_MOST = 10_000
"""Answers kept until a machine reports: what a request insists on is any client's to invent."""
HOLDS_S = 1.0
"""How often it is noted what each waiting task is held for: a pass over a long queue costs some milliseconds."""


class Desk:
    """``epoch`` is set by whoever holds the dispatcher's key; while it is not in force nothing is decided."""

    def __init__(
        self, router: str, *, slider: float, limits: Limits, new_id: Callable[[], str], absence: Absence | None = None
    ) -> None:
        self.router, self.slider, self.limits, self.new_id = router, slider, limits, new_id
        self.absence = absence or Absence()
        self.state = RouterState()
        self.live = Live()
        self.clock = HeardClock()
        self.stats = Statistics()
        self.cells = Cells(self.stats)
        self.routes = Routes()
        self.epoch = -1
        self.unix = 0.0
        self._fleet: tuple[float, Fleet] | None = None
        self._plan: Plan | None = None
        self._starts: dict[str, float | None] = {}
        self._looked_at = -HOLDS_S
        self.sliders: Mapping[str, float] = {}
        self.outlook = Outlook(self.stats, slider=slider, pairs=self._pairs, prefer=self._prefer, lacks=self._lacks)
        self._allowed: dict[RouteRequest, tuple[tuple[str, tuple[str, ...]], ...]] = {}
        self._allowed_at, self._allowed_upto = (0, 0), -1
        self._pools: dict[RouteRequest, Pool] = {}
        self._paired: dict[str, dict[str, Pair]] = {}
        self._contexts: list[int] = []
        self._unheld_s = 0.0
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
        self.cells.beat(self.now)
        self.refresh()
        self._unheld_s += passed
        if self._unheld_s >= HOLDS_S and self.state.epoch == self.epoch:
            holds, waited, self._unheld_s = self._look(WINDOW).holds, self._unheld_s, 0.0
            absent.note(self.state, self.live, holds, self.now)
            for task, reason in holds.items():
                held, code = self.live.waits.setdefault(task, Wait()).held_s, reason.partition(":")[0]
                held[code] = held.get(code, 0.0) + waited
        return self.now

    def put_cell(self, cell: Cell) -> None:
        """A cell by itself, of a batch that nobody ends."""
        self.cells.put(cell, self.now)
        self.cells.settle()

    def decide(self, unix: float) -> list[Action]:
        """What is to be done now; it counts as being on its way from here on."""
        self.unix, self.outlook.slider = unix, self.slider
        config = Config(
            route=self._route, decorate=self._decorate, limits=self.limits, outlook=self.outlook, absence=self.absence
        )
        stamp = Stamp(self.router, unix, self.new_id)
        actions = engine.decide(self.state, self.live, self.now, config, stamp, self.epoch)
        engine.mark_pending(self.live, actions)
        return actions

    def plan(self) -> Plan:
        """The plan of this moment, with every reason; for people, nothing is released."""
        if self._plan is None:
            self._plan = self._look(WINDOW_SHOWN)
        return self._plan

    def starts(self, tasks: Sequence[str]) -> dict[str, float | None]:
        """Predicted seconds until each waiting task starts, at most a second old where any of ``tasks`` was known then: a
        flood of refusals must not plan each time."""
        if self.now - self._looked_at >= HOLDS_S or not any(task in self._starts for task in tasks):
            self.plan()
        return self._starts

    def _look(self, window: int) -> Plan:
        found = plan(self.state, self.live, self.now, self.limits, outlook=self.outlook, window=window)
        self._starts, self._looked_at = found.starts, self.now
        return found

    def fleet(self, unix: float) -> Fleet:
        """The fleet as of now. Made at most once for each moment of heard time and fold."""
        if self._fleet is None or self._fleet[0] != self.now:
            self._paired.clear()
            self._fleet = (self.now, fleet_of(self.state, self.live, self.stats, self.now, int(unix * 1e6)))
        return self._fleet[1]

    def refresh(self) -> None:
        """A fact, a credit or a load came, or time passed: the next fleet and plan are new ones."""
        self._fleet = self._plan = None
        self._pools.clear()

    def decision(self, request: RouteRequest, task: str, unix: float) -> Decision:
        """The decision on a task now. Raises UnknownModel. The seed is the task's own, so that it can be repeated."""
        return decide(
            request, self.fleet(unix), self.stats, seed=seed_of(task), now_us=int(unix * 1e6), slider=self.slider,
            routing=routing_of(self.routes, request, self.state, self.live),
        )  # fmt: skip

    def routed(self, decision: Decision, task: str, cause: str | None, unix: float) -> TaskRouted:
        routed = decision.routed(task, id=self.new_id(), at=unix, by=self.router, epoch=max(self.epoch, 0), cause=cause)
        return msgspec.structs.replace(routed, folded=self.state.position, exact=self.cells.exact)

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
            reasons = [removal.reason for removal in decision.removed]
            holders = (reason for reason in reasons if not reason.startswith("model:"))  # what they lack tells more
            why = next(holders, reasons[0] if reasons else "no machine has reported a model")
        self._unanswerable[submitted.task] = moment
        self.live.unanswered[submitted.task] = why
        return None

    def _moment(self) -> tuple[int, int]:
        """A task that nobody could answer is tried again after the next report, and each second; not with every credit."""
        if len(self._unanswerable) > len(self.state.tasks):
            self._unanswerable = {t: m for t, m in self._unanswerable.items() if t in self.state.tasks}
        return max((record.seq for record in self.state.workers.values()), default=0), int(self.now)

    def _pairs(self, state: RouterState, task: Task) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Who may serve it with which model, by every hard rule of the policy; whether they are free is the planner's question.
        Tasks that ask for the same have the same answer until a machine reports, leaves or comes."""
        if self._allowed_upto != state.position:
            self._allowed_upto = state.position
            self._forget_allowed(state)
        request = narrowed(self.routes, task, self.live, self._pool)
        key = self._alike(request, None)
        found = self._allowed.get(key)
        if found is None:
            if len(self._allowed) >= ALLOWED_MOST:
                self._allowed.clear()
            fleet = self.fleet(self.unix)
            pairs = ((model, may_serve(model, fleet, request)) for model in allowed_models(fleet, request))
            found = self._allowed[key] = tuple((model, workers) for model, workers in pairs if workers)
        return best_suited(found, self.fleet(self.unix), request)

    def _lacks(self, state: RouterState, task: Task, worker: str) -> str | None:
        """Why the worker may not serve the task with any model allowed that it holds; None where it may, or holds none."""
        request, fleet = narrowed(self.routes, task, self.live, self._pool), self.fleet(self.unix)
        holds, reasons = fleet.workers[worker].models if worker in fleet.workers else {}, list[str]()
        for model in allowed_models(fleet, request):
            if model in holds:
                reason = lack(self._pair(model, worker), request)
                if reason is None:
                    return None
                reasons.append(reason.partition(": ")[2])
        return reasons[0] if reasons else None

    def _pair(self, model: str, worker: str) -> Pair:
        """Made once for each model and moment: thousands may wait for the same."""
        if model not in self._paired:
            self._paired[model] = {p.worker.id: p for p in pairs_of(model, self.fleet(self.unix).holders(model))}
        return self._paired[model][worker]

    def _pool(self, route: Route, request: RouteRequest) -> Pool:
        """Which of a route's targets somebody can answer for: the same for all tasks that ask for the same, until something is
        heard."""
        needed = bisect_left(self._contexts, request.prompt_tokens + (request.max_tokens or 0))
        key = self._alike(request, needed)
        found = self._pools.get(key)
        if found is None:
            found = self._pools[key] = pool_of(route, request, self.fleet(self.unix))
        return found

    def _alike(self, request: RouteRequest, max_tokens: int | None) -> RouteRequest:
        """What of a request filters look at; its size as the number of contexts that it exceeds."""
        exceeded = bisect_left(self._contexts, request.prompt_tokens / ESTIMATE_ERROR)
        return msgspec.structs.replace(
            request, max_tokens=max_tokens, urgency="interactive", slider=None, domain="", prompt_tokens=exceeded,
            client="", session=None, verdict=None,
        )  # fmt: skip

    def _forget_allowed(self, state: RouterState) -> None:
        """Unless the machines are those of the last time."""
        records = state.workers.values()
        fleet_seq = max((r.seq for r in records), default=0), sum(r.left for r in records)
        if self._allowed_at != fleet_seq:
            self._allowed.clear()
            self._allowed_at = fleet_seq
            infos = (info for record in records for info in record.report.models)
            self._contexts = sorted({info.context for info in infos if info.context is not None})

    def _prefer(self, task: Task, offers: Sequence[Offer]) -> int | None:
        return preferred(self.routes, task, self.state, offers)

    def _decorate(self, released: TaskReleased, release: Release, task: Task) -> TaskReleased:
        """Add what the release rests on."""
        released = with_candidates(released, release, task, self.state, self.stats, int(self.unix * 1e6))
        return msgspec.structs.replace(
            released, position=self.stats.position, folded=self.state.position, exact=self.cells.exact,
            slider=self.outlook.slider_of(task), others_s=release.offer.others_s,
        )  # fmt: skip
