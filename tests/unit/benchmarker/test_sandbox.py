from __future__ import annotations

import sys

import pytest

from services.benchmarker.graders import sandbox
from services.benchmarker.graders.sandbox import SAID_BYTES_MAX, SOURCE_BYTES_MAX, run_function


def test_a_function_gives_its_results_in_order() -> None:
    ran = run_function("def f(a, b='x'):\n    return [a, b]", "f", [[1], [2, "ü"]])
    assert ran.results == ([1, "x"], [2, "ü"])
    assert ran.problem is None


def test_sleeping_ends_at_the_wall() -> None:
    ran = run_function("import select\ndef f():\n    select.select([], [], [], 60)", "f", [[]], wall_s=1.0)
    assert ran.problem is not None


def test_a_process_that_only_waits_is_ended() -> None:
    ran = run_function("import time\ndef f():\n    time.sleep(60)", "f", [[]], wall_s=1.0)
    assert ran.problem == "did not end within 1 s"


def test_computing_for_ever_ends_by_the_processor_time() -> None:
    ran = run_function("def f():\n    while True: pass", "f", [[]], cpu_s=1, wall_s=60)
    assert ran.problem is not None and "out of time or memory" in ran.problem


def test_a_machine_that_is_too_busy_to_run_it_is_no_wrong_answer() -> None:
    ran = run_function("def f():\n    while True: pass", "f", [[]], cpu_s=600, wall_s=0.5)
    assert (ran.problem, ran.unavailable) == (None, "the machine was too busy to run the code within 3 s")


def test_a_program_that_computes_is_given_longer_where_the_machine_is_busy() -> None:
    ran = run_function("def f():\n    for n in range(20_000_000): pass\n    return n", "f", [[]], wall_s=0.5, cpu_s=60)
    assert ran.results == (19_999_999,) or ran.unavailable is not None


def test_too_much_code_is_not_run() -> None:
    ran = run_function("#" * SOURCE_BYTES_MAX, "f", [[]])
    assert ran.problem == f"the code has more than {SOURCE_BYTES_MAX} bytes"


def test_saying_too_much_ends_it() -> None:
    ran = run_function("import os\nwhile True: os.write(3, b'x' * 1000)", "f", [[]])
    assert ran.problem == f"said more than {SAID_BYTES_MAX} bytes"


@pytest.mark.parametrize("said", ["[]", '{"results": 3}', "nonsense", '{"results": [' + "[" * 5000])
def test_nothing_that_it_says_is_trusted(said: str) -> None:
    ran = run_function(f"import os\nos.write(3, {said.encode()!r})\nos._exit(0)", "f", [[]])
    assert ran.problem == "said something that is no result"


def test_where_no_process_can_be_started_there_is_no_result_and_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    ran = sandbox.run_function("def f(): return 1", "f", [[]])
    assert ran.problem is None
    assert ran.unavailable is not None and "no process could be started" in ran.unavailable


def test_an_error_of_the_programs_own_is_not_called_by_its_name() -> None:
    ran = run_function("def f():\n    raise type('secret', (Exception,), {})", "f", [[]])
    assert ran.problem == "case 1 failed: an error of its own"
