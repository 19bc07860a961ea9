"""One seed, one history, and nothing left over at its end."""

from __future__ import annotations

import pytest

from simulation.world import World, run


def test_a_history_without_violations_ends_with_every_submission() -> None:
    report = run(3, tasks=5)
    assert report.violations == []
    assert report.kinds["task.submitted"] == 5
    ends = ("task.completed", "task.failed", "task.cancelled", "task.dead")
    assert sum(report.kinds.get(kind, 0) for kind in ends) == 5


def test_different_seeds_are_different_histories() -> None:
    assert len({run(seed, tasks=3).digest for seed in range(4)}) == 4


def test_nothing_is_remembered_of_ended_tasks_whatever_happened() -> None:
    for seed in range(20):
        world = World(seed)
        assert world.run().violations == []
        for router in world.routers:
            live = router.live
            if router.process.alive and router.state.position == len(world.server.events):
                live.tidy(router.state)
                kept = (live.leases, live.seen, live.waits, live.drafts, live.retry_at, live.revoked, live.cancels)
                assert not any(kept), (seed, router.name, kept)


@pytest.mark.parametrize("seed", range(5))
def test_the_fold_of_a_history_does_not_depend_on_a_snapshot_in_its_middle(seed: int) -> None:
    from services.router.dispatch import engine

    world = World(seed)
    world.run()
    whole = world._fold()
    log = list(enumerate(world.server.events, 1))
    for cut in range(1, len(log), 7):
        state = type(whole)()
        for seq, (_, event, at) in log[:cut]:
            state.apply(event, seq, int(at * 1e6))
        state = engine.restore(engine.snapshot(state))
        for seq, (_, event, at) in log[cut:]:
            state.apply(event, seq, int(at * 1e6))
        assert (state.held, state.tasks, state.workers, state.epoch, state.ended) == (
            whole.held, whole.tasks, whole.workers, whole.epoch, whole.ended,
        )  # fmt: skip
