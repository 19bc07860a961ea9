from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from schemas.demands import Demand
from schemas.errors import CannotRun
from services.benchmarker.graders.word import Word
from services.benchmarker.runs import Item, Outcome, Place, Run, plan, show, spread
from services.benchmarker.suites import Prompt, Suite, suites

SMALL = Place(model="small", worker="w1", worker_name="desk", machine="m1")
LARGE = Place(model="large", worker="w1", worker_name="desk", machine="m1")
COLD = Place(model="cold", worker="w1", worker_name="desk", machine="m1", loaded=False)
AWAY = Place(model="small", worker="w2", worker_name="laptop", machine="m2", loaded=None)


def prompt(number: int, checked: bool = True) -> Prompt:
    check = Word(any=("yes",)) if checked else None
    return Prompt(id=f"p{number}", level=1 + number % 3, language="en", text="Say yes.", check=check)


SUITES = {
    "code": Suite(name="code", domain="code", prompts=tuple(map(prompt, range(8)))),
    "maths": Suite(name="sums", domain="maths", prompts=(*map(prompt, range(4)), prompt(9, checked=False))),
}


def run(demand: Demand = Demand(), *places: Place) -> Run:  # noqa: B008 - frozen
    return plan("r1", demand, places or (SMALL, LARGE, COLD, AWAY), SUITES)


def came(item: Item, grade: float | None, **fields: object) -> Outcome:
    return Outcome(**{"item": item, "took_s": 2.0, "grade": grade, "output_tokens": 10, "decode_s": 0.5, **fields})


def test_every_loaded_model_is_asked_every_checked_prompt_on_each_of_its_machines() -> None:
    made = run()
    asked = Counter((i.place.model, i.place.worker, i.domain) for items in made.items.values() for i in items)
    each = {"code": 8, "maths": 4}
    assert asked == {
        (model, worker, domain): n
        for domain, n in each.items()
        for model, worker in (("small", "w1"), ("large", "w1"), ("small", "w2"))
    }
    assert made.judged == 1


def test_a_machine_gets_one_model_after_the_other() -> None:
    models = [item.place.model for item in run().items["m1"]]
    assert models == sorted(models)


def test_a_model_that_is_named_is_loaded_for_it() -> None:
    items = run(Demand(model="cold", domain="code")).items
    assert {item.place.model for item in items["m1"]} == {"cold"}
    assert set(items) == {"m1"}


@pytest.mark.parametrize(
    ("demand", "places", "field", "words"),
    [
        (Demand(domain="law"), (SMALL,), "domain", "no suite is about 'law'; there are code, maths"),
        (Demand(worker="w9"), (SMALL,), "worker", "no machine that could be measured"),
        (Demand(model="other"), (SMALL,), "model", "no machine that is there holds 'other'"),
        (Demand(), (COLD,), "model", "no model is in memory"),
    ],
)
def test_a_demand_that_cannot_be_met_says_why(
    demand: Demand, places: tuple[Place, ...], field: str, words: str
) -> None:
    with pytest.raises(CannotRun, match=words) as fault:
        run(demand, *places)
    assert fault.value.field == field


def test_a_limit_takes_the_same_prompts_of_all_levels_each_time() -> None:
    checked = suites()["code"].checked
    few = spread(checked, 6)
    assert few == spread(checked, 6) and len(few) == len({each.id for each in few}) == 6
    assert {each.level for each in few} == {1, 2, 3}
    assert spread(checked, 99) == checked
    assert len(run(Demand(limit=3, domain="code")).items["m2"]) == 3


def test_the_time_left_is_the_slowest_machines() -> None:
    made = run(Demand(domain="code"))
    assert show(made).eta_s is None
    made.outcomes.append(came(made.items["m2"][0], 1.0, took_s=10.0))
    assert show(made).eta_s == 160.0  # w1 is not known yet: 16 prompts as slow as the others'
    made.outcomes.append(came(made.items["m1"][0], 1.0, took_s=1.0))
    assert show(made).eta_s == 70.0  # w2: 7 prompts of 10 s
    made.state = "done"
    assert show(made).eta_s == 0.0


def test_what_gave_no_grade_is_counted_and_lowers_none() -> None:
    made = run(Demand(model="small", worker="w2", domain="maths"))
    items = made.items["m2"]
    made.outcomes = [
        came(items[0], 1.0),
        came(items[1], 0.0),
        came(items[2], None, why="stall: no token for 60 s", output_tokens=None, decode_s=None),
    ]
    (row,) = show(made).rows
    assert (row.grade, row.n, row.total, row.ungraded, row.why) == (0.5, 2, 4, 1, "stall: no token for 60 s")
    assert row.low is not None and row.high is not None and row.low < 0.5 < row.high
    assert [each.grade for each in show(made).asked] == [None, 0.0, 1.0], "what there is to look at comes first"
    assert show(made).asked[0].prompt == items[2].prompt.id
    assert row.decode == 20.0


def test_models_are_compared_over_all_their_machines_and_a_machine_more_makes_nothing_surer() -> None:
    made = run(Demand(domain="code"))
    made.outcomes = [came(item, float(item.place.model == "small")) for items in made.items.values() for item in items]
    (said,) = show(made).versus
    assert (said.better, said.first, said.second, said.n) == ("small", "small", "large", 8)
    assert said.low > 0


def test_models_that_hardly_differ_are_undecided() -> None:
    made = run(Demand(domain="code", worker="w1"))
    made.outcomes = [
        came(item, float(item.prompt.id != "p0" or item.place.model == "small")) for item in made.items["m1"]
    ]
    (said,) = show(made).versus
    assert said.better is None
    assert said.difference == pytest.approx(1 / 8)
    assert said.low <= 0 <= said.high


def test_workers_of_one_machine_are_asked_one_after_the_other_and_their_times_add_up() -> None:
    made = run(Demand(domain="code"), SMALL, msgspec.structs.replace(AWAY, machine="m1"))
    assert [(machine, len(items)) for machine, items in made.items.items()] == [("m1", 16)]
    first, last = made.items["m1"][0], made.items["m1"][-1]
    made.outcomes = [came(first, 1.0, took_s=1.0), came(last, 1.0, took_s=10.0)]
    assert show(made).eta_s == 77.0  # seven more prompts of each
