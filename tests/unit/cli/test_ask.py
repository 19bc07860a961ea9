from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from services.cli.ask import AT_LIMIT, REMARKS, Narrator, check_end, summary
from services.cli.exits import CommandFailed, Exit


def ended(outcome: str) -> dict[str, object]:
    return {"status": {"task": "t1", "state": "completed", "outcome": outcome, "model": "qwen3", "worker": "w-1"}}


@pytest.mark.parametrize("outcome", ["truncated", "wrong_language", "substituted"])
def test_an_answer_with_a_flaw_is_an_answer_and_its_flaw_is_one_sentence(outcome: str) -> None:
    check_end(ended(outcome))
    flaw = summary(ended(outcome)).splitlines()[1]
    assert flaw == REMARKS[outcome]
    assert outcome not in flaw


def test_a_good_answer_gets_no_remark() -> None:
    check_end(ended("ok"))
    assert len(summary(ended("ok")).splitlines()) == 1


def test_the_summary_names_the_task_so_that_it_can_be_explained() -> None:
    assert summary(ended("ok")).endswith("; task t1")


def test_an_answer_that_reached_the_limit_that_was_asked_for_was_cut_off_and_says_so() -> None:
    end = ended("ok")
    end["status"] |= {"finish_reason": "length", "tokens": {"output": 5}}  # type: ignore[operator]
    assert summary(end).splitlines()[1] == AT_LIMIT
    assert "5 tokens" in summary(end)


@pytest.mark.parametrize("state", ["failed", "dead", "cancelled"])
def test_a_task_without_an_answer_is_not_said_to_be_on_none_with_unknown_tokens(state: str) -> None:
    end = {"status": {"task": "t1", "state": state, "model": "qwen3", "worker": None, "failure": "backend_4xx"}}
    assert summary(end) == ""
    with pytest.raises(CommandFailed, match="backend_4xx") as failed:
        check_end(end)
    assert (failed.value.code, failed.value.hint) == (Exit.FAILED, "`headrace explain t1`")


def test_a_task_that_nobody_could_take_has_the_exit_code_of_a_busy_fleet() -> None:
    with pytest.raises(CommandFailed) as failed:
        check_end({"status": {"task": "t1", "state": "failed", "failure": "busy", "detail": "nobody was there"}})
    assert failed.value.code == Exit.BUSY


def test_who_waits_is_told_the_tasks_id_at_once() -> None:
    remarks = Console(file=StringIO(), width=200)
    narrator = Narrator(remarks=remarks)
    narrator.status({"task": "t1", "state": "waiting", "position": 2, "reason": "busy: all are"}, {})
    narrator.status({"task": "t1", "state": "waiting", "position": 1, "reason": "busy: all are"}, {})
    assert isinstance(remarks.file, StringIO) and remarks.file.getvalue().splitlines() == [
        "task t1",
        "waiting, place 2: busy: all are",
        "waiting, place 1: busy: all are",
    ]


def test_an_empty_answer_is_a_failure_unless_it_is_allowed() -> None:
    with pytest.raises(CommandFailed, match="the answer was empty, which counts as no success"):
        check_end(ended("empty"))
    check_end(ended("empty"), allow_empty=True)
