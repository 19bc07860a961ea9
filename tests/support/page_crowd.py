"""A router with a crowd at its door, as the page asks it: 50 machines and 500 waiting tasks at the product's own desk.

Answers "what does the page see of a fleet that is full?" with the real planner, rises and statuses, without NATS.
"""

from __future__ import annotations

from schemas.statistics import Statistics
from services.router.fleet import Fleet
from services.router.port import TaskStatus
from services.router.rises import Rises
from services.router.view import queue_of, status_of
from support.crowds import Crowd
from support.router_port import MemoryRouter


class CrowdRouter(MemoryRouter):
    """``move`` lets some tasks end: others start in their places, and new ones come."""

    def __init__(self, workers: int = 50, waiting: int = 500) -> None:
        super().__init__()
        self.crowd = Crowd(workers, waiting)
        self._rises = Rises()

    def move(self, ends: int = 3) -> None:
        for _ in range(ends):
            self.crowd.free_one()
            self.crowd.settle()
            self.crowd.arrive()
        self.crowd.settle()

    def fleet(self) -> Fleet:
        return self.crowd.desk.fleet(self.crowd.unix)

    def statistics(self) -> Statistics:
        return self.crowd.desk.stats

    def queue(self) -> tuple[TaskStatus, ...]:
        desk, unix = self.crowd.desk, self.crowd.unix
        tasks = queue_of(desk.state, desk.live, desk.plan(), int(unix * 1e6), desk.outlook.order_k)
        return self._rises.look(tasks, self.fleet())

    def recent(self, most: int) -> tuple[TaskStatus, ...]:
        state = self.crowd.desk.state
        tasks = sorted((*state.tasks.values(), *state.recent.values()), key=lambda task: -(task.routed_seq or 0))
        return tuple(status_of(task, now_us=int(self.crowd.unix * 1e6)) for task in tasks[:most])
