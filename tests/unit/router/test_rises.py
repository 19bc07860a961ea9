"""Each rise of a place or of the seconds to a start, and what is said of it."""

from __future__ import annotations

from typing import Any

from services.router.fleet import Fleet
from services.router.port import TaskStatus
from services.router.rises import Rises, is_news
from support.fleets import fleet, worker

DESK, LAPTOP = worker("w-1", "m", name="desk"), worker("w-2", "m", name="laptop")
BOTH = fleet(DESK, LAPTOP)


def waits(task: str, position: int, eta_s: float | None, client: str = "me", **fields: Any) -> TaskStatus:
    return TaskStatus(
        task=task, state="waiting", client=client, position=position, eta_s=eta_s, **{"model": "m"} | fields
    )


def runs(task: str, on: str = "w-1", attempt: int = 1) -> TaskStatus:
    return TaskStatus(task=task, state="running", worker=on, attempt=attempt, model="m")


def told(*scenes: tuple[TaskStatus, ...], machines: tuple[Fleet, ...] = ()) -> dict[str, dict[str, str]]:
    """Of the last scene: task -> what rose -> ``code: words``."""
    rises = Rises()
    shown: tuple[TaskStatus, ...] = ()
    for n, tasks in enumerate(scenes):
        shown = rises.look(tasks, machines[n] if machines else BOTH)
    return {
        status.task: {rise.of: f"{rise.code}: {rise.words}" for rise in status.rises}
        for status in shown
        if status.rises
    }


def test_a_queue_that_only_moves_on_says_nothing() -> None:
    assert told((waits("a", 1, 4.0), waits("b", 2, 8.0)), (waits("b", 1, 4.0), runs("a"))) == {}


def test_who_came_later_and_stands_before_is_counted_and_named() -> None:
    before = (waits("a", 1, 4.0),)
    after = (waits("x", 1, 4.0, "webui"), waits("y", 2, 8.0, "webui"), waits("a", 3, 12.0))
    words = "joined_ahead: 2 tasks of webui joined ahead"
    assert told(before, after) == {"a": {"position": words, "eta_s": words}}


def test_a_change_of_order_among_those_who_wait_is_a_joining_too() -> None:
    found = told((waits("a", 1, 4.0), waits("b", 2, 8.0)), (waits("b", 1, 4.0), waits("a", 2, 8.0)))
    assert found == {"a": dict.fromkeys(("eta_s", "position"), found["a"]["position"])}
    assert found["a"]["position"] == "joined_ahead: 1 task that stood behind it now goes first"


def test_a_lost_attempt_that_goes_first_again_is_told_to_those_behind_it_and_to_its_own_reader() -> None:
    before = (waits("b", 1, 4.0), runs("a", "w-2"))
    found = told(before, (waits("a", 1, 0.0), waits("b", 2, 9.0)))
    words = "died: an attempt was lost and is made again: a on laptop"
    assert found == {"a": {"position": words}, "b": {"position": words, "eta_s": words}}


def test_a_machine_that_is_lost_paused_or_whose_server_is_down_is_named() -> None:
    for now, words in (
        (fleet(DESK), "died: laptop left"),
        (fleet(DESK, worker("w-2", "m", name="laptop", alive=False)), "died: laptop is not heard any more"),
        (fleet(DESK, worker("w-2", "m", name="laptop", backend_up=False)), "died: the model server of laptop is down"),
        (fleet(DESK, worker("w-2", "m", name="laptop", paused=True)), "paused: laptop was paused"),
    ):
        assert told((waits("a", 1, 4.0),), (waits("a", 1, 30.0),), machines=(BOTH, now)) == {"a": {"eta_s": words}}


def test_what_takes_longer_than_predicted_is_said_with_its_machine() -> None:
    found = told((waits("a", 1, 4.0), runs("x")), (waits("a", 1, 9.0), runs("x")))
    assert found == {"a": {"eta_s": "slower_than_predicted: what runs on desk takes longer than was predicted"}}


def test_a_time_that_becomes_unknown_has_risen() -> None:
    assert set(told((waits("a", 1, 4.0),), (waits("a", 1, None),))["a"]) == {"eta_s"}
    assert told((waits("a", 1, None),), (waits("a", 1, 400.0),)) == {}


def test_a_prediction_that_trembles_is_shown_as_it_was_until_it_has_really_risen() -> None:
    rises = Rises()
    seen = [rises.look((waits("a", 1, eta), runs("x")), BOTH)[0] for eta in (10.0, 10.4, 10.8, 11.2, 3.0)]
    assert [status.eta_s for status in seen] == [10.0, 10.0, 10.0, 11.2, 3.0]
    assert [bool(status.rises) for status in seen] == [False, False, False, True, False]


def test_the_latest_rise_stays_while_the_task_waits_and_it_is_not_made_good() -> None:
    rises = Rises()
    rises.look((waits("a", 1, 4.0),), BOTH)
    rises.look((waits("x", 1, 4.0), waits("a", 2, 8.0)), BOTH)
    assert [rise.of for rise in rises.look((waits("a", 1, 7.0), runs("x")), BOTH)[0].rises] == ["eta_s"]
    assert not rises.look((waits("a", 1, 4.1), runs("x")), BOTH)[0].rises, "a tenth of a second is no rise"
    assert not rises.look((waits("a", 1, 5.0), runs("x")), BOTH)[0].rises, "and does not come back"
    assert not rises.look((runs("a"),), BOTH)[0].rises


def test_somebody_who_watches_hears_what_matters_and_each_few_seconds_of_the_time() -> None:
    before = waits("a", 3, 30.0, reason="busy: desk is free in 30 s")
    assert not is_news(before, waits("a", 3, 29.0, reason="busy: desk is free in 29 s"), 1.0)
    assert is_news(before, waits("a", 2, 29.0, reason="busy: desk is free in 29 s"), 1.0)
    assert is_news(before, waits("a", 3, 10.0, reason="busy: desk is free in 10 s"), 1.0)
    assert is_news(before, waits("a", 3, None, reason="busy: desk is free in 29 s"), 1.0)
    assert is_news(before, waits("a", 3, 29.0, reason="client_full: me has 2 running"), 1.0)
    assert is_news(before, waits("a", 3, 25.0, reason="busy: desk is free in 25 s"), 5.0)
    unknown = waits("a", 3, None, reason="no_worker: nobody is there")
    assert not is_news(unknown, unknown, 60.0)
