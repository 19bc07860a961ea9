"""Is the number right? Thousands separators, full-width and Japanese numerals, and units are read before numbers are compared.

Which of an answer's numbers is meant: its first line's where that holds just one, else the one that follows "the answer is", else
the last one. All or nothing: a number nearby is a wrong number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from services.benchmarker.graders.grade import Check, Grade, right
from services.benchmarker.graders.reading import after_answer, first_line, plain

_DIGITS = {kanji: value for value, kanji in enumerate("〇一二三四五六七八九")} | {"零": 0}
_SMALL = {"十": 10, "百": 100, "千": 1000}
_LARGE = {"万": 10**4, "億": 10**8, "兆": 10**12}
_KANJI = "".join((*_DIGITS, *_SMALL, *_LARGE))
_ARABIC = r"\d{1,3}(?:[,'’]\d{3})+(?:\.\d{1,30})?|\d{1,30}(?:\.\d{1,30})?"
_NUMBER = re.compile(
    rf"(?P<sign>(?<![\w).])[-−])?(?:(?P<top>\d{{1,15}})\s?/\s?(?P<bottom>\d{{1,15}})(?!\d)"
    rf"|(?P<mixed>(?:(?:{_ARABIC})[{''.join((*_SMALL, *_LARGE))}]+)+(?:{_ARABIC})?)|(?P<arabic>{_ARABIC})"
    rf"|(?P<kanji>[{_KANJI}]+))"
)
_UNIT = re.compile(r"\s*(\$|%|°C|[^\W\d_]+)")


class Number(Check, frozen=True, kw_only=True, tag="number"):
    """``value`` within ``tolerance``. ``units`` maps each accepted unit to what one of it counts; none said counts as 1."""

    value: float
    tolerance: float = 0.0
    units: Mapping[str, float] = {}

    def __post_init__(self) -> None:
        if self.tolerance < 0:
            raise ValueError(f"tolerance is {self.tolerance}; expected at least 0")


class Found(NamedTuple):
    value: float
    unit: str | None
    is_kanji: bool


def grade_number(check: Number, answer: str) -> Grade:
    said = meant(plain(answer))
    if said is None:
        return Grade(0.0, "says no number")
    factor, shown = 1.0, f"says {said.value:g}"
    if check.units and said.unit is not None:
        unit = next((unit for unit in sorted(check.units, key=len, reverse=True) if said.unit.startswith(unit)), None)
        factor = check.units[unit] if unit is not None else 1.0
        shown += f" {unit}" if unit is not None else ""
    slack = check.tolerance + 1e-9 * max(1.0, abs(check.value))
    return right(abs(said.value * factor - check.value) <= slack, shown)


def meant(text: str) -> Found | None:
    """The number that an answer gives, among all that it mentions."""
    head = numbers(first_line(text))
    if len(head) == 1:
        return head[0]
    said = numbers(after_answer(text) or "")
    if said:
        return said[0]
    every = numbers(text)
    return every[-1] if every else None


def numbers(text: str) -> list[Found]:
    """All of a text, in order. Kanji count only where no digits are written: 一番 and 三角形 are no numbers."""
    found = list(_numbers(text))
    return [each for each in found if not each.is_kanji] or found


def _numbers(text: str) -> Iterator[Found]:
    for match in _NUMBER.finditer(text):
        value: float
        if match["top"] is not None:
            if int(match["bottom"]) == 0:
                continue
            value = int(match["top"]) / int(match["bottom"])
        elif match["arabic"] is not None:
            value = _float(match["arabic"])
        else:
            value = read_kanji(match["mixed"] or match["kanji"])
        unit = _UNIT.match(text, match.end())
        yield Found(-value if match["sign"] else value, unit[1] if unit else None, match["kanji"] is not None)


def read_kanji(text: str) -> float:
    """三百二十一 is 321, 3万5千 is 35,000, 二〇二六 is 2026."""
    total = section = 0.0
    digits = ""
    for char in text:
        if char in _SMALL or char in _LARGE:
            number = _float(digits) if digits else None
            digits = ""
            if char in _SMALL:
                section += (1.0 if number is None else number) * _SMALL[char]
            else:
                section += number or 0.0
                total += (section or 1.0) * _LARGE[char]
                section = 0.0
        else:
            digits += str(_DIGITS[char]) if char in _DIGITS else char
    return total + section + (_float(digits) if digits else 0.0)


def _float(digits: str) -> float:
    """At most thirty digits each side were matched, except in kanji; what is longer still is just very large."""
    return float(re.sub(r"[,'’]", "", digits)[:300])
