"""Parents are kept up to date one cell at a time; a missing metric never makes anything look better."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from schemas.events import Measure
from schemas.pools import OTHERS_WEIGHT_MOST, SLOWDOWN_MOST
from schemas.statistics import Cell, Effective, Sample, Statistics, cost, effective, fold, key_of, predict
from support.samples import GB, sample_log


def states(log: list[Sample]) -> list[Cell]:
    """Every state of every cell, in the order in which the projector would send them."""
    seen: dict[Any, list[Sample]] = {}
    cells = []
    for sample in log:
        seen.setdefault(key_of(sample), []).append(sample)
        cells.append(fold(seen[key_of(sample)]))
    return cells


@given(log=sample_log(30), data=st.data())
def test_kept_parents_equal_rebuilt_ones_in_any_order_of_arrival(log: list[Sample], data: st.DataObject) -> None:
    sent = states(log)
    kept = Statistics(data.draw(st.permutations(sent)))
    last = {key_of(cell): cell for cell in sent}
    rebuilt = Statistics(last.values())
    assert kept.pools() == rebuilt.pools()
    assert kept.position == rebuilt.position
    for model, worker in (("qwen3", "desk"), ("llama", "lap"), ("new", "desk"), ("qwen3", "new")):
        asked = {"model_bytes": None, "now_us": 10**15}
        assert effective(kept, model, "code", worker, **asked) == effective(rebuilt, model, "code", worker, **asked)


@given(log=sample_log(30))
def test_a_lookup_is_the_same_whether_it_is_remembered_or_not(log: list[Sample]) -> None:
    """Asked between all cells, and at two times: the ages go on, and nothing outlives the cell that changed it."""
    kept, sent = Statistics(), states(log)
    for n, cell in enumerate(sent, 1):
        kept.put(cell)
        for now_us in (10**15, 2 * 10**15):
            asked = {"model_bytes": None, "now_us": now_us}
            anew = effective(Statistics(sent[:n]), "qwen3", "code", "desk", **asked)
            assert effective(kept, "qwen3", "code", "desk", **asked) == anew


@given(log=sample_log(30))
def test_values_are_always_there_and_levels_without_data_never_claim_any(log: list[Sample]) -> None:
    known = effective(Statistics(states(log)), "qwen3", "code", "desk", model_bytes=5 * GB, now_us=10**15)
    learned = (known.slowdown, known.others_weight)
    for measure in (known.decode, known.prefill, known.load, known.output_tokens, known.quality, *learned):
        assert measure.value is not None and measure.value >= 0.0
        assert (measure.level == "prior") == (measure.n == 0) == (measure.age_s is None)
    assert known.quality.value is not None and known.quality.value <= 1.0
    assert known.slowdown.value is not None and known.slowdown.value <= SLOWDOWN_MOST
    assert known.others_weight.value is not None and known.others_weight.value <= OTHERS_WEIGHT_MOST


positive = st.floats(0.01, 1e4)


@st.composite
def expectation(draw: st.DrawFn) -> Effective:
    def measure(values: st.SearchStrategy[float]) -> Measure:
        return Measure(value=draw(values), level="cell", n=draw(st.integers(1, 500)))

    return Effective(
        decode=measure(positive),
        prefill=measure(positive),
        load=measure(positive),
        output_tokens=measure(positive),
        quality=measure(st.floats(0, 1)),
        slowdown=measure(st.floats(0, SLOWDOWN_MOST)),
        others_weight=measure(st.floats(0, OTHERS_WEIGHT_MOST)),
        uncertainty=draw(st.floats(0, 2)),
    )


known_inputs = st.fixed_dictionaries(
    {
        "resident": st.booleans(),
        "others_use": st.floats(0, 1),
        "wait_s": st.floats(0, 3600),
    }
)


@given(
    known=expectation(),
    inputs=known_inputs,
    hidden=st.sets(st.sampled_from(("resident", "others_use", "wait_s")), min_size=1),
)
def test_hiding_a_metric_never_lowers_the_cost(known: Effective, inputs: dict[str, Any], hidden: set[str]) -> None:
    """S3: silence never beats honesty."""

    def total(**given: Any) -> float:
        predicted = predict(known, prompt_tokens=200, max_tokens=None, **given)
        assert predicted.total_s is not None and known.quality.value is not None
        return cost(predicted.total_s, known.quality.value, 1.0)

    assert total(**inputs | dict.fromkeys(hidden)) >= total(**inputs)


@given(known=expectation(), inputs=known_inputs, n=st.integers(1, 10_000), uncertainty=st.floats(0, 3))
def test_counts_and_uncertainty_never_enter_the_prediction(
    known: Effective, inputs: dict[str, Any], n: int, uncertainty: float
) -> None:
    thick = Effective(
        decode=Measure(value=known.decode.value, level="prior", n=n),
        prefill=Measure(value=known.prefill.value, level="prior", n=n),
        load=known.load,
        output_tokens=known.output_tokens,
        quality=known.quality,
        slowdown=known.slowdown,
        others_weight=known.others_weight,
        uncertainty=uncertainty,
    )
    asked = {"prompt_tokens": 200, "max_tokens": 100, **inputs}
    assert predict(thick, **asked) == predict(known, **asked)
