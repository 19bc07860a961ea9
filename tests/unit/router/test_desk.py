"""The desk in situations that must not stop it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

import msgspec
import pytest

from schemas import events
from schemas.subjects import group_durable, lane_durable
from services.router.desk import Desk
from services.router.dispatch.actions import Publish, Wake
from services.router.dispatch.permits import Limits
from services.router.dispatch.turn import Absence
from services.router.policy.decide import Decision
from services.router.policy.request import RouteRequest
from support.builders import CREDIT, DESK, LAPTOP, MODEL, QWEN, TASK, build


def test_a_task_whose_models_last_holder_left_waits_and_stops_nobody() -> None:
    numbers = count()
    desk = Desk("router-1", slider=1.0, limits=Limits(), new_id=lambda: f"id-{next(numbers)}")
    told: list[events.AnyEvent] = [
        build(events.DispatcherElected, epoch=1),
        build(events.WorkerReported),
        build(events.TaskSubmitted, wants=events.Wants(model=QWEN)),
        build(events.WorkerLeft),
    ]
    desk.fold([(event, seq, seq) for seq, event in enumerate(told, 1)])
    desk.epoch = 1
    assert desk.decide(1.0) == []
    desk.fold([(build(events.WorkerReported, worker=LAPTOP, by=LAPTOP), 5, 5)])
    published = [action.event for action in desk.decide(2.0) if isinstance(action, Publish)]
    routed = next(event for event in published if isinstance(event, events.TaskRouted))
    assert routed.choice is not None
    assert (routed.choice.model, routed.choice.worker) == (QWEN, LAPTOP)


class Seconds:
    """A desk whose pulses come when the test says, one second apart."""

    def __init__(self) -> None:
        numbers = count()
        self.desk = Desk("router-1", slider=1.0, limits=Limits(), new_id=lambda: f"id-{next(numbers)}")
        self.desk.clock.interval_s = 1.0
        self.desk.epoch = 1
        self.seq = 0
        self.tell(build(events.DispatcherElected, epoch=1))
        self.desk.beat(0.0, 1_000.0)

    def tell(self, *told: events.AnyEvent) -> None:
        for event in told:
            self.seq += 1
            self.desk.fold([(event, self.seq, self.seq)])
        self.desk.passed(self.seq)

    def beat(self, times: int = 1) -> None:
        for _ in range(times):
            self.desk.beat(self.desk.now + 1.0, 1_000.0 + self.desk.now)


def test_how_long_a_task_was_held_under_which_reason_is_known() -> None:
    seconds = Seconds()
    seconds.tell(build(events.WorkerReported), build(events.TaskSubmitted), build(events.TaskRouted, epoch=1))
    seconds.beat(3)
    assert seconds.desk.live.waits[TASK].held_s == {"silent": 3.0}
    seconds.tell(build(events.TaskCancelled))
    seconds.desk.decide(2_000.0)
    assert seconds.desk.live.waits == {}


def test_a_router_that_does_not_decide_holds_nobody() -> None:
    seconds = Seconds()
    seconds.desk.epoch = -1
    seconds.tell(build(events.WorkerReported), build(events.TaskSubmitted))
    seconds.beat(3)
    assert seconds.desk.live.waits == {}


def test_a_task_that_nobody_can_answer_is_not_asked_about_with_every_credit() -> None:
    seconds = Seconds()
    asked: list[str] = []
    decision = seconds.desk.decision

    def counted(request: RouteRequest, task: str, unix: float) -> Decision:
        asked.append(task)
        return decision(request, task, unix)

    seconds.desk.decision = counted  # type: ignore[method-assign]
    seconds.tell(build(events.TaskSubmitted))
    for _ in range(5):
        seconds.desk.decide(1.0)
    assert len(asked) == 1
    seconds.beat(2)
    seconds.desk.decide(2.0)
    assert len(asked) == 2
    seconds.tell(build(events.WorkerReported))
    assert seconds.desk.decide(2.0)
    assert len(asked) == 3


def test_a_release_says_what_it_expected_and_what_it_knew() -> None:
    seconds = Seconds()
    seconds.tell(build(events.WorkerReported), build(events.TaskSubmitted))
    durables = (lane_durable(DESK), group_durable("cpu_inference", QWEN))
    seconds.desk.live.confirmed.update(dict.fromkeys(durables, 2))
    seconds.desk.live.hear_credit(CREDIT, seconds.desk.now)
    seconds.desk.refresh()
    published = [action.event for action in seconds.desk.decide(1_000.0) if isinstance(action, Publish)]
    released = next(event for event in published if isinstance(event, events.TaskReleased))
    assert released.expected_worker == DESK
    assert released.predicted.total_s is not None and released.cost_s is not None
    assert [given.worker for given in released.inputs] == [DESK]
    assert released.position == seconds.desk.stats.position


def test_the_fleet_is_made_once_until_something_changes() -> None:
    seconds = Seconds()
    seconds.tell(build(events.WorkerReported))
    first = seconds.desk.fleet(1.0)
    assert seconds.desk.fleet(1.0) is first
    seconds.desk.refresh()
    assert seconds.desk.fleet(1.0) is not first


def test_a_task_that_nobody_can_answer_says_why_it_waits() -> None:
    seconds = Seconds()
    wishes = (
        events.Wants(),
        events.Wants(model=QWEN, worker="nobody"),
        events.Wants(model="gone"),
        events.Wants(capability="tpu_inference"),
    )
    seconds.tell(*(build(events.TaskSubmitted, task=f"t{n}", wants=wants) for n, wants in enumerate(wishes)))
    seconds.desk.decide(1.0)
    seconds.desk.refresh()
    assert seconds.desk.plan().holds["t0"] == "no_model: no machine has reported a model"
    seconds.tell(build(events.WorkerReported))
    seconds.desk.decide(2.0)
    holds = seconds.desk.plan().holds
    assert holds["t1"].startswith("no_model: worker: nobody is called nobody")
    assert holds["t2"].startswith("no_model: ") and QWEN in holds["t2"]
    assert holds["t3"] == "no_capability: tpu_inference was asked for, has gpu_inference, cpu_inference, chat, tools"
    assert set(seconds.desk.live.unanswered) == {"t0", "t1", "t2", "t3"}
    seconds.desk.decide(3.0)
    assert set(seconds.desk.live.unanswered) == {"t1", "t2", "t3"}


def narrowing(wants: events.Wants, **submitted: object) -> Seconds:
    """A task that was accepted while nobody knew the model's window; then its machine says that it is 8,192."""
    return changing(wants, before={"context": None}, after={"context": 8192}, **submitted)


