"""Every decision of a simulated fleet, computed again from what was recorded (issue 4, criterion 7).

The simulator drives the product's own desk through queues, loads, several slots, others' use, silence and open models. What the
desk publishes goes through the codec and is computed again at that moment, from the fold and the statistics it had.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from schemas import codec
from schemas.events import AnyEvent, TaskReleased, TaskRouted, TaskSubmitted, Wants, WorkerInput
from services.router.differences import differences
from services.router.dispatch.actions import Action, Publish
from services.router.dispatch.permits import Limit, Limits
from services.router.policy.routes import Route, Routes, Target
from services.router.recompute import routed_again
from services.router.recompute_release import released_again
from simulation.fleet import instances
from simulation.fleet.physics import MODELS, Instance
from simulation.fleet.product import Product


class Recounted:
    """A run whose every decision is computed again when it is made, with one of its inputs altered now and then."""

    def __init__(self, instance: Instance, **options: Any) -> None:
        self.product = Product(instance, **options)
        self.counts: Counter[str] = Counter()
        self.altered: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._routed: dict[str, TaskRouted] = {}
        self._rng = random.Random(instance.seed)
        self._decide = self.product.desk.decide
        self.product.desk.decide = self._checked  # type: ignore[method-assign]

    def on(self, route: Route) -> Recounted:
        """All its tasks ask for this route, in ten sessions."""
        self.product.desk.routes, publish = Routes(routes={route.name: route}), self.product.publish

        def published(event: AnyEvent, msg_id: str, then: Callable[[bool], None] | None = None) -> None:
            if isinstance(event, TaskSubmitted):
                event = msgspec.structs.replace(event, wants=Wants(route=route.name), session=event.task[-1])
            publish(event, msg_id, then)

        self.product.publish = published  # type: ignore[method-assign]
        return self

    def _checked(self, unix: float) -> list[Action]:
        actions = self._decide(unix)
        for action in actions:
            if isinstance(action, Publish):
                event = codec.decode(codec.encode(action.event))
                if isinstance(event, TaskRouted | TaskReleased):
                    self._check(event)
        return actions

    def _check(self, event: TaskRouted | TaskReleased) -> None:
        if isinstance(event, TaskRouted):
            self._routed[event.task] = event
        self.counts[type(event).__name__] += 1
        self.wrong += [difference.words for difference in self._again(event)]
        name, changed = self._alter(event)
        if changed is not None:
            self.altered[name] += 1
            found = [
                d
                for d in self._again(changed)
                if not d.field.startswith("inputs[") or d.field.endswith(("waiting_s", "free"))
            ]
            if not found:
                self.wrong.append(f"{type(event).__name__} of {event.task}: nobody saw that {name} was altered")

    def _again(self, event: TaskRouted | TaskReleased) -> list[Any]:
        desk = self.product.desk
        task = desk.state.task(event.task)
        assert task is not None
        if isinstance(event, TaskRouted):
            return differences(event, routed_again(task.submitted, event, desk.state.workers, desk.stats))
        routed = self._routed[event.task]
        again = released_again(task.submitted, routed, event, desk.state.workers, desk.stats)
        return differences(event, again)

    def _alter(self, event: TaskRouted | TaskReleased) -> tuple[str, TaskRouted | TaskReleased | None]:
        """One input of the machine that was chosen, altered."""
        if isinstance(event, TaskRouted):
            worker = event.choice.worker if event.choice is not None else None
        else:
            worker = event.expected_worker
        index = next((n for n, given in enumerate(event.inputs) if given.worker == worker), None)
        if index is None:
            return "", None
        given, model = event.inputs[index], event.choice.model if isinstance(event, TaskRouted) else event.model  # type: ignore[union-attr]
        name, value = self._rng.choice(_alterations(given, model, is_release=isinstance(event, TaskReleased)))
        changed = msgspec.structs.replace(given, **{name: value})
        return name, msgspec.structs.replace(event, inputs=(*event.inputs[:index], changed, *event.inputs[index + 1 :]))


def _alterations(given: WorkerInput, model: str, *, is_release: bool) -> list[tuple[str, Any]]:
    loaded = given.resident or ()
    found: list[tuple[str, Any]] = [
        ("others_use", 0.3 if given.others_use != 0.3 else 0.6),
        ("resident", tuple(each for each in loaded if each != model) if model in loaded else (*loaded, model)),
    ]
    if is_release:
        return [*found, ("remaining_s", (*(given.remaining_s or ()), 7.5)), ("free", 0)]
    return [
        *found,
        ("waiting_s", (given.waiting_s or 0.0) + 0.5),
        ("fresh", not given.fresh),
        ("alive", not given.alive),
    ]


TARGETS = tuple(Target(model=model) for model in list(MODELS)[:3])
ROUTES = {
    "policies": Route(name="r", by="policy", targets=TARGETS, plugins={"least_in_flight": 1.0, "saved_prefill": 1.0}),
    "affinity": Route(name="r", by="policy", plugins={"session_affinity": 1.0, "least_completion": 0.5}),
    "turns": Route(name="r", by="round_robin", targets=TARGETS),
}
RUNS: dict[str, tuple[Instance, dict[str, Any]]] = {
    "a burst on two machines, without data": (instances.burst("F2", 3, tasks=20), {}),
    "a busy fleet of six": (instances.steady("F6", 2, load=0.75, tasks=60), {}),
    "open models": (instances.bursty("F3", 4, tasks=40, open_models=True), {"slider": 0.3}),
    "limits": (instances.bursty("F3", 5, tasks=40), {"limits": Limits(model=Limit(default=1), backend=Limit(total=2))}),
}


@pytest.mark.parametrize("name", RUNS)
def test_every_decision_is_the_same_to_the_last_bit_and_every_alteration_is_seen(name: str) -> None:
    instance, options = RUNS[name]
    run = Recounted(instance, **options)
    outcome = run.product.run()
    assert outcome.complete
    assert run.counts["TaskRouted"] == len(instance.jobs)
    assert run.counts["TaskReleased"] >= len(instance.jobs)
    assert run.wrong[:3] == []
    assert {"others_use", "resident", "remaining_s"} <= set(run.altered)


@pytest.mark.parametrize("name", ROUTES)
def test_so_is_every_decision_of_a_route(name: str) -> None:
    run = Recounted(instances.steady("F3", 7, load=0.6, tasks=50)).on(ROUTES[name])
    assert run.product.run().complete
    assert run.counts == {"TaskRouted": 50, "TaskReleased": 50}
    assert run.wrong[:3] == []
