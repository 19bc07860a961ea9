"""The planner with speeds that a test knows, so that what it chooses can be computed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas import events
from schemas.events import ModelInfo, TaskRouted, WorkerLoad
from schemas.statistics import Statistics
from services.router.dispatch.bids import Bids
from services.router.dispatch.completion import Machine, Speed
from services.router.dispatch.machines import machines_of
from services.router.dispatch.outlook import Outlook
from services.router.dispatch.permits import UNLIMITED, Limits
from services.router.dispatch.planner import Plan, plan
from support.builders import build
from support.dispatching import Dispatch

SPEED = Speed(
    load_s=4.0, prefill=100.0, decode=10.0, output=100.0, quality=0.5, slowdown=1.0, others_weight=1.0, use_known=1.0
)
"""200 tokens of prompt are 2 s, the answer is 10 s, loading is 4 s."""
PROMPT_S, ANSWER_S, LOAD_S = 2.0, 10.0, 4.0


class Known(Outlook):
    """``speeds``: by (model, worker); everything else is SPEED."""

    def __init__(self, speeds: Mapping[tuple[str, str], Speed] | None = None, **options: Any) -> None:
        super().__init__(Statistics(), **options)
        self.known = dict(speeds or {})

    def speed(self, model: str, domain: str, worker: str, info: ModelInfo | None) -> Speed:
        return self.known.get((model, worker), SPEED)


def taking(answer_s: float, **fields: Any) -> Speed:
    """One that needs so long for an answer."""
    return SPEED._replace(decode=SPEED.output / answer_s, **fields)


class Planning(Dispatch):
    """Machines say in their first heartbeat what is loaded: all their models, unless told otherwise. ``service_s`` of a task is
    the E[S] of its decision."""

    def __init__(
        self, limits: Limits = UNLIMITED, speeds: Mapping[tuple[str, str], Speed] | None = None, **options: Any
    ) -> None:
        super().__init__(limits)
        self.outlook = Known(speeds, **options)
        self.service_s: dict[str, float] = {}

    def joins(
        self,
        worker: str,
        *models: str,
        free: int = 1,
        priority: int = 0,
        resident: tuple[str, ...] | None = None,
        use: float | None = 0.0,
        **fields: Any,
    ) -> None:
        self.join(worker, *models, free=free, priority=priority, **fields)
        self.says(worker, resident if resident is not None else models or ("m",), use)

    def says(self, worker: str, resident: tuple[str, ...] | None, use: float | None = 0.0) -> None:
        """A heartbeat, which the next pass will have looked at."""
        load = build(
            WorkerLoad, by=worker, worker=worker, boot="b1", resident=resident, others_use=use, interval_s=5.0, credit=None
        )  # fmt: skip
        self.live.hear_load(load, self.now)
        self.live.tidy(self.state)

    def arrives(self, task: str, *, model: str | None = None, service_s: float = 0.0, **fields: Any) -> None:
        """Submitted and decided on."""
        self.submit(task, model=model, **fields)
        self.service_s[task] = service_s
        self.tell(self.routed(task))

    def routed(self, task: str) -> TaskRouted:
        return build(
            TaskRouted, task=task, epoch=self.epoch, candidates=(), removed=(), inputs=(),
            choice=events.Choice(model=self.task(task).submitted.wants.model or "m"), service_s=self.service_s[task],
        )  # fmt: skip

    def busy(
        self, worker: str, task: str, model: str = "m", *, free: int = 0, left_s: float = 12.0, priority: int = 0
    ) -> None:
        """``worker`` has begun with ``task`` just now, needs ``left_s`` for it, and has ``free`` slots left."""
        if self.state.task(task) is None:
            self.arrives(task, model=model)
        submitted, n = self.task(task).submitted, self.task(task).next_attempt
        permits = (f"model:{model}", f"client:{submitted.client}", self.state.backend_permit(worker))
        self.tell(
            build(
                events.TaskReleased, task=task, attempt=n, epoch=self.epoch, model=model, lane=worker,
                capability="cpu_inference", expected_worker=worker, holders=(worker,), permits=permits,
                predicted=events.Prediction(total_s=left_s, wait_s=0.0),
            )
        )  # fmt: skip
        self.start(task, worker)
        self.live.lease((task, n), "b1", self.now)
        hands = [(t, a.n) for t, known in self.state.tasks.items() if (a := known.live) and a.worker == worker]
        self.credit(worker, *hands, free=free, priority=priority)

    def plan(self, **options: Any) -> Plan:
        self.live.tidy(self.state)
        return plan(self.state, self.live, self.now, self.limits, outlook=self.outlook, **options)

    def went(self, **options: Any) -> list[tuple[str, str]]:
        """(task, machine) of each release of one pass, in order."""
        return [(release.task, release.expected) for release in self.plan(**options).releases]

    def release(self, task: str) -> Any:
        return next(release for release in self.plan().releases if release.task == task)

    def code(self, task: str) -> str:
        return self.plan().holds[task].partition(":")[0]

    def machines(self) -> dict[str, Machine]:
        self.live.tidy(self.state)
        return machines_of(self.state, self.live, self.now, self.outlook)

    def bids(self) -> Bids:
        return Bids(self.state, self.live, self.machines(), self.outlook)
