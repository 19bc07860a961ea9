"""When a task starts that a limit holds back, by hand."""

from __future__ import annotations

import pytest

from services.router.dispatch.permits import Limit, Limits
from support.planning import Planning


def limited(limits: Limits, *left_s: float, slots: int = 8) -> Planning:
    """One machine with room, and attempts of ``m`` for ``me`` that have so long left."""
    desk = Planning(limits)
    desk.joins("w1", "m", "n", free=slots)
    for n, seconds in enumerate(left_s):
        desk.busy("w1", f"runs{n}", free=slots - n - 1, left_s=seconds)
    return desk


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (Limits(model=Limit(1)), "model_full"),
        (Limits(model=Limit(total=1)), "model_full"),
        (Limits(client=Limit(1)), "client_full"),
        (Limits(client=Limit(total=1)), "client_full"),
        (Limits(backend=Limit(1)), "backend_full"),
    ],
)
def test_one_after_the_other_as_the_permit_is_given_back(limits: Limits, code: str) -> None:
    desk = limited(limits, 5.0)
    for task, service_s in (("t1", 3.0), ("t2", 4.0), ("t3", 1.0)):
        desk.arrives(task, model="m", service_s=service_s)
    planned = desk.plan()
    assert {reason.partition(":")[0] for reason in planned.holds.values()} == {code}
    # t3 is the shortest and goes first: by arrival and expected service.
    assert planned.starts == {"t3": pytest.approx(5.0), "t1": pytest.approx(6.0), "t2": pytest.approx(9.0)}


def test_of_several_permits_the_first_that_is_free_goes_to_the_first_in_line() -> None:
    desk = limited(Limits(model=Limit(2)), 5.0, 7.0)
    for task in ("t1", "t2", "t3"):
        desk.arrives(task, model="m", service_s=4.0)
    assert desk.plan().starts == {"t1": pytest.approx(5.0), "t2": pytest.approx(7.0), "t3": pytest.approx(9.0)}


def test_under_a_lowered_limit_enough_must_end_first() -> None:
    desk = limited(Limits(model=Limit(3)), 2.0, 5.0, 7.0)
    desk.limits = Limits(model=Limit(2))
    desk.arrives("t1", model="m")
    assert desk.plan().starts == {"t1": pytest.approx(5.0)}


def test_the_last_of_two_limits_counts_and_an_open_task_takes_the_model_that_is_free_sooner() -> None:
    desk = limited(Limits(model=Limit(1), client=Limit(names={"me": 2})), 9.0)
    desk.busy("w1", "other", "n", free=6, left_s=4.0)
    desk.arrives("open", client="you")
    desk.arrives("mine", model="m", client="me")
    starts = desk.plan().starts
    assert starts["open"] == pytest.approx(4.0)
    assert starts["mine"] == pytest.approx(9.0)


def test_where_no_machine_is_there_nobody_knows_when() -> None:
    desk = limited(Limits(client=Limit(1)), 5.0)
    desk.arrives("t1", model="gone")
    assert desk.plan().starts == {"t1": None}


def test_a_machine_that_is_busy_for_longer_than_the_limit_is_waited_for() -> None:
    desk = Planning(Limits(client=Limit(1)))
    desk.joins("w1", "m")
    desk.joins("w2", "n")
    desk.busy("w2", "mine", "n", left_s=2.0)
    desk.arrives("yours", model="m", client="you")
    desk.busy("w1", "yours", left_s=6.0)
    desk.arrives("t1", model="m")
    assert desk.plan().starts == {"t1": pytest.approx(6.0)}
