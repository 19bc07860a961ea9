"""Does the answer say the expected word, at once? One of several spellings, near its beginning.

Only the beginning is read, so that a long answer is not right by chance; what must not be said there makes it wrong.
"""

from __future__ import annotations

from services.benchmarker.graders.grade import Check, Grade, right
from services.benchmarker.graders.reading import plain, says

HEAD_CHARS = 100
"""A short sentence around the word fits, a list of guesses does not."""


class Word(Check, frozen=True, kw_only=True, tag="word"):
    """``any`` are the right words, ``none`` those that make it wrong. ``exact``: nothing else may be said."""

    any: tuple[str, ...]
    none: tuple[str, ...] = ()
    exact: bool = False
    within: int = HEAD_CHARS

    def __post_init__(self) -> None:
        if not self.any or not all(word.strip() for word in self.any):
            raise ValueError("any must name at least one word, and none may be empty")
        if self.within < 1:
            raise ValueError(f"within is {self.within}; expected at least one character")


def grade_word(check: Word, answer: str) -> Grade:
    text = plain(answer)
    if check.exact:
        said = text.strip(" .!?。、「」\"'").casefold()
        is_right = said in {plain(word).casefold() for word in check.any}
        return right(is_right, "says just that" if is_right else "says something else, or more")
    head = text[: check.within]
    wrong = next((word for word in check.none if says(head, word)), None)
    if wrong is not None:
        return Grade(0.0, f"says {wrong}")
    found = next((word for word in check.any if says(head, word)), None)
    return right(found is not None, f"says {found}" if found else f"its first {check.within} characters lack the word")
