"""Every reason for waiting has a code that is known and words that say what is the matter."""

from __future__ import annotations

import pytest

from schemas import events
from schemas.events import Choice, WorkerLoad
from services.router.dispatch.completion import Parts
from services.router.dispatch.holds import changed_mind, nobody, why_held
from services.router.dispatch.live import GONE_S
from services.router.dispatch.offers import Offer
from services.router.dispatch.permits import Limit, Limits
from support.builders import build
from support.planning import ANSWER_S, PROMPT_S, Planning


def offer(model: str, worker: str, cost_s: float = 0.0, wait_s: float = 0.0) -> Offer:
    return Offer(model, worker, Parts(wait_s, 0.0, 1.0, 1.0, 0.0), 0.0, 0.5, cost_s, True, True, 0, 1, 0)


def why(desk: Planning, task: str = "t1") -> str:
    return nobody(desk.task(task), desk.state, desk.live, desk.now, desk.outlook)


@pytest.fixture
def desk() -> Planning:
    desk = Planning()
    desk.joins("w1")
    desk.arrives("t1", model="m")
    return desk


def test_waiting_for_a_faster_machine_says_for_which_and_how_long() -> None:
    assert why_held(offer("m", "w1", wait_s=3.14), "desk", True) == (
        "waiting_for_faster: desk is free in about 3.1 s, and done sooner than a machine that is free now"
    )
    for soon_s in (0.0, 0.1):
        assert why_held(offer("m", "w1", wait_s=soon_s), "desk", False) == (
            "busy: every machine that could answer is busy; desk is free in a moment"
        )


def test_nobody_holds_the_model(desk: Planning) -> None:
    desk.arrives("t2", model="unheard-of")
    assert why(desk, "t2") == "no_worker: nobody who holds unheard-of is there"
    desk.tell(build(events.WorkerLeft, worker="w1", boot="b1"))
    assert why(desk).startswith("no_worker: nobody who holds m ")


def test_a_machine_holds_it_that_does_not_support_what_it_needs(desk: Planning) -> None:
    desk.report("w2", models=(events.ModelInfo(name="seen", backend_name="seen", capability="gpu_inference"),))
    desk.arrives("t2", model="seen")
    assert why(desk, "t2") == "no_capability: seen needs gpu_inference, which no machine that holds it supports"


def test_all_who_hold_it_are_taken_out(desk: Planning) -> None:
    desk.tell(build(events.WorkerPaused, worker="w1", for_s=None))
    assert why(desk).startswith("no_worker: paused: ") and why(desk).endswith(" until it is resumed")
    assert desk.plan().holds["t1"] == why(desk)


def test_silence_becomes_absence(desk: Planning) -> None:
    desk.wait(7.0)
    assert desk.code("t1") == "silent"
    desk.wait(GONE_S)
    assert desk.code("t1") == "no_worker"


def test_a_suspect_was_not_heard_lately(desk: Planning) -> None:
    desk.live.workers["w1"].suspect = True
    assert "nothing was heard lately" in why(desk) and desk.code("t1") == "silent"


def test_a_model_server_that_does_not_answer_is_named(desk: Planning) -> None:
    desk.live.hear_load(build(WorkerLoad, by="w1", worker="w1", boot="b1", backend_up=False, credit=None), desk.now)
    assert "the model server of" in desk.plan().holds["t1"] and desk.code("t1") == "silent"


def test_a_machine_that_offers_no_slot_is_there_and_says_so(desk: Planning) -> None:
    desk.credit("w1", free=0)
    assert "offers no slot now" in desk.plan().holds["t1"]
    desk.credit("w1", free=1, draining=True)
    assert desk.went() == [] and desk.code("t1") == "silent"


def test_each_limit_has_its_own_code() -> None:
    for kind, code in (("model", "model_full"), ("client", "client_full"), ("backend", "backend_full")):
        desk = Planning(Limits(**{kind: Limit(1)}))
        desk.joins("w1", free=2)
        desk.arrives("t1", model="m")
        desk.arrives("t2", model="m")
        planned = desk.plan()
        assert ([r.task for r in planned.releases], planned.holds["t2"].partition(": ")[0]) == (["t1"], code)
        assert planned.starts["t2"] == pytest.approx(PROMPT_S + ANSWER_S), "when the one that has the permit is done"


def test_what_is_not_decided_yet_and_what_cannot_be_are_told_apart(desk: Planning) -> None:
    desk.submit("t2")
    assert desk.code("t2") == "routing"
    desk.live.unanswered["t2"] = "nobody holds a model that sees"
    assert desk.plan().holds["t2"] == "no_model: nobody holds a model that sees"


def test_of_one_that_is_silent_and_one_that_is_taken_out_both_are_named(desk: Planning) -> None:
    desk.joins("w2", name="laptop")
    desk.tell(build(events.WorkerPaused, worker="w1", for_s=None))
    desk.wait(GONE_S + 1)
    told = why(desk)
    assert told.startswith("no_worker: nothing was heard for ") and " of laptop; paused: desk " in told
    assert told.endswith(" until it is resumed")


def test_a_backend_that_failed_gets_a_pause(desk: Planning) -> None:
    desk.live.retry_at["t1", 1] = desk.now + 4.0
    assert desk.plan().holds["t1"] == "backoff: tries again in 4 s"
    desk.wait(4.0)
    desk.credit("w1")
    assert desk.went() == [("t1", "w1")]


NAMES = {"w1": "desk", "w2": "laptop"}


@pytest.mark.parametrize("first", [None, Choice(model="m", worker="w1"), Choice(model="m")])
def test_the_first_idea_needs_no_reason(first: Choice | None) -> None:
    assert changed_mind(offer("m", "w1"), first, [offer("m", "w1")], NAMES) is None


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (Choice(model="m", worker="w2"), "m on laptop would cost 5.0 s more now"),
        (Choice(model="n", worker="w2"), "nobody who holds n is there now"),
        (Choice(model="n"), "nobody who holds n is there now"),
        (Choice(model="m", worker="w3"), "m on w3 cannot be had now"),
    ],
)
def test_another_pair_than_the_first_idea_says_why(first: Choice, words: str) -> None:
    offers = [offer("m", "w1", 2.0), offer("m", "w2", 7.0)]
    assert changed_mind(offers[0], first, offers, NAMES) == words


@pytest.mark.parametrize(
    ("cost_s", "is_free", "words"),
    [
        (2.0, False, "has no slot now"),
        (2.0, True, "would cost 5.0 s less, but a limit holds it back or the route's policies prefer this one"),
        (7.0, True, "would cost the same"),
        (7.01, True, "would cost less than 0.1 s more now"),
    ],
)
def test_a_pair_that_is_not_cheaper_is_taken_for_a_reason(cost_s: float, is_free: bool, words: str) -> None:
    offers = [offer("m", "w1", 7.0), offer("m", "w2", cost_s)._replace(free=is_free)]
    assert changed_mind(offers[0], Choice(model="m", worker="w2"), offers, NAMES) == f"m on laptop {words}"
