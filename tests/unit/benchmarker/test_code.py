from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from services.benchmarker import suites
from services.benchmarker.graders.code import Code, grade_code, source_in

ADD = Code(function="add", cases=(((1, 2), 3), ((0, 0), 0)))


@pytest.mark.parametrize(
    "answer",
    [
        "```python\ndef add(a, b):\n    return a + b\n```",
        "Sure!\n```\ndef add(a, b): return a + b\n```\nIt adds.\n```python\nprint(add(1, 2))\n```",
        "```python\ndef add(a, b):\n    return a + b",
        "def add(a, b):\n    return a + b\n\nThis function adds two numbers.",
        "Here is the code:\nimport math\n\ndef add(a, b):\n    return a + b\nHope this helps",
    ],
)
def test_code_is_found_in_what_stands_around_it(answer: str) -> None:
    assert grade_code(ADD, answer).value == 1.0


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("def add(a, b):\n    return 3", "1 of 2 cases are right"),
        ("def sum(a, b):\n    return a + b", "defines no such function"),
        ("def add(a, b)\n    return", "is no Python: SyntaxError"),
        ("def add(a, b):\n    return a / b", "case 2 failed: ZeroDivisionError"),
        ("def add(a, b):\n    return {1}", "case 1 failed: TypeError"),
        ("add = 5\ndef x(): pass", "is no Python"),
        ("I would rather not.", "is no Python"),
    ],
)
def test_what_is_wrong_with_code_is_said(answer: str, why: str) -> None:
    graded = grade_code(ADD, f"```\n{answer}\n```" if answer.startswith("add") else answer)
    assert graded.value == 0.0
    assert why in graded.why or "defines no such function" in graded.why


def test_true_is_not_one_and_a_tuple_is_a_list() -> None:
    truth = Code(function="f", cases=(((1,), True), ((2,), False)))
    assert grade_code(truth, "def f(n): return n % 2").value == 0.0
    assert grade_code(truth, "def f(n): return n % 2 == 1").value == 1.0
    pairs = Code(function="f", cases=(((1,), [1, 0.3]), ((2,), [2, 0.3])))
    assert grade_code(pairs, "def f(n): return (n, 0.1 + 0.2)").value == 1.0


def test_cases_that_a_constant_would_meet_are_refused() -> None:
    with pytest.raises(ValueError, match="a constant would be right"):
        Code(function="f", cases=(((1,), 1), ((2,), 1)))
    with pytest.raises(msgspec.ValidationError, match="no name of a Python function"):
        msgspec.convert({"kind": "code", "function": "a b", "cases": [[[1], 1], [[2], 2]]}, Code)


def test_without_fences_only_what_looks_like_code_is_taken() -> None:
    assert source_in("Yes.\ndef f():\n    return 1\n\nDone.", "f") == "def f():\n    return 1\n"
    assert source_in("nothing", "f") == "nothing"


def test_the_suites_with_their_results_cannot_be_read_by_the_answer() -> None:
    suite = Path(suites.__file__).with_suffix("") / "code.toml"
    check = Code(function="look", cases=(((1,), True), ((2,), 2)))
    program = f"def look(n):\n    return 'cases' in open({str(suite)!r}).read() if n == 1 else n\n"
    assert suite.exists()
    assert grade_code(check, program) == (0.0, "case 1 failed: PermissionError")
