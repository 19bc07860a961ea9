"""Targets that nobody is meant by are named with what is near, before a task waits for them."""

from __future__ import annotations

import pytest

from schemas.errors import UnknownTarget
from services.router.policy.nobody import refuse_nowhere, warnings
from services.router.policy.routes_file import parse_routes
from support.fleets import fleet, model, worker

FLEET = fleet(
    worker("w-1", model("qwen3", backend_name="qwen3:8b"), name="fast"),
    worker("w-2", "smollm2", name="slow", alive=False, paused=True),
)


def routes(targets: str) -> str:
    return f"[canary]\ntargets = [{targets}]\n"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ('{model = "qwen3", worker = "fats"}', "no worker is called 'fats' (nearest: fast)"),
        ('{model = "qwen33"}', "no worker holds the model 'qwen33' (nearest: qwen3, smollm2)"),
        ('{model = "smollm2", worker = "fast"}', "fast does not hold smollm2"),
    ],
)
def test_a_target_that_nobody_is_meant_by_is_a_warning_and_refuses_a_task_where_it_is_the_only_one(
    target: str, words: str
) -> None:
    only = parse_routes(routes(target))
    told = warnings(only, FLEET)
    assert len(told) == 1 and told[0].startswith("canary.targets[0]: ")
    assert words.partition(" (")[0] in told[0]
    with pytest.raises(UnknownTarget, match=words.partition(" (")[0]):
        refuse_nowhere(only.routes["canary"], FLEET)
    refuse_nowhere(parse_routes(routes(f'{target}, {{model = "qwen3:8b"}}')).routes["canary"], FLEET)


def test_a_machine_that_is_silent_or_paused_is_waited_for() -> None:
    found = parse_routes(routes('{model = "smollm2", worker = "slow"}, {model = "smollm2", worker = "w-2"}'))
    assert warnings(found, FLEET) == ()
    refuse_nowhere(found.routes["canary"], FLEET)


def test_a_fallback_that_exists_is_somewhere_and_one_that_does_not_is_a_warning() -> None:
    text = '[a]\ntargets = [{model = "nomodel"}]\nfallback = [{model = "qwen3"}, {model = "none"}]\n'
    found = parse_routes(text)
    refuse_nowhere(found.routes["a"], FLEET)
    assert [line.partition(":")[0] for line in warnings(found, FLEET)] == ["a.targets[0]", "a.fallback[1]"]


def test_a_route_without_targets_is_the_whole_fleet() -> None:
    refuse_nowhere(parse_routes('[a]\nroute_by = "least_in_flight"\n').routes["a"], fleet())
