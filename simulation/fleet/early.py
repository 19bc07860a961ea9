"""Which model would the planner choose for a task at the moment when it comes?

Answers that for the comparison with choosing late, by the planner's own pass: everything that waits is put in thought where it
would go, then the newcomer. Only the moment differs from what the product does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from schemas.events import TaskSubmitted
from services.router.desk import Desk
from services.router.dispatch.machines import machines_of
from services.router.dispatch.offers import Offer
from services.router.dispatch.order import queue
from services.router.dispatch.permits import Counts
from services.router.dispatch.planner import WINDOW_SHOWN, Pass
from services.router.dispatch.state import Task
from services.router.policy.request import request_of


@dataclass
class _Thought(Pass):
    """A pass that remembers which model each task would get."""

    models: dict[str, str] = field(default_factory=dict)

    def _place(self, task: Task, offer: Offer) -> None:
        self.models[task.submitted.task] = offer.model
        super()._place(task, offer)


def model_on_arrival(desk: Desk, event: TaskSubmitted, now: float) -> str:
    """``event`` leaves its model open and is not in the log yet."""
    decision, state, outlook = desk.decision(request_of(event), event.task, now), desk.state, desk.outlook
    assert decision.choice is not None  # every machine holds a model
    newcomer = Task(
        submitted=event, seq=1 << 60, at_us=int(now * 1e6), routed_seq=0, choice=decision.choice,
        service_s=decision.service_s,
    )  # fmt: skip
    state.tasks[event.task] = newcomer
    try:
        machines = machines_of(state, desk.live, desk.now, outlook)
        walk = _Thought(state, desk.live, desk.now, Counts(desk.limits, state.held), outlook, machines)
        walk.run(queue(state, desk.live, outlook.order_k), WINDOW_SHOWN, False)
    finally:
        del state.tasks[event.task]
    return walk.models.get(event.task, decision.choice.model)
