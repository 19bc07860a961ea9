"""What is worth measuring: every holder, for a reason that somebody can read."""

from __future__ import annotations

from schemas.events import Bench, TaskFailed
from support.bench_world import GB, World, gpu, info

WEEK_S = 7 * 86_400.0


def test_every_holder_that_joins_is_owed_a_probe_and_none_any_more_once_it_was_measured() -> None:
    world = World()
    world.join("desk", "m")
    world.join("laptop", "m")
    assert world.owed() == [("m", "desk", "general", "joined"), ("m", "laptop", "general", "joined")]
    assert all(debt.free for debt in world.debts())
    world.probed("desk")
    assert world.owed() == [("m", "laptop", "general", "joined")]


def test_a_hundred_samples_of_one_machine_do_not_hide_the_other_from_the_list() -> None:
    world = World()
    world.join("laptop", "m")
    world.ran("laptop", decode=10.0, times=100)
    world.join("desk", "m")
    assert world.owed()[0] == ("m", "desk", "general", "joined")


def test_who_comes_back_after_a_night_is_measured_again_and_who_was_away_for_a_moment_is_not() -> None:
    world = World()
    world.join("desk", "m")
    world.probed("desk")
    world.passes(40, asleep=("desk",))
    world.passes(5)
    assert world.owed() == []
    world.passes(8 * 3600, asleep=("desk",))
    world.passes(5)
    assert world.owed() == [("m", "desk", "general", "woke")]
    world.probed("desk", reason="woke")
    assert world.owed() == []
    world.passes(300)
    world.join("desk", "m", boot="b2")
    assert world.owed() == []
    world.passes(1200)
    world.join("desk", "m", boot="b3")
    assert world.owed() == [("m", "desk", "general", "joined")]


def test_a_new_model_and_another_file_under_an_old_name_are_owed_each() -> None:
    world = World()
    world.join("desk", "m")
    world.probed("desk")
    world.join("desk", "m", "n")
    assert world.owed() == [("n", "desk", "general", "new_model")]
    world.probed("desk", "n", "new_model")
    world.join("desk", info("m", digest="d2"), "n")
    assert world.owed() == [("m", "desk", "general", "digest")]


def test_what_would_drive_another_model_out_is_left_alone_unless_it_is_used() -> None:
    world = World()
    world.join("desk", info("m"), info("n"), resident=("m",), gpus=(gpu(total=2 * GB, used=GB),))
    assert world.owed() == [("m", "desk", "general", "joined")]
    world.join("roomy", info("n"), info("k"), resident=("k",), gpus=(gpu(used=GB),))
    assert ("n", "roomy", "general", "joined") in world.owed()
    world.ran("roomy", "n")
    world.loads["roomy"]["resident"] = ("k", "n")
    world.passes(5)
    (evicting,) = [d for d in world.debts() if d.evicts]
    assert (evicting.model, evicting.worker, evicting.reason) == ("n", "desk", "joined")


def test_free_memory_that_is_not_known_is_not_enough() -> None:
    world = World()
    world.join("desk", info("m"), info("n"), resident=("m",), ram_available_bytes=None)
    world.join("big", info("m"), info("n", bytes=None), resident=("m",), ram_available_bytes=99 * GB)
    assert {model for model, *_ in world.owed()} == {"m"}


def test_what_a_probe_has_just_loaded_counts_before_the_next_one_is_loaded_beside_it() -> None:
    world = World()
    world.join("desk", info("m"), info("n"), resident=(), gpus=(gpu(total=3 * GB, used=0),))
    assert {model for model, *_ in world.owed()} == {"m", "n"}
    world.probed("desk", "m", took_s=2.0)
    assert world.owed() == []
    world.loads["desk"] |= {"resident": ("m",), "gpus": (gpu(total=3 * GB, used=2 * GB),)}
    world.passes(5)
    assert world.owed() == []
    world.loads["desk"]["gpus"] = (gpu(total=16 * GB, used=2 * GB),)
    world.passes(5)
    assert world.owed() == [("n", "desk", "general", "joined")]


def test_a_model_that_only_embeds_or_that_nobody_there_supports_is_no_debt() -> None:
    world = World()
    world.join("desk", info("e", capability="embedding"), info("g", capability="gpu_inference"), "m")
    assert world.owed() == [("m", "desk", "general", "joined")]


def test_the_probe_asks_for_what_people_ask_for() -> None:
    world = World()
    world.join("desk", "m")
    world.ran("desk", domain="code", times=3)
    world.ran("desk", domain="maths")
    world.join("laptop", "m")
    assert world.owed()[0] == ("m", "laptop", "code", "joined")


def test_a_stale_cell_is_owed_only_while_somebody_uses_it() -> None:
    world = World()
    world.join("desk", "m", "n")
    world.ran("desk", "m", times=3)
    world.probed("desk", "n")
    world.now_us += round((WEEK_S + 60) * 1e6)
    world.fleet.machines["desk"].heard_us = world.now_us  # it was awake, and answered others
    assert world.owed() == [("m", "desk", "general", "stale")]


def test_a_machine_that_could_turn_out_to_be_the_fastest_is_worth_more_than_one_that_could_not() -> None:
    world = World()
    for worker in ("desk", "near", "slow"):
        world.join(worker, "m")
    world.ran("desk", decode=50.0, times=6)
    world.probed("near", decode=40.0)
    world.probed("slow", decode=2.0)
    assert [(worker, reason) for _, worker, _, reason in world.owed()] == [("near", "uncertain")]
    for _ in range(4):
        world.probed("near", reason="uncertain", decode=40.0)
    assert world.owed() == []