def changing(
    wants: events.Wants, *, before: Mapping[str, object], after: Mapping[str, object], **submitted: object
) -> Seconds:
    """A task that was accepted and waits, and then its machine says something else of its model."""
    seconds = Seconds()
    seconds.desk.absence = Absence(wait_s=30.0)
    seconds.tell(
        build(events.WorkerReported, models=(msgspec.structs.replace(MODEL, **before),)),
        build(events.TaskSubmitted, wants=wants, **submitted),
        build(events.TaskRouted, epoch=1),
        build(events.WorkerReported, models=(msgspec.structs.replace(MODEL, **after),)),
    )
    seconds.desk.live.confirmed.update(dict.fromkeys((lane_durable(DESK), group_durable("cpu_inference", QWEN)), 2))
    seconds.desk.live.hear_credit(CREDIT, seconds.desk.now)
    seconds.desk.refresh()
    return seconds


def facts(seconds: Seconds) -> list[events.AnyEvent]:
    return [action.event for action in seconds.desk.decide(1_000.0) if isinstance(action, Publish)]


def test_case_27_a_window_wished_for_is_no_condition_once_the_real_one_is_known() -> None:
    seconds = narrowing(events.Wants(model=QWEN, context=32_768, context_flexible=True))
    assert [type(fact) for fact in facts(seconds)] == [events.TaskReleased]


LONG = events.Sizes(messages=1, chars=80_000, prompt_tokens=20_000, body_bytes=80_000)


