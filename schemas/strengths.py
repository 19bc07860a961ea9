"""How good is each model of a domain, by those that it was held against?

Answers "what do all judged pairs of a domain say together?". A win against a strong model says more than one against a weak one,
so values against different peers are on no common scale; Bradley-Terry strengths are. Pure and deterministic: sorted names, a
fixed method, always from the tallies alone. Never the present time.

The model: ``i`` is preferred to ``j`` with probability 1 / (1 + exp(sj - si)); a tie is half a win each. The strengths are the
most probable ones under a normal prior around the mean, so that few pairs stay near it and nobody is infinitely good.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from schemas.cells import Tally
from schemas.samples import UNIT
from schemas.weights import WEIGHT_ONE

PRIOR_VARIANCE = 2.0
"""Of a strength before any pair. Wide, because the levels shrink what comes out once more: with 1/2, 1, 2 and 4 the simulated
regret is 8.1, 7.2, 7.0 and 7.4 points, and 7.5, 5.7, 4.1 and 5.5 after a better model joins (16 seeds of ``make sim``)."""

LEVEL_VARIANCE = 1.0
"""Of a domain's level, as a strength: as much as four judgements at one half."""

STEPS_MOST = 50
STEP_MOST = 2.0
CLOSE = 1e-12
"""Newton's method of a concave function: some six steps. Cut where the first ones would overshoot."""


class Game(NamedTuple):
    """Two models, in order of their names: pairs judged, their weight, and the share of it that ``one`` won."""

    one: str
    other: str
    n: int
    w: int
    won: float


class Standing(NamedTuple):
    """A model among those it met in a domain: pairs judged, their weight (as in ``schemas.weights``), its strength (mean 0)."""

    model: str
    n: int
    w: int
    strength: float


def games(tallies: Iterable[tuple[str, Tally]]) -> tuple[Game, ...]:
    """One for each two models that met, of every cell's tallies (with the cell's model).

    A pair stands in both models' cells. It counts once, and as much as it still does on the side that forgot more of it: after
    one model changed, what the other one remembers of it is about somebody else."""
    sums: dict[tuple[str, str], list[int]] = {}
    for model, tally in tallies:
        found = sums.setdefault((model, tally.peer), [0, 0, 0])
        for index, value in enumerate((tally.n, tally.w, tally.wx)):
            found[index] += value
    met = []
    for (one, other), (n, w, wx) in sorted(sums.items()):
        n_back, w_back, wx_back = sums.get((other, one), (0, 0, 0))
        if one < other and w and w_back:
            won = (wx + w_back * UNIT - wx_back) / ((w + w_back) * UNIT)
            met.append(Game(one, other, min(n, n_back), min(w, w_back) // UNIT, won))
    return tuple(met)


def standings(met: Sequence[Game]) -> tuple[Standing, ...]:
    """Every model of ``met`` by name."""
    models = sorted({model for game in met for model in (game.one, game.other)})
    strengths = _most_probable(models, met)
    n, w = dict.fromkeys(models, 0), dict.fromkeys(models, 0)
    for game in met:
        for model in (game.one, game.other):
            n[model] += game.n
            w[model] += game.w
    return tuple(Standing(model, n[model], w[model], strengths[model]) for model in models)


def worth(ranked: Sequence[Standing], judged: Mapping[str, tuple[float, float]]) -> dict[str, int]:
    """Each one's quality in millionths: its expected rate of wins against the mean model, moved to the level at which the models'
    answers are found when they are judged by themselves. ``judged`` is (weight, mean in [0, 1]) of some of the models.

    All of them move by one number on the scale of strengths, so a bad model that joins leaves the others where they were."""
    known = [(judged[s.model], s.strength) for s in ranked if s.model in judged]

    def slope(level: float) -> float:
        return sum(w * (mean - _win(level + strength)) for (w, mean), strength in known) - level / LEVEL_VARIANCE

    low, high = -20.0, 20.0
    for _ in range(STEPS_MOST):
        middle = (low + high) / 2.0
        low, high = (middle, high) if slope(middle) > 0.0 else (low, middle)
    return {s.model: round(UNIT * _win((low + high) / 2.0 + s.strength)) for s in ranked}


def _win(difference: float) -> float:
    """The logistic function, for any difference."""
    small = math.exp(-abs(difference))
    return 1.0 / (1.0 + small) if difference >= 0.0 else small / (1.0 + small)


def _most_probable(models: Sequence[str], met: Sequence[Game]) -> dict[str, float]:
    """By Newton's method on all strengths at once: chains and groups that hardly met converge as fast as the rest."""
    place = {model: index for index, model in enumerate(models)}
    pairs = [(place[game.one], place[game.other], game.w / WEIGHT_ONE, game.won) for game in met]
    strengths = [0.0] * len(models)
    for _ in range(STEPS_MOST):
        gradient = [-strength / PRIOR_VARIANCE for strength in strengths]
        curvature = [[0.0] * len(models) for _ in models]
        for index in range(len(models)):
            curvature[index][index] = 1.0 / PRIOR_VARIANCE
        for one, other, weight, won in pairs:
            expected = _win(strengths[one] - strengths[other])
            surprise, bend = weight * (won - expected), weight * expected * (1.0 - expected)
            gradient[one] += surprise
            gradient[other] -= surprise
            curvature[one][one] += bend
            curvature[other][other] += bend
            curvature[one][other] -= bend
            curvature[other][one] -= bend
        steps = _solved(curvature, gradient)
        largest = max(map(abs, steps), default=0.0)
        cut = min(1.0, STEP_MOST / largest) if largest else 1.0
        strengths = [strength + cut * step for strength, step in zip(strengths, steps, strict=True)]
        if largest < CLOSE:
            break
    return dict(zip(models, strengths, strict=True))


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """x of ``matrix`` · x = ``right``. The matrix is symmetric and dominated by its diagonal: no pivots are needed."""
    size = len(right)
    for column in range(size):
        pivot = matrix[column]
        for row in range(column + 1, size):
            share = matrix[row][column] / pivot[column]
            if share:
                matrix[row] = [a - share * b for a, b in zip(matrix[row], pivot, strict=True)]
                right[row] -= share * right[column]
    found = [0.0] * size
    for row in reversed(range(size)):
        known = sum(matrix[row][column] * found[column] for column in range(row + 1, size))
        found[row] = (right[row] - known) / matrix[row][row]
    return found
