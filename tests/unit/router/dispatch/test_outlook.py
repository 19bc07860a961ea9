"""What a pass may count on: speeds as the statistics are now, and who may serve what by the reports."""

from __future__ import annotations

import pytest

from schemas import events
from schemas.events import ModelInfo
from schemas.statistics import Statistics, effective
from services.router.dispatch.outlook import Outlook, reported_pairs, speed_of
from support.builders import build
from support.dispatching import Dispatch
from support.fleets import GIB5, cell

INFO = ModelInfo(name="m", backend_name="m", bytes=GIB5)


def test_a_speed_is_looked_up_once_until_the_statistics_change() -> None:
    stats = Statistics([cell("m", "code", "w1", decode=20.0)])
    outlook = Outlook(stats)
    before = outlook.speed("m", "code", "w1", INFO)
    assert outlook.speed("m", "code", "w1", INFO) is before
    stats.put(cell("m", "code", "w1", n=400, decode=80.0))
    after = outlook.speed("m", "code", "w1", INFO)
    assert after.decode > 2 * before.decode


def test_what_is_learned_of_another_machine_reaches_one_that_has_no_samples() -> None:
    stats = Statistics([cell("m", "code", "w1", decode=20.0)])
    outlook = Outlook(stats)
    before = outlook.speed("m", "code", "w2", INFO).decode
    stats.put(cell("m", "code", "w3", n=400, decode=90.0))
    assert outlook.speed("m", "code", "w2", INFO).decode > before


def test_sizes_domains_and_machines_are_kept_apart() -> None:
    outlook = Outlook(Statistics([cell("m", "code", "w1", decode=20.0, output=50)]))
    speeds = {
        outlook.speed("m", domain, worker, info)
        for domain in ("code", "chat")
        for worker in ("w1", "w2")
        for info in (INFO, ModelInfo(name="m", backend_name="m", bytes=2 * GIB5))
    }
    assert len(speeds) == 8


def test_a_speed_is_the_effective_numbers_and_nothing_else() -> None:
    known = effective(Statistics(), "m", "code", "w1", model_bytes=GIB5, now_us=0)
    speed = speed_of(known, GIB5)
    assert (speed.decode, speed.prefill, speed.load_s) == (known.decode.value, known.prefill.value, known.load.value)
    assert (speed.output, speed.quality, speed.slowdown) == (300.0, 0.5, 1.0)
    assert (speed.others_weight, speed.use_known, speed.size) == (1.0, 1.0, GIB5)


@pytest.mark.parametrize(("own", "slider"), [(None, 1.0), (0.0, 0.0), (2.0, 2.0)])
def test_a_tasks_own_slider_goes_before_the_fleets(own: float | None, slider: float) -> None:
    desk = Dispatch()
    desk.submit("t1", options=events.Options(slider=own))
    assert Outlook(Statistics()).slider_of(desk.task("t1")) == slider


def pairs(**fields: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    desk = Dispatch()
    desk.report("w2", "m", "n")
    desk.report("w1", models=(ModelInfo(name="m", backend_name="m", context=100),))
    desk.report("w3", models=(ModelInfo(name="gpu", backend_name="gpu", capability="gpu_inference"),))
    desk.report("w4", "m")
    desk.tell(build(events.WorkerLeft, worker="w4", boot="b1"))
    desk.submit("t1", wants=events.Wants(**fields))  # type: ignore[arg-type]
    desk.state.workers = dict(reversed(desk.state.workers.items()))
    return reported_pairs(desk.state, desk.task("t1"))


def test_all_models_that_somebody_there_can_serve_sorted() -> None:
    assert pairs() == (("m", ("w1", "w2")), ("n", ("w2",)))


@pytest.mark.parametrize(
    ("wants", "found"),
    [
        ({"model": "m"}, (("m", ("w1", "w2")),)),
        ({"worker": "w2"}, (("m", ("w2",)), ("n", ("w2",)))),
        ({"model": "m", "context": 200}, (("m", ("w2",)),)),
        ({"model": "gpu"}, ()),
    ],
)
def test_what_was_asked_for_narrows_them(wants: dict[str, object], found: object) -> None:
    assert pairs(**wants) == found
