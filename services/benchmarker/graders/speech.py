"""Is the answer in the language that was asked for? From scripts and function words (``schemas.language``), nothing more.

Alone it says little: any sentence of that language passes. Suites use it beside other constraints.
"""

from __future__ import annotations

from typing import Literal

from schemas.language import language_of
from services.benchmarker.graders.grade import Check, Grade, right

Language = Literal["ja", "en"]


class Speech(Check, frozen=True, kw_only=True, tag="language"):
    language: Language


def grade_speech(check: Speech, answer: str) -> Grade:
    found = language_of(answer)
    return right(found == check.language, f"its language is {found or 'none: it has no letters'}")
