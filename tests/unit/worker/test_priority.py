from __future__ import annotations

from schemas.events import ModelInfo
from schemas.statistics import Statistics
from schemas.subjects import group_durable, lane_durable
from services.worker.priority import FRESH_S, Holder, Priced, priorities, priority_of, wanted_groups
from support.fleets import GIB5, NOW_US, cell

GPU = ModelInfo(name="big", backend_name="big", capability="gpu_inference")
CPU = ModelInfo(name="small", backend_name="small", bytes=GIB5, resident=True)
EMBED = ModelInfo(name="embed", backend_name="embed", capability="embedding")
FAST = Holder(worker="fast", model_bytes=GIB5, resident=True)
SLOW = Holder(worker="slow", model_bytes=GIB5, resident=True)
MEASURED = Statistics(
    [
        cell("small", "general", "fast", decode=80.0, prefill=800.0, load_s=8.0, output=300),
        cell("small", "general", "slow", decode=10.0, prefill=100.0, load_s=8.0, output=300),
    ]
)


def durables(supports: tuple[str, ...]) -> list[str]:
    return [durable for durable, _ in wanted_groups("w", [EMBED, CPU, GPU], supports)]


def test_the_lane_comes_first_then_gpu_groups_then_cpu_groups() -> None:
    assert durables(("cpu_inference", "gpu_inference")) == [
        lane_durable("w"),
        group_durable("gpu_inference", "big"),
        group_durable("cpu_inference", "small"),
        group_durable("embedding", "embed"),
    ]


def test_a_cpu_machine_leaves_gpu_work_alone() -> None:
    assert group_durable("gpu_inference", "big") not in durables(("cpu_inference",))


def test_the_fastest_holder_has_priority_0_and_each_doubling_costs_three() -> None:
    assert priority_of(CPU, "fast", [SLOW], MEASURED, now_us=NOW_US) == 0
    assert priority_of(CPU, "slow", [FAST], MEASURED, now_us=NOW_US) in (7, 8, 9)


def test_alone_or_unmeasured_means_priority_0() -> None:
    assert priority_of(CPU, "slow", [], MEASURED, now_us=NOW_US) == 0
    assert priority_of(CPU, "w", [FAST, SLOW], Statistics(), now_us=NOW_US) == 0


def test_a_model_that_must_be_loaded_first_pulls_later() -> None:
    cold = ModelInfo(name="small", backend_name="small", bytes=GIB5, resident=False)
    twin = cell("small", "general", "twin", decode=80.0, prefill=800.0, load_s=8.0, output=300)
    statistics = Statistics([*MEASURED.cells(), twin])
    warm_rival = Holder(worker="twin", model_bytes=GIB5, resident=True)
    cold_rival = Holder(worker="twin", model_bytes=GIB5, resident=False)
    assert priority_of(CPU, "fast", [warm_rival], statistics, now_us=NOW_US) == 0
    assert priority_of(cold, "fast", [cold_rival], statistics, now_us=NOW_US) == 0
    assert priority_of(cold, "fast", [warm_rival], statistics, now_us=NOW_US) > 0


def test_only_confirmed_consumers_are_pulled_from() -> None:
    confirmed = {lane_durable("slow"), group_durable("cpu_inference", "small"), group_durable("cpu_inference", "other")}
    found = priorities(
        "slow", [CPU, GPU], ("cpu_inference",), confirmed, {"small": [FAST]}, MEASURED, now_us=NOW_US
    )  # fmt: skip
    assert [durable for durable, _ in found] == [lane_durable("slow"), group_durable("cpu_inference", "small")]
    assert dict(found)[lane_durable("slow")] == 0
    assert dict(found)[group_durable("cpu_inference", "small")] > 0


def test_pulls_of_one_moment_are_priced_once_and_again_when_time_or_what_is_held_has_changed() -> None:
    looks = list[int]()

    def look() -> list[tuple[str, int]]:
        looks.append(1)
        return [("lane", len(looks))]

    priced, held, confirmed = Priced(look), (CPU,), frozenset({"lane"})
    asked = [priced.groups(now, held, confirmed) for now in (0.0, 0.9 * FRESH_S, 1.1 * FRESH_S)]
    assert asked == [[("lane", 1)], [("lane", 1)], [("lane", 2)]]
    assert priced.groups(1.1 * FRESH_S, (CPU, EMBED), confirmed) == [("lane", 3)]
