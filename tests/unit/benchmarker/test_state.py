"""What the benchmarker counts of a machine's time, and what it takes for use, also when it begins in the middle of the log."""

from __future__ import annotations

from schemas.events import AnyEvent, Bench, WorkerReported
from services.benchmarker.budget import left
from services.benchmarker.state import Fleet
from support.bench_world import US, World

DAY_S = 86_400.0


def recorded(world: World) -> list[tuple[AnyEvent, int, int]]:
    """Everything that is said from now on."""
    log: list[tuple[AnyEvent, int, int]] = []
    say = world.say

    def keep(event: AnyEvent) -> None:
        say(event)
        log.append((event, world.seq, world.now_us))

    world.say = keep  # type: ignore[method-assign]
    return log


def begun_again(world: World, log: list[tuple[AnyEvent, int, int]], since_us: int = 0) -> Fleet:
    """As ``Hearing`` starts: machines from the beginning, then the tasks, then each machine's last heartbeat."""
    fleet = Fleet(since_us=since_us)
    for event, seq, at_us in log:
        if isinstance(event, WorkerReported):
            fleet.apply(event, seq, at_us)
    for event, seq, at_us in log:
        fleet.apply(event, seq, at_us)
    for worker in fleet.machines:
        fleet.hear(world.load(worker), world.now_us)
    return fleet


def test_a_benchmarker_that_begins_again_neither_owes_nor_wins_unasked_seconds() -> None:
    world = World()
    log = recorded(world)
    world.join("desk", "m")
    for _ in range(10):
        world.passes(0.1 * DAY_S)
        world.probed("desk", reason="stale", took_s=150.0)
    before_s = left(world.fleet.machines["desk"])
    assert before_s < 300.0  # of 1,728 s it has spent 1,500
    assert abs(left(begun_again(world, log).machines["desk"]) - before_s) < 5.0


def test_what_was_spent_before_the_part_of_the_log_that_is_read_is_not_granted_again() -> None:
    world = World()
    log = recorded(world)
    world.join("desk", "m")
    world.passes(DAY_S)
    for _ in range(10):
        world.probed("desk", reason="stale", took_s=150.0)
    joined, late = log[:1], log[-7:]
    world.passes(60)
    assert left(begun_again(world, joined + late, late[0][2]).machines["desk"]) < 10.0


def test_spending_before_the_machine_s_last_start_is_over() -> None:
    world = World()
    log = recorded(world)
    world.join("desk", "m")
    world.passes(DAY_S)
    world.probed("desk", reason="stale", took_s=1000.0)
    world.passes(5)
    world.join("desk", "m", boot="b2")
    world.passes(600)
    found = left(begun_again(world, log).machines["desk"])
    assert 10.0 < found < 13.0


def test_a_heartbeat_that_was_sent_and_not_heard_is_no_sleep() -> None:
    """The benchmarker's own network was away: every machine would get its free probes."""
    world = World()
    world.join("desk", "m")
    world.passes(60)
    world.beats["desk", "b1"] += 720
    world.now_us += 3600 * US
    world.beat("desk")
    desk = world.fleet.machines["desk"]
    assert desk.woke_us == 0
    assert desk.awake_s > 3600


def test_a_machine_that_slept_woke() -> None:
    world = World()
    world.join("desk", "m")
    world.passes(60)
    world.passes(3600, asleep=("desk",))
    world.beat("desk")
    desk = world.fleet.machines["desk"]
    assert desk.woke_us == world.now_us
    assert desk.awake_s < 100


def test_a_judge_s_question_in_a_comparison_is_nobody_s_use_and_never_an_own_prompt() -> None:
    world = World()
    world.join("desk", "m")
    task = world.submit("m", "judging", bench=Bench(purpose="judge"), kind="compare", urgency="batch")
    world.start(task, "desk")
    world.complete(task, "desk")
    assert world.fleet.use.in_use(world.now_us) == {}
    assert (world.fleet.real, world.fleet.own.asked) == (0, {})
