"""Does the answer keep to what was asked of its form, and say what it must? Words, lines, bullet points, language, phrases.

The grade is a product: the share of the phrases that had to be said, times the share of the other constraints that were kept. So
a text that keeps a form and says nothing of the matter gets nothing, and
one that goes in circles neither.
"""

from __future__ import annotations

from collections.abc import Iterator

from services.benchmarker.graders.grade import Check, Grade
from services.benchmarker.graders.reading import bullets, characters, goes_in_circles, lines, plain, says, words
from services.benchmarker.graders.speech import Language, Speech, grade_speech


class Constraints(Check, frozen=True, kw_only=True, tag="constraints"):
    """``must`` holds groups of spellings, one of each group must be said; ``must_not`` may not. ``bullets`` is an exact number;
    ``chars`` count without white space."""

    must: tuple[tuple[str, ...], ...] = ()
    must_not: tuple[str, ...] = ()
    language: Language | None = None
    words_min: int | None = None
    words_max: int | None = None
    chars_min: int | None = None
    chars_max: int | None = None
    lines_min: int | None = None
    lines_max: int | None = None
    bullets: int | None = None
    starts: str | None = None
    ends: str | None = None

    def __post_init__(self) -> None:
        if not any(getattr(self, name) not in (None, ()) for name in self.__struct_fields__):
            raise ValueError("constraints names no constraint")
        if any(not group for group in self.must):
            raise ValueError("a group of must is empty")


def grade_constraints(check: Constraints, answer: str) -> Grade:
    text = plain(answer)
    if goes_in_circles(text):
        return Grade(0.0, "says the same again and again")
    said = [any(says(text, phrase) for phrase in group) for group in check.must]
    kept = dict(_form(check, answer, text))
    missing = [group[0] for group, is_said in zip(check.must, said, strict=True) if not is_said]
    broken = [name for name, is_kept in kept.items() if not is_kept]
    value = (sum(said) / len(said) if said else 1.0) * (sum(kept.values()) / len(kept) if kept else 1.0)
    why = "; ".join([f"lacks {', '.join(missing)}"] * bool(missing) + [f"breaks {', '.join(broken)}"] * bool(broken))
    return Grade(value, why or "keeps to all of it")


def _form(check: Constraints, answer: str, text: str) -> Iterator[tuple[str, bool]]:
    """Each constraint on the form, by name. Lines and bullets are counted before marks are taken out."""
    limits = (
        ("words", words(text), check.words_min, check.words_max),
        ("chars", characters(text), check.chars_min, check.chars_max),
        ("lines", lines(answer), check.lines_min, check.lines_max),
        ("bullets", bullets(answer), check.bullets, check.bullets),
    )
    for name, count, least, most in limits:
        if least is not None or most is not None:
            yield f"{name} ({count})", (least is None or count >= least) and (most is None or count <= most)
    if check.must_not:
        yield "must_not", not any(says(text, phrase) for phrase in check.must_not)
    if check.language is not None:
        yield "language", grade_speech(Speech(language=check.language), answer).value == 1.0
    if check.starts is not None:
        yield "starts", text.casefold().startswith(check.starts.casefold())
    if check.ends is not None:
        yield "ends", text.casefold().endswith(check.ends.casefold())