def test_three_answers_far_from_their_predictions_put_all_that_is_known_of_the_machine_in_doubt() -> None:
    world = World()
    world.join("desk", "m", "n")
    world.ran("desk", "n", times=3)
    world.ran("desk", "m", times=3)
    world.ran("desk", "m", decode=12.0, times=2)
    assert world.owed() == []
    world.ran("desk", "m", decode=12.0)
    assert world.owed() == [("n", "desk", "general", "drift")]


def test_one_slow_answer_in_between_is_no_drift() -> None:
    world = World()
    world.join("desk", "m", "n")
    world.ran("desk", "n", times=3)
    for decode in (12.0, 12.0, 50.0, 12.0, 12.0, 120.0):
        world.ran("desk", "m", decode=decode)
    assert world.owed() == []


def test_a_domain_that_people_ask_in_is_measured_on_each_holder_in_the_end() -> None:
    world = World()
    world.join("desk", "m")
    world.join("laptop", "m")
    world.probed("desk")
    world.probed("laptop", decode=40.0)
    world.ran("desk", domain="code", times=5)
    assert ("m", "laptop", "code", "unmeasured") in world.owed()
    assert not any(debt.free for debt in world.debts())


def test_a_probe_that_told_nothing_is_tried_again_later_and_later() -> None:
    world = World()
    world.join("desk", "m")
    world.probed("desk", decode=None)
    assert world.owed() == []
    world.passes(61)
    assert world.owed() == [("m", "desk", "general", "joined")]
    world.probed("desk", decode=None)
    world.passes(61)
    assert world.owed() == []
    world.passes(60)
    assert world.owed() == [("m", "desk", "general", "joined")]


def test_each_model_is_judged_where_people_ask_until_three_judged_it_also_the_one_never_chosen() -> None:
    world = World()
    world.join("desk", "m", "n")
    world.ran("desk", "m", "code", times=3)
    assert {(model, domain) for model, _, domain, _ in world.owed("quality")} == {("m", "code"), ("n", "code")}
    world.judged("m", "code", times=3)
    owed = world.owed("quality")
    assert [(model, domain) for model, _, domain, reason in owed if reason == "unjudged"] == [("n", "code")]
    assert owed[0][0] == "n", "who was never judged comes first"


def test_of_models_that_were_judged_those_that_may_be_the_best_are_judged_on_until_it_is_clear() -> None:
    world = World()
    world.join("desk", "m", "n", "o")
    world.ran("desk", "m", "code", times=3)
    for model, value, times in (("m", 0.9, 3), ("n", 0.9, 3), ("o", 0.0, 6)):
        world.judged(model, "code", value, times)
    assert {(model, reason) for model, _, _, reason in world.owed("quality")} == {
        ("m", "uncertain"),
        ("n", "uncertain"),
    }
    for model in ("m", "n"):
        world.judged(model, "code", 0.9, times=6)
    assert world.owed("quality") == [], "eight say enough"


def test_where_there_is_one_model_there_is_nothing_to_judge() -> None:
    world = World()
    world.join("desk", "m")
    world.ran("desk", "m", "code", times=3)
    assert world.owed("quality") == []


def test_who_left_is_owed_nothing() -> None:
    world = World()
    world.join("desk", "m")
    world.fleet.machines["desk"].left = True
    assert world.debts() == ()


def test_what_no_worker_took_up_is_no_fault_of_the_machine() -> None:
    world = World()
    world.join("desk", "m")
    for begins, owed in ((False, [("m", "desk", "general", "joined")]), (True, [])):
        task = world.submit("m", worker="desk", bench=Bench(purpose="probe", reason="joined"))
        if begins:
            world.start(task, "desk")
        else:
            world.release(task, "desk")
        world.say(
            TaskFailed(id=f"{task}.f", at=0.0, by="r", task=task, epoch=1, failure="busy", attempts=1, detail="nobody")
        )
        assert world.owed() == owed


def silent(world: World, boot: str = "b1") -> None:
    world.join("desk", "m", "n", "o", boot=boot, resident=None, others_use=None)


def test_a_machine_that_does_not_say_what_is_in_its_memory_is_owed_one_probe_for_each_join_and_not_one_for_each_model() -> (
    None
):
    world = World()
    world.join("laptop", "m", "n")
    world.ran("laptop", "m")
    world.ran("laptop", "n", times=5)
    silent(world)
    owed = [debt for debt in world.debts() if debt.worker == "desk" and debt.free]
    assert [(d.model, d.reason, d.loads, d.evicts) for d in owed] == [("n", "joined", True, False)]
    world.probed("desk", "n")
    world.ran("laptop", "m", times=9)  # now another one is used most
    later = [debt for debt in world.debts() if debt.worker == "desk" and debt.kind == "probe"]
    assert not any(debt.free for debt in later)
    assert all(debt.evicts for debt in later), "nobody knows what it would drive out"
    world.passes(1200)
    silent(world, boot="b2")
    assert [d.model for d in world.debts() if d.worker == "desk" and d.free] == ["m"]


def test_where_nothing_is_used_yet_a_silent_machine_is_probed_with_its_first_model() -> None:
    world = World()
    silent(world)
    assert world.owed() == [("m", "desk", "general", "joined")]
