"""Decisions about random fleets, stored, and computed again from what was stored."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from schemas import codec
from schemas.events import ModelInfo, Options, TaskRouted, TaskSubmitted, Verdict, Wants, WorkerReported
from schemas.statistics import Statistics
from services.router.differences import differences
from services.router.dispatch.worker_record import WorkerRecord
from services.router.fleet import Fleet, WorkerView
from services.router.policy.decide import decide
from services.router.policy.plugin import LastServed
from services.router.policy.request import request_of
from services.router.policy.routes import Route, Target
from services.router.policy.routing import Routing
from services.router.recompute import fleet_then, routed_again
from support.builders import build
from support.choosing import route
from support.fleets import NOW_US, cell, model, worker

MODELS = ("small", "middle", "large")
UNIX = NOW_US / 1e6 + 0.123457


class Case:
    """A task, a fleet and statistics drawn from ``seed``."""

    def __init__(self, seed: int, *, machines: int = 5, routing: Routing | None = None, **wants: Any) -> None:
        rng = random.Random(seed)
        views = [self._view(rng, f"w-{n}") for n in range(machines)]
        self.fleet = Fleet(workers={view.id: view for view in views})
        self.stats = Statistics(
            cell(model, "code", view.id, n=rng.randrange(1, 30), decode=rng.uniform(5, 90), quality=rng.random())
            for view in views[: machines // 2]
            for model in MODELS[:2]
        )
        self.workers = {view.id: WorkerRecord(report=_report(view), seq=1) for view in views}
        self.submitted: TaskSubmitted = build(
            TaskSubmitted,
            wants=Wants(**wants),
            options=Options(max_tokens=rng.choice((None, 64)), slider=rng.choice((None, 0.0, 0.3))),
        )
        decision = decide(
            request_of(self.submitted), self.fleet, self.stats, seed=seed, now_us=int(UNIX * 1e6), slider=1.0,
            routing=routing,
        )  # fmt: skip
        routed = decision.routed(self.submitted.task, id="d1", at=UNIX, by="r1", epoch=1)
        stored = codec.decode(codec.encode(msgspec.structs.replace(routed, folded=7, exact=True)))
        assert isinstance(stored, TaskRouted)
        self.routed = stored

    def _view(self, rng: random.Random, worker: str) -> WorkerView:
        held = rng.sample(MODELS, rng.randrange(1, len(MODELS) + 1))
        digest = rng.choice(("d1", "d1", "d2"))
        infos = [
            ModelInfo(name=m, backend_name=f"{m}.gguf", digest=digest, bytes=rng.choice((None, 10**9))) for m in held
        ]
        return WorkerView(
            id=worker,
            name=f"name of {worker}",
            boot="b1",
            models={info.name: info for info in infos},
            slots=2,
            free=rng.choice((None, 0, 1)),
            running=rng.choice((None, 0, 1)),
            wait_s=rng.choice((None, 0.0, rng.expovariate(0.2))),
            resident=rng.choice((None, frozenset(), frozenset(held))),
            others_use=rng.choice((None, 0.0, rng.random())),
            others_reason="no_agent",
            credit_age_s=rng.random(),
            alive=rng.random() < 0.9,
            fresh=rng.random() < 0.8,
            draining=rng.random() < 0.1,
            paused=rng.random() < 0.1,
            backend="ollama",
        )

    def again(self, routed: TaskRouted | None = None) -> list[str]:
        """Where it comes out otherwise."""
        routed = routed or self.routed
        found = differences(routed, routed_again(self.submitted, routed, self.workers, self.stats))
        return [difference.field for difference in found]

    def with_input(self, index: int, **changes: Any) -> TaskRouted:
        inputs = list(self.routed.inputs)
        inputs[index] = msgspec.structs.replace(inputs[index], **changes)
        return msgspec.structs.replace(self.routed, inputs=tuple(inputs))


def _report(view: WorkerView) -> WorkerReported:
    return build(
        WorkerReported,
        worker=view.id,
        name=view.name,
        boot=view.boot,
        supports=view.supports,
        slots=view.slots,
        backend=view.backend,
        models=tuple(view.models.values()),
    )


@pytest.mark.parametrize("seed", range(60))
def test_any_decision_comes_out_the_same_to_the_last_bit(seed: int) -> None:
    assert Case(seed).again() == []


@pytest.mark.parametrize("seed", range(20))
def test_so_does_one_about_more_machines_than_are_recorded(seed: int) -> None:
    case = Case(seed, machines=90)
    assert len(case.routed.inputs) < 90
    assert case.again() == []


def test_what_is_recorded_of_two_hundred_machines_stays_below_what_an_event_may_have() -> None:
    held = [model(f"some-model-name:{n}b", digest="sha256:" + "9f" * 32) for n in range(6)]
    views = [
        worker(f"01kbq0zkk8n9s4m5v2d3xw{n:04d}", *held, wait_s=1.2345678901, others_use=0.123456, draining=n >= 100)
        for n in range(200)
    ]
    known = [cell(each.name, "code", view.id, decode=33.3, quality=0.7777) for each in held for view in views[:50]]
    routed = route(views, known)
    assert (len(routed.candidates), len(routed.removed)) == (32, 64)
    assert len(codec.encode(routed)) < 64 * 1024


@pytest.mark.parametrize("wants", [{"model": "middle"}, {"worker": "w-1"}, {"context": 4096}])
@pytest.mark.parametrize("seed", range(5))
def test_so_does_one_about_a_task_that_insists(seed: int, wants: dict[str, Any]) -> None:
    try:
        case = Case(seed, **wants)
    except LookupError:
        pytest.skip("nobody holds the model in this draw")
    assert case.again() == []


@pytest.mark.parametrize("seed", range(20))
def test_so_does_one_of_a_route_with_policies(seed: int) -> None:
    targets = (Target(model="small"), Target(model="middle"), Target(model="large"))
    plugins = {"least_in_flight": 1.0, "saved_prefill": 0.5, "least_completion": 0.7, "legacy_mended": 0.2}
    route = Route(name="auto", by="policy", targets=targets, plugins=plugins)
    last = LastServed(model="small", worker="w-1", tokens=900)
    case = Case(seed, routing=Routing(route=route, last=last, in_flight={"w-0": 2, "w-1": 1}), route="auto")
    assert any(candidate.votes for candidate in case.routed.candidates) or not case.routed.candidates
    assert case.again() == []
    if len(case.routed.inputs) > 1 and len({c.worker for c in case.routed.candidates}) > 1:
        index = next(n for n, i in enumerate(case.routed.inputs) if i.worker == case.routed.candidates[0].worker)
        busier = case.with_input(index, in_flight=9)
        assert [field for field in case.again(busier) if field.startswith("candidates")]


def plain() -> Case:
    """Two machines that say everything and can both answer."""
    case = Case(1, machines=2)
    assert case.routed.candidates
    return case


@pytest.mark.parametrize(
    "change",
    [
        {"waiting_s": 9.25},
        {"others_use": 0.31},
        {"others_use": None},
        {"resident": ()},
        {"resident": None},
        {"alive": False},
        {"fresh": False},
        {"draining": True},
        {"paused": True},
    ],
    ids=str,
)
def test_each_recorded_input_that_is_altered_changes_the_result(change: dict[str, Any]) -> None:
    told = {"waiting_s": 0.5, "others_use": 0.1, "alive": True, "fresh": True, "draining": False, "paused": False}
    case = plain()
    views = {
        name: msgspec.structs.replace(
            view, wait_s=0.5, others_use=0.1, resident=frozenset(view.models), alive=True, fresh=True, draining=False,
            paused=False,
        )
        for name, view in case.fleet.workers.items()
    }  # fmt: skip
    decision = decide(
        request_of(case.submitted), Fleet(workers=views), case.stats, seed=1, now_us=int(UNIX * 1e6), slider=1.0
    )
    case.routed = msgspec.structs.replace(
        decision.routed(case.submitted.task, id="d1", at=UNIX, by="r1", epoch=1), folded=7, exact=True
    )
    assert case.again() == []
    assert all(getattr(case.routed.inputs[0], name) == value for name, value in told.items())
    found = case.again(case.with_input(0, **change))
    assert [field for field in found if not field.startswith("inputs")]


@pytest.mark.parametrize("change", [{"position": 4}, {"at": UNIX + 5}, {"service_s": 1.0}, {"choice": None}], ids=str)
def test_what_is_altered_besides_the_inputs_is_seen_too(change: dict[str, Any]) -> None:
    case = plain()
    assert case.again(msgspec.structs.replace(case.routed, **change))


def test_the_lot_that_decided_between_equals_is_drawn_again() -> None:
    case = plain()
    twins = {name: msgspec.structs.replace(case.fleet.workers["w-0"], id=name) for name in ("w-0", "w-1")}
    case.workers = {name: WorkerRecord(report=_report(view), seq=1) for name, view in twins.items()}
    results: dict[str | None, TaskRouted] = {}
    for seed in range(20):
        decision = decide(
            request_of(case.submitted),
            Fleet(workers=twins),
            Statistics(),
            seed=seed,
            now_us=int(UNIX * 1e6),
            slider=1.0,
        )
        routed = decision.routed(case.submitted.task, id="d1", at=UNIX, by="r1", epoch=1)
        assert routed.choice is not None
        results[routed.choice.worker] = routed
    case.stats = Statistics()
    assert len(results) == 2
    assert [case.again(routed) for routed in results.values()] == [[], []]
    first, second = results.values()
    assert case.again(msgspec.structs.replace(first, seed=second.seed))


def test_other_statistics_come_out_otherwise() -> None:
    case = plain()
    case.stats.put(cell("small", "code", "w-0", decode=3.0, age_s=1.0))
    case.stats.put(cell("large", "code", "w-0", decode=3.0, age_s=1.0))
    assert case.again()


def test_another_report_comes_out_otherwise() -> None:
    case = plain()
    worker = case.routed.candidates[0].worker
    record = case.workers[worker]
    models = tuple(msgspec.structs.replace(info, bytes=77 * 10**9) for info in record.report.models)
    case.workers[worker] = WorkerRecord(report=msgspec.structs.replace(record.report, models=models), seq=2)
    assert case.again()


def test_of_a_machine_without_inputs_nothing_is_believed() -> None:
    case = plain()
    view = fleet_then(case.workers, {}).workers["w-0"]
    assert (view.alive, view.fresh, view.wait_s, view.resident, view.others_use) == (False, False, None, None, None)


def test_a_verdict_of_a_decision_service_is_part_of_the_task_and_counts_again() -> None:
    submitted = build(TaskSubmitted, verdict=Verdict(by="judge", probabilities={"small": 1.0}, confidence=1.0))
    assert request_of(submitted).verdict == submitted.verdict
