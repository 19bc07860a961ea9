"""The judge of the queue's order, judged: each promise broken in as few facts as it takes."""

from __future__ import annotations

from typing import Any

from schemas import events
from schemas.events import AnyEvent
from simulation.fleet.promises import Order, check_order
from support.builders import build


def arrives(task: str, service_s: float = 1.0, **fields: Any) -> list[AnyEvent]:
    return [
        build(events.TaskSubmitted, task=task, **fields), build(events.TaskRouted, task=task, service_s=service_s)
    ]  # fmt: skip


def leaves(task: str, **fields: Any) -> AnyEvent:
    return build(events.TaskReleased, task=task, **{"held_s": {"busy": 3.0}, "bypasses": 0, **fields})


def judged(*told: AnyEvent | list[AnyEvent], apart_s: float = 2.0) -> Order:
    flat = [event for item in told for event in (item if isinstance(item, list) else [item])]
    return check_order([(event, int(n * apart_s * 1e6)) for n, event in enumerate(flat)])


def test_first_in_first_out_breaks_nothing() -> None:
    order = judged(arrives("a"), arrives("b"), leaves("a"), leaves("b"))
    assert (order.broken, order.inversions, order.passed_most_s) == ([], 0, 0.0)


def test_a_fifth_jump_is_seen() -> None:
    assert judged(arrives("a"), leaves("a", bypasses=4)).broken == []
    assert "jumped 5 times" in judged(arrives("a"), leaves("a", bypasses=5)).broken[0]


def test_whoever_was_passed_must_say_why_it_was_held() -> None:
    told = [arrives("a"), arrives("b"), leaves("b"), leaves("a", held_s={})]
    order = judged(*told)
    assert order.inversions == 1
    assert "does not say why" in order.broken[0]
    assert judged(*told[:3], leaves("a")).broken == []


def test_shorter_work_may_pass_for_sixty_seconds_and_one_task() -> None:
    short = [arrives(f"s{n}", service_s=10.0) for n in range(9)]
    out = [leaves(f"s{n}") for n in range(9)]
    order = judged(arrives("long", service_s=500.0), *short, *out, leaves("long"), apart_s=0.1)
    assert (
        any("overtaken by 80.0" in line for line in order.broken) is False
    )  # from 60 on it comes first: that is an inversion
    assert order.passed_most_s == 60.0
    assert order.inversions == 3


def test_a_long_task_that_lets_pass_too_much_at_once_is_seen() -> None:
    told = [arrives("long", service_s=900.0), arrives("a", service_s=50.0), arrives("b", service_s=50.0)]
    assert judged(*told, leaves("a"), leaves("b"), leaves("long"), apart_s=0.1).broken == []


def test_other_classes_do_not_count_as_overtaking() -> None:
    told = [arrives("slow", service_s=50.0, urgency="batch"), arrives("quick", service_s=1.0)]
    assert judged(*told, leaves("quick"), leaves("slow"), apart_s=0.1).passed_most_s == 0.0
