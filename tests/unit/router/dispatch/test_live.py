"""What is heard and not stored: whose word counts, what is pending, what is forgotten."""

from __future__ import annotations

from typing import Any

from schemas import events
from schemas.events import Credit
from services.router.dispatch.live import Live
from services.router.dispatch.state import RouterState
from support.builders import build


def credit(boot: str, seq: int = 1, free: int = 1, **fields: Any) -> Credit:
    return Credit(worker="w1", boot=boot, seq=seq, slots=2, free=free, **fields)


def reported(*boots: str) -> RouterState:
    state = RouterState()
    for seq, boot in enumerate(boots, 1):
        state.apply(build(events.WorkerReported, worker="w1", by="w1", boot=boot), seq, 0)
    return state


def test_an_older_credit_of_the_same_boot_changes_nothing() -> None:
    live = Live()
    live.hear_credit(credit("b1", seq=5, free=2), 1.0)
    live.hear_credit(credit("b1", seq=4, free=0), 2.0)
    heard = live.workers["w1"]
    assert heard.credit is not None and (heard.credit.free, heard.credit_at) == (2, 1.0)


def test_a_word_of_a_former_boot_is_not_listened_to() -> None:
    live = Live()
    live.hear_credit(credit("b1"), 1.0)
    live.hear_credit(credit("b2"), 2.0)
    live.hear_credit(credit("b1", seq=9), 3.0)
    assert (live.workers["w1"].boot, live.workers["w1"].heard_at) == ("b2", 2.0)


def test_the_log_says_which_boot_is_the_present_one_whichever_message_came_late() -> None:
    live = Live()
    live.tidy(reported("b1"))
    live.hear_credit(credit("b2"), 1.0)
    live.hear_credit(credit("b1"), 2.0)  # sent before b2 was there, and delivered late
    live.tidy(reported("b1", "b2"))
    live.hear_credit(credit("b2", seq=2), 3.0)
    live.hear_credit(credit("b1", seq=2), 4.0)
    assert (live.workers["w1"].boot, live.workers["w1"].heard_at) == ("b2", 3.0)


def test_a_boot_that_the_log_knows_is_never_silenced_by_a_stray_message() -> None:
    live = Live()
    live.tidy(reported("b1", "b2"))
    live.hear_credit(credit("b2"), 1.0)
    live.hear_credit(credit("stray"), 2.0)
    live.hear_credit(credit("b2", seq=2), 3.0)
    assert live.workers["w1"].boot == "b2"
    live.hear_credit(credit("stray", seq=2), 4.0)
    assert live.workers["w1"].boot == "b2"


def test_a_suspect_is_trusted_again_after_its_next_credit_and_not_after_a_mere_load() -> None:
    live = Live()
    live.hear_credit(credit("b1"), 1.0)
    live.workers["w1"].suspect = True
    live.hear_load(build(events.WorkerLoad, worker="w1", boot="b1", credit=None), 2.0)
    assert live.workers["w1"].suspect
    live.hear_credit(credit("b1", seq=2), 3.0)
    assert not live.workers["w1"].suspect


def test_a_heartbeat_heals_a_lost_credit() -> None:
    live = Live()
    live.hear_load(build(events.WorkerLoad, worker="w1", boot="b1", credit=credit("b1", free=2)), 1.0)
    heard = live.workers["w1"]
    assert heard.load is not None and heard.credit is not None and heard.credit.free == 2


def test_what_was_stored_is_pending_until_the_fold_has_passed_it() -> None:
    live = Live(pending={"a": None, "b": None, "c": None})
    live.stored("a", 7)
    live.not_stored("b")
    live.stored("never asked", 1)
    live.folded(6)
    assert live.pending == {"a": 7, "c": None}
    live.folded(7)
    assert live.pending == {"c": None}


def test_a_new_term_begins_with_fresh_deadlines() -> None:
    live = Live(items={("t", 1): (3, 0.0)}, retry_at={("t", 2): 9.0})
    live.lease(("t", 1), "b1", 0.0)
    live.elected()
    assert (live.items, live.leases, live.retry_at) == ({}, {}, {})
