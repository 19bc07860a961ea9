"""Which of the given options did the answer choose?

The first line decides where it names just one, then what follows "the answer is", then the whole text. An answer that names
several and chooses none is wrong: naming all of them would always be right.
"""

from __future__ import annotations

from services.benchmarker.graders.grade import Check, Grade, right
from services.benchmarker.graders.reading import after_answer, first_line, plain, says


class Choice(Check, frozen=True, kw_only=True, tag="choice"):
    options: tuple[str, ...]
    answer: str

    def __post_init__(self) -> None:
        if self.answer not in self.options:
            raise ValueError(f"answer {self.answer!r} is none of the options {list(self.options)}")
        if len(set(self.options)) < 2:
            raise ValueError("options must be at least two different ones")


def grade_choice(check: Choice, answer: str) -> Grade:
    text = plain(answer)
    alone = first_line(text).strip(" .:;!?()[]。、「」").casefold()
    chosen = next((option for option in check.options if option.casefold() == alone), None)
    for part in (first_line(text), after_answer(text), text):
        if chosen is None and part is not None:
            named = named_in(part, check.options)
            chosen = named[0] if len(named) == 1 else None
    if chosen is None:
        return Grade(0.0, "chooses none of the options")
    return right(chosen == check.answer, f"chooses {chosen}")


def named_in(text: str, options: tuple[str, ...]) -> list[str]:
    """Those that stand in the text; one that is only a part of a longer one that stands there is not meant."""
    found = [option for option in options if says(text, option)]
    return [option for option in found if not any(option != other and option in other for other in found)]
