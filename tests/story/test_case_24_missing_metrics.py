"""Case 24: what a machine does not report is neither good nor bad news. A pool of one machine must not stall on it.

Reported: no metrics made the best candidate, and stale metrics a saturated one, so that a single machine was never used again.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec
import pytest

from schemas import events
from schemas.events import Credit, TaskReleased, TaskRouted, WorkerLoad, WorkerReported
from schemas.subjects import group_durable, lane_durable
from services.router.desk import Desk
from services.router.dispatch.actions import EnsureConsumer, Publish
from services.router.dispatch.heard import PULSE_S
from services.router.dispatch.permits import UNLIMITED
from support.builders import CREDIT, DESK, QWEN, TASK, build

UNIX = 1_767_225_600.0
SILENT: dict[str, Any] = {
    "gpus": None, "others_use": None, "resident": None, "cpu_use": None, "cpu_pressure": None, "ram_available_bytes": None,
}  # fmt: skip
"""A heartbeat of a machine that can read nothing of itself."""


class Router:
    """A desk with one machine, and the log that it writes to."""

    def __init__(self) -> None:
        ids = count()
        self.desk = Desk("router-1", slider=1.0, limits=UNLIMITED, new_id=lambda: f"id-{next(ids)}")
        self.log: list[events.AnyEvent] = []
        self.seconds, self.credits = 0.0, 0
        self.tell(build(events.DispatcherElected, epoch=1), build(WorkerReported))
        self.desk.elected(1)
        self.beat(0.0)

    def tell(self, *facts: events.AnyEvent) -> None:
        for fact in facts:
            self.log.append(fact)
            self.desk.fold([(fact, len(self.log), int(UNIX * 1e6))])
        self.desk.passed(len(self.log))

    def beat(self, seconds: float, *, credits_every_s: float = float("inf")) -> None:
        """Time passes, with nothing heard but such credits."""
        end, next_credit = self.seconds + seconds, self.seconds + credits_every_s
        while True:
            self.desk.beat(self.seconds, UNIX + self.seconds)
            if self.seconds >= next_credit:
                next_credit += credits_every_s
                self.credit()
            if self.seconds >= end:
                break
            self.seconds += PULSE_S

    def load(self, **changes: Any) -> None:
        self.desk.live.hear_load(build(WorkerLoad, **({"credit": self._credit()} | changes)), self.desk.now)
        self.desk.refresh()

    def credit(self) -> None:
        self.desk.live.hear_credit(self._credit(), self.desk.now)
        self.desk.refresh()

    def _credit(self) -> Credit:
        self.credits += 1
        armed = {group_durable("cpu_inference", QWEN): 0, lane_durable(DESK): 0}
        return msgspec.structs.replace(CREDIT, seq=self.credits, free=1, running=(), armed=armed)

    def act(self) -> list[events.Event]:
        """Do what is wanted until nothing is; the facts published."""
        published: list[events.Event] = []
        while actions := self.desk.decide(UNIX + self.seconds):
            for action in actions:
                match action:
                    case Publish(event=event):
                        published.append(event)
                        self.tell(event)  # type: ignore[arg-type]
                        self.desk.live.stored(action.key, len(self.log))
                        self.desk.passed(len(self.log))
                    case EnsureConsumer(durable=durable, slots=slots):
                        self.desk.live.confirmed[durable] = slots
                        self.desk.live.not_stored(action.key)
                    case _:
                        self.desk.live.not_stored(action.key)
            if any(isinstance(event, TaskReleased) for event in published):
                break
        return published

    def submit(self) -> None:
        self.tell(build(events.TaskSubmitted, wants=events.Wants()))


def released(facts: list[events.Event]) -> list[tuple[str, str | None]]:
    return [(fact.task, fact.expected_worker) for fact in facts if isinstance(fact, TaskReleased)]


def test_case_24_a_machine_that_can_read_nothing_of_itself_still_works() -> None:
    router = Router()
    router.act()
    router.load(**SILENT)
    router.submit()
    facts = router.act()
    assert released(facts) == [(TASK, DESK)]
    (routed,) = [fact for fact in facts if isinstance(fact, TaskRouted)]
    (candidate,) = routed.candidates
    assert (candidate.others_use, candidate.resident) == (None, None)


@pytest.mark.parametrize("field", sorted(SILENT))
def test_case_24_no_reading_is_never_cheaper_than_an_idle_reading(field: str) -> None:
    costs = []
    for changes in ({}, {field: None}):
        router = Router()
        router.load(**changes)
        router.submit()
        (routed,) = [fact for fact in router.act() if isinstance(fact, TaskRouted)]
        costs.append(routed.candidates[0].cost_s)
    assert costs[1] >= costs[0]


def test_case_24_the_only_machine_works_on_although_its_last_heartbeat_is_60_s_old() -> None:
    """Its credits arrive, its heartbeats do not: its load is unknown, which is not full."""
    router = Router()
    router.act()
    router.load()
    router.beat(60.0, credits_every_s=4.0)
    view = router.desk.fleet(UNIX)
    assert view.workers[DESK].others_reason == "the last load is older than 15 s"
    router.submit()
    assert released(router.act()) == [(TASK, DESK)]


def test_case_24_a_task_for_the_only_machine_waits_through_its_silence_and_starts_with_its_first_word() -> None:
    router = Router()
    router.act()
    router.load()
    router.beat(60.0)
    router.submit()
    facts = router.act()
    (routed,) = [fact for fact in facts if isinstance(fact, TaskRouted)]
    assert routed.choice is not None and routed.choice.worker == DESK, "silence removes nobody where nobody else is"
    assert released(facts) == []
    assert router.desk.plan().holds[TASK] == "no_worker: nothing was heard for 60 s of desk"
    router.beat(60.0)
    assert router.act() == []
    router.credit()
    assert released(router.act()) == [(TASK, DESK)]