@pytest.mark.parametrize(
    ("wants", "sizes", "lack"),
    [
        (events.Wants(model=QWEN, context=32_768), None, "32768 tokens were asked for, qwen3:8b has 8192"),
        (events.Wants(model=QWEN), LONG, "the prompt has about 20000 tokens, qwen3:8b has 8192"),
        (events.Wants(), LONG, "the prompt has about 20000 tokens, qwen3:8b has 8192"),
    ],
)
def test_what_turns_out_to_be_impossible_waits_with_that_reason_and_is_then_refused(
    wants: events.Wants, sizes: events.Sizes | None, lack: str
) -> None:
    seconds = narrowing(wants, **({} if sizes is None else {"sizes": sizes}))
    assert facts(seconds) == []
    assert seconds.desk.plan().holds[TASK] == f"no_capability: desk: {lack}"
    for _ in range(32):
        seconds.beat()
        seconds.desk.live.hear_credit(msgspec.structs.replace(CREDIT, seq=CREDIT.seq + 1), seconds.desk.now)
    (end,) = facts(seconds)
    assert isinstance(end, events.TaskFailed)
    assert (end.failure, end.detail) == ("rejected", f"no machine can answer it (desk: {lack})")


def test_while_another_holder_is_only_away_the_words_tell_both() -> None:
    seconds = narrowing(events.Wants(model=QWEN, context=32_768))
    away = (msgspec.structs.replace(MODEL, context=65_536),)
    seconds.tell(build(events.WorkerReported, worker=LAPTOP, by=LAPTOP, name="laptop", models=away))
    assert seconds.desk.plan().holds[TASK] == "silent: nothing was heard lately of laptop"
    seconds.beat(32)
    (end,) = facts(seconds)
    assert isinstance(end, events.TaskFailed) and end.failure == "busy"
    assert "(laptop has been silent since the router's start" in end.detail
    assert end.detail.endswith("; desk: 32768 tokens were asked for, qwen3:8b has 8192)")


def test_a_task_finds_its_model_under_the_name_that_it_has_now() -> None:
    """Machines agree on a model's name anew when another joins: the former one is an alias then."""
    renamed = {"name": "qwen3:8b-instruct", "aliases": ("qwen3", QWEN)}
    seconds = changing(events.Wants(model=QWEN), before={}, after=renamed)
    (released,) = facts(seconds)
    assert isinstance(released, events.TaskReleased) and released.model == "qwen3:8b-instruct"


def test_a_machine_that_was_asked_for_and_gave_the_model_up_is_named_alone() -> None:
    seconds = changing(events.Wants(model=QWEN, worker=DESK), before={}, after={"name": "another", "aliases": ()})
    other = (msgspec.structs.replace(MODEL, digest="d2"),)
    seconds.tell(build(events.WorkerReported, worker=LAPTOP, by=LAPTOP, name="laptop", models=other))
    assert seconds.desk.plan().holds[TASK] == f"no_capability: desk: does not hold {QWEN}"


def test_whoever_may_not_serve_a_task_is_not_woken_for_it() -> None:
    seconds = narrowing(events.Wants(model=QWEN, context=32_768))
    seconds.desk.absence = Absence(wait_s=30.0, wakeable=frozenset({"laptop", "nas"}))
    for name, context in (("laptop", 4096), ("nas", 65_536)):
        models = (msgspec.structs.replace(MODEL, context=context),)
        seconds.tell(build(events.WorkerReported, worker=name, by=name, name=name, models=models))
    seconds.beat(2)
    wakes = [action for action in seconds.desk.decide(1_000.0) if isinstance(action, Wake)]
    assert wakes == [Wake("nas", "nas")]


def test_why_nobody_can_is_told_by_those_who_hold_the_model() -> None:
    seconds = Seconds()
    stranger = (msgspec.structs.replace(MODEL, name="a", backend_name="a", aliases=(), digest="d2"),)
    unable = (msgspec.structs.replace(MODEL, lacks=("tools",), capabilities=("chat",)),)
    sizes = events.Sizes(messages=1, chars=8, prompt_tokens=2, body_bytes=8, tools=1)
    seconds.tell(
        build(events.WorkerReported, worker="a", by="a", name="a", models=stranger),
        build(events.WorkerReported, models=unable),
        build(events.TaskSubmitted, wants=events.Wants(model=QWEN), sizes=sizes),
    )
    seconds.desk.decide(1.0)
    assert seconds.desk.live.unanswered[TASK] == f"tools: {QWEN} takes no tools"
