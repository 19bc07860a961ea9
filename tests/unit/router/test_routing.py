"""Routes at the desk: what is drawn on arrival, where a waiting task may still go, and whom its policies get at the release."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import Any

import pytest

from schemas import events
from schemas.events import AnyEvent, Credit, ModelInfo, RunningAttempt, TaskReleased, TaskRouted, Tokens, Verdict
from schemas.subjects import group_durable, lane_durable
from services.router import desk as desk_module
from services.router.desk import Desk
from services.router.dispatch.actions import EnsureConsumer, Publish
from services.router.dispatch.permits import Limits
from services.router.fleet import Fleet
from services.router.policy.request import RouteRequest
from services.router.policy.routes import Route
from services.router.policy.routes_file import parse_routes
from services.router.policy.session_affinity import rank
from services.router.policy.settle import Pool, pool_of
from services.router.routing import in_flight
from support.builders import build

WEIGHTS = (
    '[r]\ntargets = [{model = "small", weight = 3}, {model = "big", weight = 1}]\nfallback = [{model = "spare"}]\n'
)


class Machines:
    """A desk with machines of our making; what it publishes is stored at once and read back."""

    def __init__(self, routes: str) -> None:
        ids = count()
        self.desk = Desk("router-1", slider=1.0, limits=Limits(), new_id=lambda: f"id-{next(ids)}")
        self.desk.routes = parse_routes(routes)
        self.desk.epoch, self.seq, self.said = 1, 0, count(1)
        self.tell(build(events.DispatcherElected, epoch=1))
        self.desk.beat(0.0, 1_000.0)

    def tell(self, *told: AnyEvent) -> None:
        for event in told:
            self.seq += 1
            self.desk.fold([(event, self.seq, self.seq)])
        self.desk.passed(self.seq)

    def join(self, worker: str, *models: str, free: int = 1) -> None:
        held = tuple(ModelInfo(name=m, backend_name=m, context=8192) for m in models)
        self.tell(
            build(events.WorkerReported, by=worker, worker=worker, name=worker, boot="b", models=held, slots=max(free, 1),
                  backend_id=worker, supports=("cpu_inference",))
        )  # fmt: skip
        self.decide()
        self.credit(worker, free=free)

    def credit(self, worker: str, *running: tuple[str, int], free: int = 1) -> None:
        models = self.desk.state.workers[worker].report.models
        armed = {group_durable(m.capability, m.name): 0 for m in models} | {lane_durable(worker): 0}
        hands = tuple(RunningAttempt(task=t, attempt=n, phase="decode") for t, n in running)
        said = Credit(
            worker=worker,
            boot="b",
            seq=next(self.said),
            slots=free + len(running),
            free=free,
            running=hands,
            armed=armed,
        )
        self.desk.live.hear_credit(said, self.desk.now)
        self.desk.refresh()

    def load(self, worker: str, *resident: str) -> None:
        said = next(self.said)
        load = build(events.WorkerLoad, by=worker, worker=worker, boot="b", seq=said, resident=resident, credit=None)
        self.desk.live.hear_load(load, self.desk.now)
        self.desk.refresh()

    def leave(self, worker: str) -> None:
        self.tell(build(events.WorkerLeft, worker=worker, by=worker, boot="b"))

    def submit(self, task: str, **fields: Any) -> None:
        self.tell(
            build(events.TaskSubmitted, **{"task": task, "wants": events.Wants(route="r"), "session": None} | fields)
        )

    def decide(self) -> list[AnyEvent]:
        published: list[AnyEvent] = []
        for _ in range(10):
            actions = self.desk.decide(1_000.0)
            for action in actions:
                if isinstance(action, EnsureConsumer):
                    self.desk.live.confirmed[action.durable] = 4
                if isinstance(action, Publish):
                    published.append(action.event)  # type: ignore[arg-type]
                    self.tell(action.event)  # type: ignore[arg-type]
                self.desk.live.not_stored(action.key)
            if not actions:
                break
        return published

    def releases(self) -> list[TaskReleased]:
        return [event for event in self.decide() if isinstance(event, TaskReleased)]


def test_the_share_of_a_weight_holds_whatever_the_number_of_its_workers_and_a_retry_does_not_count() -> None:
    fleet = Machines(WEIGHTS)
    for n in range(5):
        fleet.join(f"b{n}", "big", free=0)
    fleet.join("s", "small", free=0)
    for n in range(40):
        fleet.submit(f"t{n}")
    routed = [event for event in fleet.decide() if isinstance(event, TaskRouted)]
    assert Counter(event.target for event in routed) == {"small": 30, "big": 10}
    fleet.credit("s", free=1)
    released = fleet.releases()[0]
    fleet.tell(
        build(events.TaskStarted, task=released.task, attempt=1, worker="s", boot="b", by="s"),
        build(events.AttemptFailed, task=released.task, attempt=1, worker="s", boot="b", by="s", failure="lost"),
    )
    fleet.decide()
    assert fleet.desk.state.draws["r"].counts == {"small": 30, "big": 10}


def test_what_is_decided_before_the_log_says_so_counts_too() -> None:
    fleet = Machines(WEIGHTS)
    fleet.join("a", "small", "big", free=0)
    for n in range(8):
        fleet.submit(f"t{n}")
    at_once = [action.event for action in fleet.desk.decide(1_000.0) if isinstance(action, Publish)]
    assert Counter(event.target for event in at_once if isinstance(event, TaskRouted)) == {"small": 6, "big": 2}


def test_a_drawn_target_is_kept_while_it_can_answer_although_another_is_free() -> None:
    fleet = Machines(WEIGHTS)
    fleet.join("s", "small", free=0)
    fleet.join("b", "big", free=1)
    fleet.submit("t")
    assert fleet.releases() == []
    fleet.credit("s", free=1)
    assert [(r.model, r.expected_worker) for r in fleet.releases()] == [("small", "s")]


def test_case_26_a_target_whose_holders_are_all_gone_falls_to_the_others_and_then_to_the_fallback() -> None:
    fleet = Machines(WEIGHTS)
    for worker, model in (("s", "small"), ("b", "big"), ("x", "spare")):
        fleet.join(worker, model, free=0)
    fleet.submit("t", verdict=Verdict(by="s", probabilities={"small": 1.0}, confidence=1.0))
    assert [e.target for e in fleet.decide() if isinstance(e, TaskRouted)] == ["small"]
    fleet.leave("s")
    fleet.credit("x", free=1)
    assert fleet.releases() == [], "the fallback is no candidate while a target can answer"
    fleet.leave("b")
    assert [r.model for r in fleet.releases()] == ["spare"]


def test_a_release_goes_to_whom_the_policies_prefer_and_waits_for_a_busy_owner() -> None:
    """GPUStack's affinity with four machines: the session stays, whatever runs at its owner."""
    names = [f"w{n}" for n in range(4)]
    owner = min(names, key=lambda name: rank("chat-7", "m", name))
    fleet = Machines('[r]\nroute_by = ["session_affinity", "least_in_flight"]\ntargets = [{model = "m"}]\n')
    for name in names:
        fleet.join(name, "m")
    fleet.submit("one", session="chat-7")
    fleet.submit("two", session="chat-7")
    assert [(r.task, r.expected_worker) for r in fleet.releases()] == [("one", owner)]
    assert owner in fleet.desk.plan().holds["two"]
    assert in_flight(fleet.desk.state) == {owner: 1}


