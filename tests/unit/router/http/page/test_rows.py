"""What counts as a change, and what is unknown stays so."""

from __future__ import annotations

import time

import msgspec

from schemas.events import Choice
from services.router.fleet import Fleet
from services.router.http.page.rows import decision_row, machine_row, made_at, running_row, seen, waiting_row
from services.router.port import Rise, TaskStatus
from services.runtime.ids import new_id
from support.router_port import DESKTOP, LAPTOP

WAITING = TaskStatus(
    task="t1",
    state="waiting",
    position=1,
    model="qwen3",
    expected_worker="w-1",
    reason="busy: 4 s",
    eta_s=4,
    waited_s=2,
)
NAMES = {"w-1": "desktop"}


def test_a_machine_changes_with_its_slots_and_not_with_a_tremble_of_its_load() -> None:
    row = machine_row(DESKTOP)
    trembles = machine_row(msgspec.structs.replace(DESKTOP, others_use=0.01, credit_age_s=3.0))
    busy = machine_row(msgspec.structs.replace(DESKTOP, free=0))
    assert (row.known_by, row.tells) == (trembles.known_by, trembles.tells)
    assert busy.known_by != row.known_by


def test_what_a_machine_does_not_say_is_unknown() -> None:
    view = machine_row(LAPTOP).view
    assert [held.loaded for held in view.models] == [None]
    assert view.worker.free is None and view.worker.unknown["others_use"] == "no_agent"


def test_what_a_silent_machine_said_last_is_no_news() -> None:
    view = machine_row(msgspec.structs.replace(DESKTOP, alive=False, others_use=0.3)).view
    told = view.worker
    assert (told.state, told.free, told.others_use, told.wait_s) == ("silent", None, None, None)
    assert told.unknown["others_use"] == "silent" and [held.loaded for held in view.models] == [None, None]
    assert told.slots == 2 and not view.takes_work


def test_a_domain_that_nobody_could_tell_is_unknown() -> None:
    assert waiting_row(msgspec.structs.replace(WAITING, domain="unknown"), NAMES, 1.0).view.domain is None
    assert waiting_row(msgspec.structs.replace(WAITING, domain="code"), NAMES, 1.0).view.domain == "code"


def test_a_reason_says_whom_it_is_about_where_somebody_else_answers() -> None:
    choice = Choice(model="qwen3", worker="w-1", reason="the least")
    task = msgspec.structs.replace(WAITING, state="completed", worker="w-1", choice=choice)
    other = msgspec.structs.replace(task, model="gemma3")
    moved = msgspec.structs.replace(task, worker="w-2")
    anywhere = msgspec.structs.replace(other, choice=msgspec.structs.replace(choice, worker=None))
    rows = [decision_row(each, NAMES | {"w-2": "laptop"}) for each in (task, other, moved, anywhere)]
    assert [row.view.first for row in rows] == ["", "qwen3 @ desktop", "qwen3 @ desktop", "qwen3"]
    assert {row.view.reason for row in rows} == {"the least"}


def test_loaded_models_come_first_and_hundreds_are_counted() -> None:
    info = DESKTOP.models["qwen3"]
    many = {f"m{n:03}": info for n in range(100)}
    view = machine_row(msgspec.structs.replace(DESKTOP, models=many, resident=frozenset({"m099"}))).view
    assert view.models[0].name == "m099" and len(view.models) + view.more == 100


def test_passing_time_alone_changes_no_waiting_task() -> None:
    first = waiting_row(WAITING, NAMES, 100.0)
    later = waiting_row(msgspec.structs.replace(WAITING, position=9, eta_s=3.0, waited_s=3.0), NAMES, 101.0)
    assert (first.known_by, first.tells) == (later.known_by, later.tells)
    assert (first.view.since, first.view.until, first.view.on) == (98.0, 104.0, "desktop")


def test_another_reason_a_rise_and_a_start_that_became_unknown_do() -> None:
    rise = Rise(of="position", before=1, after=2, code="joined_ahead", words="1 task joined")
    first = waiting_row(WAITING, NAMES, 100.0)
    for changes in ({"reason": "silent: x"}, {"rises": (rise,)}, {"eta_s": None}, {"model": "other"}):
        assert waiting_row(msgspec.structs.replace(WAITING, **changes), NAMES, 100.0).known_by != first.known_by
    assert running_row(msgspec.structs.replace(WAITING, state="running"), NAMES, 1.0).view.until is None


def test_machines_are_listed_as_one_counts() -> None:
    names = ("w10", "w2", "attic", "W1")
    workers = {name: msgspec.structs.replace(DESKTOP, id=name, name=name) for name in names}
    assert [row.id for row in seen(Fleet(workers=workers), (), (), 0.0).fleet] == ["attic", "W1", "w2", "w10"]


def test_what_is_late_says_when_it_was_due_and_no_end() -> None:
    runs = msgspec.structs.replace(WAITING, state="running", ran_s=8.0, ends_s=2.0)
    on_time = running_row(runs, NAMES, 100.0)
    late = running_row(msgspec.structs.replace(runs, ran_s=22.0, ends_s=3.3, late_s=12.0), NAMES, 114.0)
    later = running_row(msgspec.structs.replace(runs, ran_s=32.0, ends_s=4.8, late_s=22.0), NAMES, 124.0)
    assert (on_time.view.until, on_time.view.due) == (102.0, None)
    assert (late.view.until, late.view.due) == (None, 102.0) and late.known_by != on_time.known_by
    assert (late.known_by, late.tells) == (later.known_by, later.tells), "the browser counts on"


def test_lists_keep_the_routers_order_and_a_task_is_in_one_of_them() -> None:
    tasks = [
        WAITING,
        msgspec.structs.replace(WAITING, task="t0"),
        msgspec.structs.replace(WAITING, task="r", state="running"),
    ]
    found = seen(Fleet(workers={w.id: w for w in (LAPTOP, DESKTOP)}), tasks, (), 0.0)
    assert [row.id for row in found.waiting] == ["t1", "t0"] and [row.id for row in found.running] == ["r"]
    assert [row.id for row in found.fleet] == ["w-1", "w-2"]


def test_an_id_tells_when_it_was_made() -> None:

    at = made_at(new_id())
    assert at is not None and abs(at - time.time()) < 60
    assert made_at("t1") is None and made_at("!" * 26) is None
