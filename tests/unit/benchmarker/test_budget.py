"""Unasked work starts only where it disturbs nobody, and stays within its share."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.events import Bench
from services.benchmarker.budget import UNREAD, left, may_start, must_stop, wanted, why_not
from services.benchmarker.debts import Debt
from support.bench_world import GB, World, gpu, info


def a_debt(reason: str = "joined", worker: str = "desk", **fields: Any) -> Debt:
    given = {"kind": "probe", "model": "m", "domain": "general", "gain": 1.0}
    free = reason in ("joined", "woke", "new_model", "digest")
    return Debt(**{**given, "reason": reason, "worker": worker, "free": free, **fields})


def a_world(**load: Any) -> World:
    world = World()
    world.join("desk", "m", **load)
    world.passes(10)
    return world


def test_five_idle_seconds_come_first() -> None:
    world = World()
    world.join("desk", "m")
    world.passes(4.5)
    assert why_not(a_debt(), world.fleet, world.now_us) == "it has been idle for less than 5 s"
    world.passes(0.5)
    assert may_start(a_debt(), world.fleet, world.now_us)
    world.ran("desk")
    assert not may_start(a_debt(), world.fleet, world.now_us)
    world.passes(5)
    assert may_start(a_debt(), world.fleet, world.now_us)


@pytest.mark.parametrize(
    ("load", "why"),
    [
        ({"gpus": (gpu(use=0.5),), "others_use": 0.5}, "others use 50 % of it"),
        ({"gpus": (gpu(),), "others_use": 0.0, "on_battery": True}, "it runs on battery"),
        ({"backend_up": False}, "its model server does not answer"),
    ],
)
def test_a_game_a_battery_or_a_dead_backend_keep_even_a_join_probe_back(load: dict[str, Any], why: str) -> None:
    world = a_world(**load)
    assert why_not(a_debt(), world.fleet, world.now_us) == why


def test_the_pressure_of_a_machine_without_a_gpu_keeps_back_what_is_unasked_by_choice_only() -> None:
    world = a_world(others_use=0.6)
    world.passes(86_400)
    assert may_start(a_debt("woke"), world.fleet, world.now_us)
    assert why_not(a_debt("stale"), world.fleet, world.now_us) == "others use 60 % of it"


def test_a_machine_that_tells_nothing_gets_its_join_probe_and_no_more() -> None:
    world = a_world(others_use=None)
    world.passes(86_400)
    assert may_start(a_debt(), world.fleet, world.now_us)
    for reason in ("woke", "stale", "uncertain", "unmeasured", "drift"):
        assert why_not(a_debt(reason), world.fleet, world.now_us) == "it does not say whether somebody else uses it"


def test_a_machine_is_not_idle_while_its_neighbour_on_the_same_host_works() -> None:
    world = World()
    for worker in ("ollama", "studio"):
        world.join(worker, "m", host="desk")
    world.join("far", "m")
    world.passes(10)
    task = world.submit("m")
    world.start(task, "ollama")
    assert why_not(a_debt(worker="studio"), world.fleet, world.now_us) == "a task runs there"
    assert may_start(a_debt(worker="far"), world.fleet, world.now_us)
    world.complete(task, "ollama")
    assert not may_start(a_debt(worker="studio"), world.fleet, world.now_us)


def test_backends_elsewhere_behind_one_host_are_machines_of_their_own() -> None:
    world = World()
    for worker in ("a", "b"):
        world.join(worker, "m", host="router", others_use=None, unreadable={"others_use": "no_agent"})
    world.passes(10)
    world.start(world.submit("m"), "a")
    assert may_start(a_debt(worker="b"), world.fleet, world.now_us)


def test_a_task_that_waits_for_the_machine_goes_first_and_one_that_goes_elsewhere_does_not_matter() -> None:
    world = a_world()
    world.join("other", "n")
    task = world.submit("m")
    assert wanted(world.fleet, "desk", world.now_us) is None  # it may be released within the same moment
    world.passes(0.2)
    assert wanted(world.fleet, "desk", world.now_us) == "a task waits for it"
    assert wanted(world.fleet, "other", world.now_us) is None
    world.route(task, ("m", "other"))
    assert wanted(world.fleet, "desk", world.now_us) is None
    world.route(task, ("m", "desk"), ("n", "other"))
    assert wanted(world.fleet, "desk", world.now_us) == "a task waits for it"
    world.route(task, ("n", "other"), silent=("desk",))
    assert wanted(world.fleet, "desk", world.now_us) == "a task waits for it", "it may be heard again, and have it"
    world.release(task, "other")
    assert wanted(world.fleet, "desk", world.now_us) is None
    assert wanted(world.fleet, "other", world.now_us) == "a task runs there"


def test_bench_work_is_never_in_the_way_of_itself_but_runs_one_at_a_time() -> None:
    world = a_world()
    world.start(world.submit("m", worker="desk", bench=Bench(purpose="suite")), "desk")
    assert wanted(world.fleet, "desk", world.now_us) is None
    assert why_not(a_debt(), world.fleet, world.now_us) == "bench work runs there"


def test_two_percent_of_the_awake_time_and_not_a_second_more() -> None:
    world = a_world()
    world.passes(990)
    assert left(world.fleet.machines["desk"]) == pytest.approx(20.0)
    assert may_start(a_debt("stale"), world.fleet, world.now_us, cost_s=19.0)
    assert not may_start(a_debt("stale"), world.fleet, world.now_us, cost_s=21.0)
    world.probed("desk", reason="stale", took_s=18.0)
    assert world.fleet.machines["desk"].spent_s == pytest.approx(18.0)
    world.passes(10)
    assert not may_start(a_debt("stale"), world.fleet, world.now_us, cost_s=3.0)
    assert may_start(a_debt("woke"), world.fleet, world.now_us, cost_s=3.0)


def test_probes_after_a_join_cost_no_budget_and_what_a_person_asked_for_neither() -> None:
    world = a_world()
    world.probed("desk", reason="joined")
    task = world.submit("m", worker="desk", bench=Bench(purpose="suite", suite="code"), urgency="batch")
    world.start(task, "desk")
    world.passes(30)
    world.complete(task, "desk")
    assert world.fleet.machines["desk"].spent_s == 0.0
    shadow = world.submit("m", worker="desk", bench=Bench(purpose="shadow"))
    world.start(shadow, "desk")
    world.passes(3)
    world.cancel(shadow)
    assert world.fleet.machines["desk"].spent_s == pytest.approx(3.0)


def test_time_asleep_is_not_awake_time() -> None:
    world = a_world()
    before = world.fleet.machines["desk"].awake_s
    world.passes(3600, asleep=("desk",))
    world.passes(5)
    assert world.fleet.machines["desk"].awake_s - before <= 20.0


def test_a_model_is_driven_out_only_after_ten_minutes_without_anybody() -> None:
    world = World()
    world.join("desk", info("m"), info("n"), resident=("n",), gpus=(gpu(total=2 * GB, used=GB),))
    world.ran("desk", "m")
    world.passes(590)
    assert "another model would have to go" in str(why_not(a_debt(evicts=True), world.fleet, world.now_us))
    world.passes(15)
    assert may_start(a_debt(evicts=True), world.fleet, world.now_us)


def test_a_load_which_nobody_can_stop_halfway_waits_for_a_longer_rest() -> None:
    world = World()
    world.join("desk", info("m"), info("n"), resident=("n",), ram_available_bytes=99 * GB)
    assert [(d.model, d.loads) for d in world.debts()] == [("n", False), ("m", True)]
    world.passes(10)
    first, second = world.debts()
    assert may_start(first, world.fleet, world.now_us)
    assert "have to be loaded" in str(why_not(second, world.fleet, world.now_us))
    world.passes(5)
    assert may_start(second, world.fleet, world.now_us)


def test_after_a_task_only_the_next_heartbeat_tells_which_models_are_still_in_memory() -> None:
    world = World()
    world.join("desk", info("m"), info("n"), resident=("m",))
    world.passes(10)
    task = world.submit("n")
    world.start(task, "desk", "n")
    world.now_us += 3_000_000
    world.complete(task, "desk", "n")
    world.now_us += 5_000_000
    assert "in its memory" in str(why_not(a_debt(), world.fleet, world.now_us))
    world.beat("desk")
    assert may_start(a_debt(), world.fleet, world.now_us)


def test_one_shadow_run_for_four_real_tasks() -> None:
    world = a_world()
    quality = a_debt("unjudged", kind="quality", free=False)
    world.ran("desk", times=3)
    world.passes(86_400)
    assert "one shadow run for every four" in str(why_not(quality, world.fleet, world.now_us))
    world.ran("desk")
    world.passes(10)
    assert may_start(quality, world.fleet, world.now_us)
    task = world.submit("m", worker="desk", bench=Bench(purpose="shadow"))
    world.start(task, "desk")
    world.complete(task, "desk")
    world.passes(10)
    assert not may_start(quality, world.fleet, world.now_us)


def test_who_is_paused_silent_or_leaving_is_left_alone() -> None:
    world = a_world()
    world.fleet.machines["desk"].paused = True
    assert why_not(a_debt(), world.fleet, world.now_us) == "it is paused"
    world.fleet.machines["desk"].paused = False
    world.passes(20, asleep=("desk",))
    assert why_not(a_debt(), world.fleet, world.now_us) == "it is silent"


def a_shadow(world: World, worker: str = "desk") -> str:
    task = world.submit("m", worker=worker, bench=Bench(purpose="shadow"))
    world.start(task, worker)
    return task


def test_a_pulled_plug_ends_what_nobody_asked_for() -> None:
    world = a_world(on_battery=False)
    a_shadow(world)
    assert must_stop(world.fleet, "desk", world.now_us) is None
    world.loads["desk"]["on_battery"] = True
    world.passes(5)
    assert must_stop(world.fleet, "desk", world.now_us) == "it runs on battery"


def test_a_game_that_began_during_an_answer_ends_the_rest_once_it_can_be_told_from_ours() -> None:
    world = a_world(gpus=(gpu(use=0.0),), others_use=0.0, others_age_s=0.0)
    task = a_shadow(world)
    world.loads["desk"] |= {
        "gpus": (gpu(use=0.9),),
        "others_age_s": 5.0,
    }  # busy with ours, or with a game: nobody knows
    world.passes(5)
    assert must_stop(world.fleet, "desk", world.now_us) is None
    world.complete(task, "desk")
    assert why_not(a_debt(), world.fleet, world.now_us) == UNREAD
    world.passes(5)
    assert why_not(a_debt(), world.fleet, world.now_us) == UNREAD  # still the reading from before
    world.loads["desk"] |= {"others_use": 0.9, "others_age_s": 0.0}
    world.passes(5)
    assert must_stop(world.fleet, "desk", world.now_us) == "others use 90 % of it"
    world.loads["desk"]["others_use"] = 0.0
    world.passes(5)
    assert must_stop(world.fleet, "desk", world.now_us) is None
    assert may_start(a_debt(), world.fleet, world.now_us)


def test_our_own_work_seen_by_another_worker_of_the_host_is_nobody_s_game() -> None:
    world = World()
    for worker in ("ollama", "studio"):
        world.join(worker, "m", host="desk", gpus=(gpu(),), others_use=0.0)
    world.passes(10)
    task = a_shadow(world, "ollama")
    world.loads["studio"]["others_use"] = 0.9
    world.passes(5)
    world.complete(task, "ollama")
    assert must_stop(world.fleet, "studio", world.now_us) is None
    assert why_not(a_debt(worker="studio"), world.fleet, world.now_us) == UNREAD
    world.loads["studio"]["others_use"] = 0.0
    world.passes(5)
    assert may_start(a_debt(worker="studio"), world.fleet, world.now_us)


def test_the_pressure_on_the_processors_is_ours_too_and_ends_nothing() -> None:
    world = a_world()
    a_shadow(world)
    world.loads["desk"]["others_use"] = 0.9
    world.passes(5)
    assert must_stop(world.fleet, "desk", world.now_us) is None


def test_who_falls_silent_leaves_or_is_paused_loses_what_was_begun() -> None:
    world = a_world()
    a_shadow(world)
    world.passes(20, asleep=("desk",))
    assert must_stop(world.fleet, "desk", world.now_us) == "it is silent"
