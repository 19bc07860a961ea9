from __future__ import annotations

from itertools import pairwise

import pytest

from schemas.scales import BOUNDS, COLOURS, INKS, Of, bounds_words, step

SCALES: tuple[Of, ...] = ("decode", "quality")


def luminance(colour: str) -> float:
    """WCAG 2, relative luminance."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("of", SCALES)
def test_every_step_has_a_colour_an_ink_and_words(of: Of) -> None:
    assert len(COLOURS) == len(INKS) == len(BOUNDS[of]) + 1 == len(bounds_words(of))
    assert [step(of, bound) for bound in BOUNDS[of]] == list(range(1, len(COLOURS)))
    assert (step(of, 0.0), step(of, BOUNDS[of][-1] * 100)) == (0, len(COLOURS) - 1)


def test_the_number_can_be_read_on_each_colour() -> None:
    for colour, ink in zip(COLOURS, INKS, strict=True):
        dark, light = sorted((luminance(colour), luminance(ink)))
        assert (light + 0.05) / (dark + 0.05) >= 4.5, colour


def test_the_colours_order_by_lightness_alone_so_that_no_kind_of_sight_confuses_them() -> None:
    shades = [luminance(colour) for colour in COLOURS]
    assert shades == sorted(shades)
    assert all(later / earlier > 1.2 for earlier, later in pairwise(shades))


def test_the_words_say_the_bounds() -> None:
    assert bounds_words("decode")[:2] == ("below 5", "5 to 10") and bounds_words("decode")[-1] == "160 and more"
    assert bounds_words("quality")[1] == "15 to 30"
