"""Tasks that nobody who is there could take: who is woken, who gives up, and in which words."""

from __future__ import annotations

import pytest

from schemas import events
from services.router.dispatch import absent
from services.router.dispatch.actions import Wake
from services.router.dispatch.planner import plan
from services.router.dispatch.turn import Absence
from support.builders import build
from support.dispatching import Dispatch, facts, of

PATIENT = Absence(wait_s=30.0)
WAKEABLE = Absence(wait_s=30.0, wake_wait_s=180.0, wakeable=frozenset({"laptop"}))


class Patient(Dispatch):
    """A dispatcher whose interactive tasks wait 30 s for somebody; it looks around with each second."""

    def __init__(self, absence: Absence = PATIENT) -> None:
        super().__init__()
        self.absence = absence

    def pass_(self, seconds: float, *, heard: tuple[str, ...] = ()) -> list[str | Wake]:
        """What is done while the time passes: the facts' types, and wakes."""
        done: list[str | Wake] = []
        for _ in range(int(seconds)):
            self.wait(1.0)
            for worker in heard:
                self.credit(worker)
            holds = plan(self.state, self.live, self.now, self.limits).holds
            absent.note(self.state, self.live, holds, self.now)
            actions = self.settle()
            done += [*facts(actions), *of(Wake, actions)]
        return done

    def words(self, task: str) -> str:
        end = self.task(task).terminal
        assert isinstance(end, events.TaskFailed) and end.failure == "busy"
        return end.detail


def fleet_of(*names: str, absence: Absence = PATIENT) -> Patient:
    desk = Patient(absence)
    for name in names:
        desk.report(name, "m", name=name)
    desk.settle()
    for name in names:
        desk.credit(name)
    return desk


def test_an_interactive_task_gives_up_and_names_the_model_its_holders_and_when_each_was_last_seen() -> None:
    desk = fleet_of("desk", "laptop")
    desk.wait(300.0)
    desk.credit("laptop")
    desk.wait(60.0)
    desk.tell(build(events.WorkerLeft, worker="laptop", boot="b1"))
    desk.wait(100.0)
    desk.submit("t1", model="m")
    desk.settle()
    assert "task.failed" not in desk.pass_(31)
    assert "task.failed" in desk.pass_(1)
    assert desk.words("t1") == (
        "nobody who holds m was there within 31 s (laptop left 2 min ago; desk was last heard 8 min ago)"
    )


@pytest.mark.parametrize("urgency", ["batch", "background"])
def test_what_nobody_sits_before_waits_on(urgency: str) -> None:
    desk = fleet_of("desk")
    desk.wait(100.0)
    desk.submit("t1", model="m", urgency=urgency)
    assert "task.failed" not in desk.pass_(600)
    desk.credit("desk")
    assert "task.released" in facts(desk.settle())


def test_where_no_wait_was_set_a_task_waits_for_ever() -> None:
    desk = fleet_of("desk", absence=Absence())
    desk.wait(100.0)
    desk.submit("t1", model="m")
    assert "task.failed" not in desk.pass_(600)


def test_a_machine_that_is_only_busy_is_there() -> None:
    desk = fleet_of("desk")
    desk.submit("t1", model="m")
    desk.settle()
    desk.start("t1", "desk")
    desk.submit("t2", model="m")
    for _ in range(60):
        desk.credit("desk", ("t1", 1), free=0)
        assert "task.failed" not in desk.pass_(1)


def test_the_wait_begins_afresh_when_somebody_was_there_meanwhile() -> None:
    desk = fleet_of("desk")
    desk.wait(100.0)
    desk.submit("t1", model="m")
    assert "task.failed" not in desk.pass_(29)
    desk.credit("desk", ("another's", 1), free=0)
    assert "task.failed" not in desk.pass_(30)


def test_a_machine_that_came_back_since_the_last_look_takes_the_task() -> None:
    desk = fleet_of("desk")
    desk.wait(100.0)
    desk.submit("t1", model="m")
    desk.pass_(31)
    desk.wait(1.0)
    desk.credit("desk")
    assert "task.released" in facts(desk.settle())


