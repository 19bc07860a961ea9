"""Does the code do what was asked? The function is run on the suite's cases, far away from everything (``sandbox``).

All or nothing: code that is right three times out of five is wrong. The expected results never enter the process that runs the
answer, so it cannot learn them there.
"""

from __future__ import annotations

import re
from typing import Any

from services.benchmarker.graders.grade import Check, Grade, right
from services.benchmarker.graders.sandbox import run_function

_BLOCK = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)
_BEGINS = re.compile(r"(?:def|async def|class|import|from)\b|@")


class Code(Check, frozen=True, kw_only=True, tag="code"):
    """``cases`` are pairs of the arguments and the result that they must give, as plain TOML values."""

    function: str
    cases: tuple[tuple[tuple[Any, ...], Any], ...]

    def __post_init__(self) -> None:
        if not self.function.isidentifier():
            raise ValueError(f"function is {self.function!r}, which is no name of a Python function")
        if len(self.cases) < 2 or all(_same(result, self.cases[0][1]) for _, result in self.cases):
            raise ValueError("cases must have at least two different results, or a constant would be right")


def grade_code(check: Code, answer: str) -> Grade:
    ran = run_function(source_in(answer, check.function), check.function, [given for given, _ in check.cases])
    if ran.unavailable is not None:
        return Grade(None, ran.unavailable)
    if ran.problem is not None:
        return Grade(0.0, ran.problem)
    expected = [result for _, result in check.cases]
    if len(ran.results) != len(expected):
        return Grade(0.0, f"gave {len(ran.results)} results for {len(expected)} cases")
    passed = sum(_same(result, wanted) for result, wanted in zip(ran.results, expected, strict=True))
    return right(passed == len(expected), f"{passed} of {len(expected)} cases are right")


def source_in(answer: str, function: str) -> str:
    """The fenced block that defines the function; without fences the lines that look like code, up to the first that does not."""
    blocks = _BLOCK.findall(answer)
    if blocks:
        return str(next((block for block in blocks if f"def {function}" in block), blocks[0]))
    kept: list[str] = []
    for line in answer.splitlines():
        if _BEGINS.match(line):
            kept.append(line)
        elif kept and line.strip() and not line[0].isspace() and line[0] not in "#)]}":
            break
        elif kept:
            kept.append(line)
    return "\n".join(kept) or answer


def _same(result: Any, wanted: Any) -> bool:
    """Equal, and of one kind: True is not 1. Floats may differ in their last digits."""
    if isinstance(wanted, bool) or isinstance(result, bool):
        return result is wanted
    if isinstance(wanted, list | tuple) and isinstance(result, list):
        return len(result) == len(wanted) and all(map(_same, result, wanted))
    if isinstance(wanted, float) and isinstance(result, int | float):
        return abs(result - wanted) <= 1e-9 * max(1.0, abs(wanted))
    return bool(result == wanted)