def test_case_16_what_is_in_flight_is_counted_from_live_attempts_and_is_never_below_nought() -> None:
    fleet = Machines('[r]\nroute_by = "least_in_flight"\ntargets = [{model = "m"}]\n')
    for name in ("a", "b"):
        fleet.join(name, "m", free=4)
    for n in range(6):
        fleet.submit(f"t{n}", client=f"c{n}")
        fleet.releases()
    assert in_flight(fleet.desk.state) == {"a": 3, "b": 3}
    for n in range(6):
        failed = build(events.AttemptFailed, task=f"t{n}", attempt=1, failure="not_started", epoch=1, by="router-1")
        fleet.tell(failed, failed)
        fleet.tell(build(events.TaskCancelled, task=f"t{n}"), build(events.TaskCancelled, task=f"t{n}"))
    assert in_flight(fleet.desk.state) == {}


def test_our_affinity_follows_the_machine_that_read_the_conversation_until_it_is_busy() -> None:
    fleet = Machines('[r]\nroute_by = "saved_prefill"\ntargets = [{model = "m"}]\n')
    for name in ("a", "b", "c"):
        fleet.join(name, "m")
        fleet.load(name, "m")
    long = events.Sizes(messages=9, chars=80_000, prompt_tokens=8_000, body_bytes=90_000)
    fleet.tell(
        build(
            events.TaskCompleted,
            task="before",
            worker="c",
            model="m",
            session="s",
            client="me",
            tokens=Tokens(prompt=7_900, output=100),
        )
    )
    fleet.submit("next", session="s", sizes=long)
    assert [r.expected_worker for r in fleet.releases()] == ["c"]
    fleet.credit("c", ("next", 1), free=0)
    fleet.submit("more", session="s", sizes=long)
    assert [r.expected_worker for r in fleet.releases()] != ["c"], "waiting for c costs more than it saves"


def test_a_task_under_a_route_that_was_taken_out_of_the_file_goes_by_the_whole_fleet() -> None:
    fleet = Machines(WEIGHTS)
    fleet.join("x", "other")
    fleet.submit("t")
    assert fleet.releases() == []
    fleet.desk.routes = parse_routes("")
    fleet.desk.refresh()
    fleet.tell(build(events.WorkerReported, worker="y", by="y"))
    assert [r.model for r in fleet.releases()] == ["other"]


def test_tasks_that_ask_for_the_same_are_looked_up_once_until_something_is_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[Fleet] = []

    def counted(route: Route, request: RouteRequest, fleet: Fleet) -> Pool:
        looked.append(fleet)
        return pool_of(route, request, fleet)

    monkeypatch.setattr(desk_module, "pool_of", counted)
    machines = Machines('[r]\ntargets = [{model = "small"}, {model = "big"}]\nroute_by = "least_completion"\n')
    machines.join("w1", "small")
    for n in range(20):
        machines.submit(f"t{n}", domain=events.Domain(label=f"d{n}", method="rules"))
    machines.decide()
    machines.desk.refresh()
    looked.clear()
    assert len(machines.desk.plan().holds) == 19
    assert len(looked) == 1
    machines.join("w2", "big")
    machines.desk.refresh()
    looked.clear()
    assert machines.desk.plan().starts
    assert [len(fleet.workers) for fleet in looked] == [2]


def test_what_any_client_may_insist_on_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_module, "ALLOWED_MOST", 3)
    machines = Machines(WEIGHTS)
    machines.join("w1", "small", free=0)
    for n in range(1, 9):
        machines.submit(f"t{n}", wants=events.Wants(model="small", context=n))
    machines.decide()
    holds = machines.desk.plan().holds
    assert len(holds) == 8
    assert 0 < len(machines.desk._allowed) <= 3
