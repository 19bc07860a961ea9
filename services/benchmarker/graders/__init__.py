"""Is this answer right? One small grader per kind of check, each a file of its own, in one explicit table.

A grader takes its check and an answer and gives a grade in [0, 1], or None with the reason why it cannot tell. The same answer
always gets the same grade, and no answer, however hostile, makes one raise (tests/contract/test_graders.py). It never asks a
model and never reads the clock for anything but a limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from services.benchmarker.graders.choice import Choice, grade_choice
from services.benchmarker.graders.code import Code, grade_code
from services.benchmarker.graders.constraints import Constraints, grade_constraints
from services.benchmarker.graders.grade import ANSWER_CHARS_MAX, Grade
from services.benchmarker.graders.number import Number, grade_number
from services.benchmarker.graders.reading import without_echo
from services.benchmarker.graders.speech import Speech, grade_speech
from services.benchmarker.graders.structure import Structure, grade_structure
from services.benchmarker.graders.word import Word, grade_word

AnyCheck = Choice | Code | Constraints | Number | Speech | Structure | Word


class Grader(NamedTuple):
    """``check`` is what a suite may say; ``runs`` whether it starts a process (then it takes up to seconds)."""

    check: type[Any]
    grade: Callable[[Any, str], Grade]
    runs: bool = False


GRADERS: dict[str, Grader] = {
    "choice": Grader(Choice, grade_choice),
    "code": Grader(Code, grade_code, runs=True),
    "constraints": Grader(Constraints, grade_constraints),
    "json": Grader(Structure, grade_structure),
    "language": Grader(Speech, grade_speech),
    "number": Grader(Number, grade_number),
    "word": Grader(Word, grade_word),
}


def name_of(check: AnyCheck) -> str:
    """The name by which a suite asks for it, for example ``number``."""
    return str(type(check).__struct_config__.tag)


def grade(check: AnyCheck, answer: str, asked: str = "") -> Grade:
    """What the answer to ``asked`` is worth. Nothing is worth nothing, the question itself neither; what is too long to be read
    is no grade at all."""
    said = without_echo(answer, asked).encode(errors="replace").decode()  # half a surrogate pair is no text
    if not said.strip():
        return Grade(0.0, "the answer is empty" if not answer.strip() else "repeats the question")
    if len(answer) > ANSWER_CHARS_MAX:
        return Grade(None, f"the answer has {len(answer)} characters; at most {ANSWER_CHARS_MAX} are read")
    return GRADERS[name_of(check)].grade(check, said)
