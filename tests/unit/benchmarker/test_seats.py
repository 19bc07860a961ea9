"""Who may be asked for a comparison now: idle, unused by others, in memory or fitting beside what is."""

from __future__ import annotations

import msgspec

from services.benchmarker.budget import Rules
from services.benchmarker.seats import panel_of
from support.bench_world import GB, World, info


def seats(world: World, rules: Rules | None = None) -> list[tuple[str, str]]:
    panel = panel_of(world.fleet, world.stats, "code", world.now_us, rules=rules or Rules())
    return [(seat.model, seat.worker) for seat in panel.seats]


def world_of(*models: str, **load: object) -> World:
    world = World()
    world.join("w1", *models, **load)  # type: ignore[arg-type]
    world.join("w2", "c")
    world.passes(600)
    return world


def test_every_model_of_an_idle_machine_has_a_seat() -> None:
    assert seats(world_of("a", "b")) == [("a", "w1"), ("b", "w1"), ("c", "w2")]


def test_a_machine_that_works_or_serves_somebody_else_has_none() -> None:
    world = world_of("a", others_use=0.6, gpu="RTX")
    assert seats(world) == [("c", "w2")]
    busy = world_of("a")
    task = busy.submit("a")
    busy.route(task, ("a", "w1"))
    busy.passes(5)
    assert seats(busy) == [("c", "w2")]


def test_nothing_is_driven_out_of_memory_for_a_comparison() -> None:
    assert seats(world_of("a", "b", resident=("a",))) == [("a", "w1"), ("c", "w2")]


def test_of_the_models_that_fit_one_is_loaded_for_it_the_one_of_which_least_is_known() -> None:
    """Each might fit by itself: the second would drive something out."""
    world = world_of("a", "b", "d", resident=("a",), ram_available_bytes=64 * GB)
    assert seats(world) == [("a", "w1"), ("b", "w1"), ("c", "w2")]
    world.judged("b", "code")
    assert seats(world) == [("a", "w1"), ("d", "w1"), ("c", "w2")]


def test_a_machine_that_was_used_a_moment_ago_loads_nothing() -> None:
    world = world_of("a", "b", resident=("a",), ram_available_bytes=64 * GB)
    task = world.submit("a")
    world.route(task, ("a", "w1"))
    world.start(task, "w1", "a")
    world.complete(task, "w1", "a")
    world.passes(10)
    assert seats(world) == [("a", "w1"), ("c", "w2")]
    world.passes(10)
    assert seats(world) == [("a", "w1"), ("b", "w1"), ("c", "w2")]


def test_what_was_in_memory_before_the_last_task_counts_for_nothing() -> None:
    """A task may have loaded another model since, and driven that one out."""
    world = world_of("a")
    task = world.submit("a")
    world.route(task, ("a", "w1"))
    world.start(task, "w1", "a")
    world.complete(task, "w1", "a")
    world.passes(10, asleep=("w1",))
    assert seats(world) == [("c", "w2")]


def test_an_embedding_model_answers_nothing() -> None:
    world = World()
    world.join("w1", msgspec.structs.replace(info("e"), capabilities=("embedding",)), "a")
    world.passes(600)
    assert seats(world) == [("a", "w1")]


def test_a_seat_knows_what_the_statistics_know() -> None:
    world = world_of("a", "b")
    world.judged("a", "code", 1.0, times=12)
    panel = panel_of(world.fleet, world.stats, "code", world.now_us)
    quality = {seat.model: seat.quality for seat in panel.seats}
    assert quality["a"] is not None and quality["a"] > 0.75
    assert {seat.quality for seat in panel_of(world.fleet, world.stats, "maths", world.now_us).seats} != {quality["a"]}
    assert all(seat.resident and seat.decode_tps for seat in panel.seats)
