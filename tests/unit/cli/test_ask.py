from __future__ import annotations

import pytest

from services.cli.ask import REMARKS, check_end, summary
from services.cli.exits import CommandFailed


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


def test_an_empty_answer_is_a_failure_unless_it_is_allowed() -> None:
    with pytest.raises(CommandFailed, match="the answer was empty, which counts as no success"):
        check_end(ended("empty"))
    check_end(ended("empty"), allow_empty=True)
