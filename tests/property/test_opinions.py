"""What is said about a model's judgements is all of them, and counts as much as the statistics let it."""

from __future__ import annotations

import pytest
from hypothesis import given

from schemas.opinions import opinions
from schemas.pools import Statistics
from schemas.samples import UNIT, Sample
from schemas.statistics import fold, key_of
from support.samples import sample_log


def statistics(log: list[Sample]) -> Statistics:
    cells: dict[object, list[Sample]] = {}
    for sample in log:
        cells.setdefault(key_of(sample), []).append(sample)
    return Statistics(fold(samples) for samples in cells.values())


@given(log=sample_log(60))
def test_judgements_by_themselves_and_pairs_add_up_to_the_level_of_model_and_domain(log: list[Sample]) -> None:
    stats = statistics(log)
    for model in ("qwen3", "llama"):
        told = opinions(stats, model, "code")
        pool = stats.pool("quality", "md", model, "code")
        parts = [(told.by_itself.weight, told.by_itself.value or 0.0)]
        parts += [(told.pairs.weight, told.pairs.value)] if told.pairs else []
        assert sum(weight for weight, _ in parts) == pytest.approx(pool.weight())
        assert sum(weight * value for weight, value in parts) == pytest.approx(pool.y / UNIT / 2**30, abs=1e-6)
        if told.pairs:
            assert sum(rival.n for rival in told.pairs.rivals) == told.pairs.n
            assert all(0.0 <= rival.won <= 1.0 for rival in told.pairs.rivals)
            assert 0.0 < told.pairs.value < 1.0


@given(log=sample_log(60))
def test_every_judgement_is_counted_under_its_source_once(log: list[Sample]) -> None:
    stats = statistics(log)
    told = opinions(stats, "qwen3", "maths").sources
    cells = [cell.sources for cell in stats.cells() if (cell.model, cell.domain) == ("qwen3", "maths")]
    for name in ("judge", "check", "thumb", "signal", "void"):
        assert getattr(told, name) == sum(getattr(sources, name) for sources in cells)