def test_a_task_that_only_a_paused_machine_could_take_is_kept_while_the_machine_is_there() -> None:
    desk = fleet_of("desk")
    desk.tell(build(events.WorkerPaused, worker="desk", for_s=None))
    desk.submit("t1", model="m")
    assert "task.failed" not in desk.pass_(120, heard=("desk",))
    assert "task.failed" in desk.pass_(8)
    assert "desk is paused until it is resumed" in desk.words("t1")


def test_a_sleeping_holder_is_woken_once_and_then_waited_for_longer() -> None:
    desk = fleet_of("desk", "laptop", absence=WAKEABLE)
    desk.wait(100.0)
    desk.submit("t1", model="m")
    done = desk.pass_(60)
    assert [each for each in done if isinstance(each, Wake)] == [Wake("laptop", "laptop")]
    assert "task.failed" not in done
    assert "task.failed" in desk.pass_(125)
    assert "was there or woke up within" in desk.words("t1")


def test_nobody_is_woken_twice_within_a_minute_and_a_later_task_wakes_again() -> None:
    desk = fleet_of("laptop", absence=WAKEABLE)
    desk.wait(100.0)
    desk.submit("t1", model="m", urgency="batch")
    desk.submit("t2", model="m", urgency="batch")
    wakes = [each for each in desk.pass_(30) if isinstance(each, Wake)]
    desk.submit("t3", model="m", urgency="batch")
    wakes += [each for each in desk.pass_(120) if isinstance(each, Wake)]
    assert len(wakes) == 1
    desk.submit("t4", model="m", urgency="batch")
    assert Wake("laptop", "laptop") in desk.pass_(2)


def test_nobody_is_woken_who_is_there_or_paused_or_does_not_hold_the_model() -> None:
    desk = fleet_of("laptop", absence=WAKEABLE)
    desk.submit("t1", model="another")
    assert not [each for each in desk.pass_(40) if isinstance(each, Wake)]
    desk.tell(build(events.WorkerPaused, worker="laptop", for_s=None))
    desk.submit("t2", model="m", urgency="batch")
    assert not [each for each in desk.pass_(40) if isinstance(each, Wake)]


def test_a_model_that_nobody_ever_held_fails_too() -> None:
    desk = fleet_of("desk")
    desk.submit("t1", model="another")
    assert "task.failed" in desk.pass_(35, heard=("desk",))
    assert "no machine that is known holds it" in desk.words("t1")


def test_behind_a_long_queue_for_others_a_sleeping_machine_is_woken_all_the_same() -> None:
    desk = fleet_of("desk", absence=WAKEABLE)
    desk.report("laptop", "other", name="laptop")
    desk.wait(100.0)
    desk.credit("desk", ("another's", 1), free=0)
    for n in range(30):
        desk.submit(f"m{n}", model="m", urgency="batch")
    desk.submit("t1", model="other", urgency="background")
    desk.settle()
    done: list[str | Wake] = []
    for _ in range(3):
        desk.credit("desk", ("another's", 1), free=0)
        done += desk.pass_(1)
    assert Wake("laptop", "laptop") in done


RENAMED = (events.ModelInfo(name="m:latest", backend_name="m", aliases=("old",)),)


def test_whoever_holds_the_model_under_another_name_is_named_too() -> None:
    desk = Patient()
    desk.report("desk", name="desk", models=RENAMED)
    desk.settle()
    desk.credit("desk")
    desk.wait(100.0)
    desk.submit("t1", model="old")
    assert "task.failed" in desk.pass_(34)
    assert desk.words("t1") == "nobody who holds old was there within 31 s (desk was last heard 2 min ago)"


def test_behind_the_window_a_machine_is_there_under_any_name_of_the_model() -> None:
    desk = Patient()
    desk.report("desk", name="desk", models=RENAMED)
    desk.settle()
    desk.submit("t1", model="old")
    for heard, code in ((True, "busy"), (False, "silent")):
        if heard:
            desk.credit("desk")
        else:
            desk.wait(100.0)
        absent.note(desk.state, desk.live, {"t1": "busy: behind others"}, desk.now)
        assert desk.live.waits["t1"].absent_code == code
