"""The sum is on the screen: each line follows from the one above, and the last is what the planner counts with."""

from __future__ import annotations

import math
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from services.cli.stats_explained import exact, explained
from support import stats_pages
from support.wide_stats import household

NAME = "Qwen/Qwen3-30B-A3B-Instruct-2507:Q4_K_M"


def shown(*cell: str, width: int = 80, which: str = "both") -> list[str]:
    console = Console(width=width, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(explained(stats_pages.cell(household(), *cell), which))  # type: ignore[arg-type]
    return captured.get().splitlines()


def test_the_sum_on_the_screen_is_right_with_a_pocket_calculator() -> None:
    """Only from what is printed: the weights, the levels' own values, and the guess."""
    lines = shown("qwen3", "code", "laptop")
    start = next(n for n, line in enumerate(lines) if line.startswith("Speed of writing"))
    rows = [line.split() for line in lines[start:] if re.match(r"\s+(this |just |all |the guess)", line)]
    value = float(rows[0][-1])
    for words in rows[1:6]:
        numbers = [word for word in words if re.fullmatch(r"[\d.]+", word)]
        own, weight, worth, gives = map(float, numbers[:4])
        value = math.exp((weight * math.log(own) + worth * math.log(value)) / (weight + worth))
        assert value == pytest.approx(gives, rel=2e-3)
        value = gives
    counted = re.search(r"counts with ([\d.]+) tokens/s", " ".join(lines))
    assert counted and float(counted[1]) == value


def test_the_line_by_hand_is_the_last_level_that_was_measured() -> None:
    line = next(line for line in shown("qwen3", "code", "desktop", which="quality") if "By hand" in line)
    found = re.search(r"\((.+)\) / \((.+)\) = ([\d.]+)$", line)
    assert found
    total, whole = found[1].replace("·", "*"), found[2]
    assert eval(total) / eval(whole) == pytest.approx(
        float(found[3]), abs=2e-4
    )  # the very line that a reader would type


def test_a_name_with_slashes_and_colons_is_shown_whole() -> None:
    assert f"{NAME} · code · desktop:" in shown(NAME, "code", "desktop")[0]


def test_what_nobody_measured_is_listed_as_guesses_and_not_as_tables_of_nothing() -> None:
    lines = shown("new-model", "code", "laptop")
    assert "nothing was measured of just this yet" in lines[1]
    at = lines.index("Guesses, because nothing like it was measured:")
    assert any("Loading the model" in line for line in lines[at:])


def test_whose_word_a_quality_is_stands_below_it() -> None:
    told = " ".join(" ".join(shown("qwen3", "code", "desktop", which="quality")).split())
    assert (
        "4 by a judge model, 2 by a check, 1 by a person's thumb, 1 that could not be read and count nothing." in told
    )
    assert f"Held against {NAME} in 4 pairs, won 75 % (a tie is half)." in told
    assert "a strength of +0." in told and "By themselves its answers were found 0.7000 good, weight 3.00." in told


def test_the_two_kinds_of_judgement_add_up_to_the_levels_own_value() -> None:
    """On a machine that has none of its own, so that the level holds them all."""
    told = " ".join(" ".join(shown("qwen3", "code", "laptop", which="quality")).split())
    pairs = re.search(r"counts as ([\d.]+) with a weight of (\d+\.\d+)", told)
    alone = re.search(r"found ([\d.]+) good, weight (\d+\.\d+)", told)
    level = re.search(r"this domain elsewhere ([\d.]+) ([\d.]+)", told)
    assert pairs and alone and level
    parts = [(float(found[1]), float(found[2])) for found in (pairs, alone)]
    assert sum(weight for _, weight in parts) == pytest.approx(float(level[2]), abs=0.02)
    assert sum(value * weight for value, weight in parts) / float(level[2]) == pytest.approx(float(level[1]), abs=2e-3)


def test_why_a_cell_began_anew_is_at_the_top() -> None:
    assert any(
        "began anew 2 h ago, because the speed changed" in line for line in shown("qwen3", "code", "desktop")[:4]
    )


def test_without_a_machine_there_are_no_speeds_and_it_says_why() -> None:
    lines = shown("qwen3", "writing")
    assert any(line.startswith("No speeds: a judgement of the model wherever it ran") for line in lines)
    assert not any(line.startswith("Speed of writing") for line in lines)


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(map(cell_len, shown(NAME, "code", "desktop", width=width))) <= width


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.0, "0"), (0.67194, "0.6719"), (6.1634, "6.163"), (96.418, "96.42"), (213.27, "213.3"), (2880.4, "2880")],
)
def test_four_digits_are_enough_to_follow(value: float, said: str) -> None:
    assert exact(value) == said
