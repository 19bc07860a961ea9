"""The evidence loop in virtual time, with few seeds: ``make sim`` has the targets over many."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.events import TaskCompleted
from schemas.judging import question
from services.benchmarker.asking import Work
from services.benchmarker.known_pairs import KNOWN_PAIRS
from simulation.evidence import days
from simulation.evidence.claims import CLAIMS, document
from simulation.evidence.household import Errand, Household
from simulation.evidence.ledger import Ledger, probe_s
from simulation.evidence.quality import quality
from simulation.evidence.quality_rivals import RowFallback, SampleCount
from simulation.evidence.quality_world import DOMAINS, NEW, OLD, QualityWorld
from simulation.evidence.report import Claim, missed, targets
from simulation.evidence.throttle import DESK, SLOWER, THROTTLED, throttle, trace
from simulation.evidence.voices import RIGHT, WRONG, Voices, shown, suites_of
from simulation.fleet import instances
from simulation.fleet.physics import MACHINES

PROBE = Work(purpose="probe", model="chat-8b", worker="desk", domain="chat", body=question("p", "a", "b"))


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_LOG_LEVEL", "error")


# -- throttling --------------------------------------------------------------------------------------------------------


def test_a_throttled_machine_loses_its_rank_and_regains_it() -> None:
    for seed in range(2):
        noticed = throttle("F3", seed)
        assert max(noticed.lost, noticed.regained) <= 10


def test_what_is_expected_of_the_machine_follows_what_it_does() -> None:
    rates = trace("F6", 0)
    slow, fast = rates[THROTTLED - 1], rates[-1]
    assert fast[0] == MACHINES[DESK].decode == slow[0] * SLOWER
    assert slow[1] == pytest.approx(slow[0], rel=0.25)
    assert fast[1] == pytest.approx(fast[0], rel=0.25)


# -- quality -----------------------------------------------------------------------------------------------------------


def test_the_newcomer_is_better_than_the_best_of_the_old_on_the_whole_and_comes_at_its_time() -> None:
    for seed in range(5):
        world = QualityWorld(seed, tasks=20, joins_at=10)
        assert (world.models(9), world.models(10)) == (OLD, (*OLD, NEW))
        assert all(0.0 < value < 1.0 for value in world.worth.values())
        best = max(OLD, key=lambda m: sum(world.worth[m, d] for d in DOMAINS))
        assert world.regret(world.tasks[0], best) >= 0.0


def test_every_scorer_meets_the_same_luck() -> None:
    assert QualityWorld(3).tasks == QualityWorld(3).tasks != QualityWorld(4).tasks


def test_sample_count_never_tries_the_newcomer_and_row_fallback_takes_a_single_word_for_the_truth() -> None:
    counted, rows = SampleCount(0), RowFallback(0)
    for _ in range(30):
        for model in OLD:
            counted.thumb(model, "chat", 0.6)
            rows.thumb(model, "chat", 0.6)
    assert {counted.choose((*OLD, NEW), "chat") for _ in range(20)} <= set(OLD)
    rows.thumb(NEW, "chat", 1.0)
    assert rows.choose((*OLD, NEW), "chat") == NEW


def test_evaluating_every_model_loses_less_than_counting_samples_once_a_better_one_joins() -> None:
    found = quality(0, tasks=360, joins_at=180)
    assert found["ours after"] < 0.6 * found["sample_count after"]
    assert 4 * found["shadow runs"] <= 360
    assert found["newcomer runs"] >= 1


# -- voices ------------------------------------------------------------------------------------------------------------


def test_a_judges_question_is_read_back_in_the_order_in_which_it_was_asked() -> None:
    assert shown(question("What?", "first one", "second one")) == ("first one", "second one")
    assert shown(question("何?", "二\n行", "一", language="ja")) == ("二\n行", "一")


def test_a_judge_finds_what_is_known_and_a_model_passes_checks_as_often_as_it_is_good() -> None:
    suites = suites_of(DOMAINS, checked=400, judged=0)
    voices = Voices(0, lambda model, _: 0.9 if model == "good" else 0.2, suites)
    known = KNOWN_PAIRS[0]
    judge = Work(
        purpose="judge", model="good", worker="w", domain="chat", body=question(known.prompt, known.wrong, known.right)
    )
    assert voices.answer(judge) == '{"better": "second"}'
    for model, least, most in (("good", 340, 400), ("bad", 40, 130)):
        works = [
            Work(purpose="shadow", model=model, worker="w", domain="chat", body=judge.body, prompt=f"chat-{n}")
            for n in range(400)
        ]
        answers = [voices.answer(work) for work in works]
        assert set(answers) == {RIGHT, WRONG}
        assert least <= answers.count(RIGHT) <= most


# -- a household -------------------------------------------------------------------------------------------------------


def test_every_machine_that_joined_is_probed_and_each_probe_is_one_sample() -> None:
    house = Household(days.joining("F3", 0, tasks=25))
    house.through()
    probes = [errand for errand in house.errands.values() if errand.work.purpose == "probe"]
    assert {"desk", "mini"} <= {errand.worker for errand in probes if errand.completed}
    ends = [e for e, _ in house.log if isinstance(e, TaskCompleted) and e.kind == "bench"]
    assert len(ends) == sum(errand.completed for errand in house.errands.values())
    assert len(house.done) == 25


def test_one_seed_is_one_history() -> None:
    first, second = (Household(days.joining("F2", 1, tasks=20)) for _ in range(2))
    first.through()
    second.through()
    assert first.done == second.done
    assert [e.work.reason for e in first.errands.values()] == [e.work.reason for e in second.errands.values()]


def test_without_a_benchmarker_nothing_is_asked() -> None:
    house = Household(days.joining("F2", 0, tasks=10), bench=False)
    house.through()
    assert (len(house.done), house.errands) == (10, {})


def test_a_machine_that_sleeps_is_probed_when_it_wakes_and_a_busy_one_delays_nobody() -> None:
    nap = {"desk": ((0.0, 1800.0),)}
    house = Household(instances.timed("F2", 0, [float(at) for at in range(2400, 3600, 8)], naps=nap))
    house.until(3600.0)
    ledger = Ledger(house, 3600.0)
    assert all(errand.started is None or errand.started > 1800.0 for errand in ledger.probes("desk"))
    assert max(ledger.idle_until_probed("desk")) < 30.0
    assert max(ledger.delays(), default=0.0) <= 1.0


# -- the ledger --------------------------------------------------------------------------------------------------------


def test_what_was_begun_beside_a_game_or_on_battery_is_found_without_the_benchmarkers_books() -> None:
    instance = instances.timed(
        "F2", 0, [], used={"desk": ((100.0, 200.0, 0.5), (300.0, 400.0, 0.05))}, unplugged={"desk": ((500.0, 600.0),)},
        naps={"desk": ((800.0, 1000.0),)},
    )  # fmt: skip
    house = Household(instance, bench=False)
    for n, at in enumerate((50.0, 150.0, 350.0, 550.0)):
        house.errands[f"b{n}"] = Errand(f"b{n}", PROBE, n == 0, at, started=at, ended=at + 2.0, completed=True)
    ledger = Ledger(house, 1000.0)
    assert [errand.task for errand in ledger.beside_others("desk")] == ["b1"]
    assert [errand.task for errand in ledger.on_battery("desk")] == ["b3"]
    assert ledger.share("desk", free=False) == pytest.approx(100.0 * 6.0 / 800.0)
    assert list(ledger.on_battery("laptop")) == []


def test_a_delay_is_told_in_probes_of_the_machine() -> None:
    house = Household(instances.timed("F2", 0, [10.0]), bench=False)
    house.until(100.0)
    [done] = house.done
    house.errands["b0"] = Errand("b0", PROBE, True, 0.0, started=0.0, ended=done.at + 2.0, completed=True)
    own = PROBE if done.machine == "desk" else Work(**{**_fields(PROBE), "worker": done.machine})
    house.errands["b0"].work = own
    waited = min(done.start, done.at + 2.0) - done.at
    assert list(Ledger(house, 100.0).delays()) == [pytest.approx(waited / probe_s(MACHINES[done.machine], "chat-8b"))]


def _fields(work: Work) -> dict[str, object]:
    return {name: getattr(work, name) for name in work.__struct_fields__}


# -- the report --------------------------------------------------------------------------------------------------------


def test_a_target_is_held_against_the_mean_or_the_worst_and_a_missed_one_is_called_so() -> None:
    results = {"case": [{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 2.0}]}
    assert missed(results, [Claim("mean", "case", "a", 2.0)]) == 0
    assert missed(results, [Claim("worst", "case", "a", 2.0, worst=True)]) == 1
    assert missed(results, [Claim("ratio", "case", "a", 1.0, under="b")]) == 0
    assert missed(results, [Claim("shown", "case", "a", None, worst=True)]) == 0
    assert targets(results, [Claim("not run", "other", "a", 0.0)])[2:] == []
    assert "| worst | <= 2 | **3.00: missed** |" in targets(results, [Claim("worst", "case", "a", 2.0, worst=True)])


def test_only_what_was_run_is_told() -> None:
    text = document({"throttled": [{c.value: 3.0 for c in CLAIMS if c.case == "throttled"}]})
    assert "throttled 4x" in text
    assert "quality regret" not in text


def test_the_same_numbers_draw_the_same_picture(tmp_path: Path) -> None:
    from simulation.evidence.plots import draw

    results = {"throttled": [{"lost F3": 3.0}]}
    first, second = draw(results, tmp_path / "a"), draw(results, tmp_path / "b")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert [path.name for path in first] == ["simulation-evidence-throttled.svg"]
