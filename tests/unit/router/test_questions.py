"""Asking a router changes nothing, and many who ask cost no more than one."""

from __future__ import annotations

from itertools import count

from schemas import events
from schemas.events import AnyEvent
from services.router.desk import Desk
from services.router.dispatch.permits import Limits
from services.router.dispatch.planner import Plan
from services.router.follow import Channels
from services.router.questions import Questions
from services.router.readers import Readers
from services.router.rises import Rises
from services.runtime.clock import SystemClock
from support.builders import build


class Asked(Questions):
    """The reading half alone, at a desk of our making; ``plans`` counts what it was made to plan."""

    def __init__(self) -> None:
        numbers, self._seqs = count(), count(1)
        self.desk = Desk("router-1", slider=1.0, limits=Limits(), new_id=lambda: f"id-{next(numbers)}")
        self.desk.clock.interval_s = 1.0
        self.channels, self._clock, self._rises = Channels(), SystemClock(), Rises()
        self._places = (0.0, {})
        self.plans = 0
        look = self.desk._look

        def counted(window: int) -> Plan:
            self.plans += 1
            return look(window)

        self.desk._look = counted  # type: ignore[method-assign]

    def tell(self, *told: AnyEvent) -> None:
        self.desk.fold([(event, seq, seq) for event, seq in zip(told, self._seqs, strict=False)])


async def test_as_many_as_wait_may_ask_for_their_place_for_one_plan_a_second() -> None:
    router = Asked()
    router.tell(build(events.WorkerReported), *(build(events.TaskSubmitted, task=f"t{n}") for n in range(50)))
    for n in range(50):
        status = await router.status(f"t{n}")
        assert status is not None
        assert (status.state, status.position) == ("waiting", n + 1)
        router.desk.refresh()  # a credit came
    assert router.plans == 1
    router.tell(build(events.TaskSubmitted, task="late"))
    late = await router.status("late")
    assert late is not None and (late.position, router.plans) == (51, 2)
    router.desk.beat(0.0, 1_000.0)
    router.desk.beat(1.0, 1_001.0)
    await router.status("t0")
    assert router.plans == 3


def test_the_tasks_decided_last_come_first_ended_or_not_and_no_more_than_asked_for() -> None:
    router = Asked()
    router._readers = Readers(None, router.desk, router.channels, unix=lambda: 0.0, grace_s=1.0)
    for name in ("t1", "t2", "t3", "undecided"):
        router.tell(build(events.TaskSubmitted, task=name))
    for name in ("t2", "t3", "t1"):
        router.tell(build(events.TaskRouted, task=name, id=f"{name}.routed"))
    router.tell(build(events.TaskCancelled, task="t3", id="t3.end"))
    assert [status.task for status in router.recent(9)] == ["t1", "t3", "t2"]
    assert [(status.task, status.state) for status in router.recent(2)] == [("t1", "waiting"), ("t3", "cancelled")]
