"""services.runtime.logs: each line has an action that a machine can read."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import structlog

from services.runtime.logs import configure, logger


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def test_a_line_is_json_with_its_action_when_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    configure({})
    logger("router").info("task completed", action="task_completed", task="t1")
    out, err = capsys.readouterr()
    line = json.loads(err)
    assert out == ""
    assert (line["event"], line["action"], line["task"], line["part"]) == (
        "task completed",
        "task_completed",
        "t1",
        "router",
    )


def test_the_level_can_be_set_and_a_wrong_one_is_info(capsys: pytest.CaptureFixture[str]) -> None:
    for name, expected in (("error", 0), ("debug", 2), ("nonsense", 1)):
        configure({"HEADRACE_LOG_LEVEL": name})
        log = logger("x")
        log.debug("one", action="a")
        log.info("two", action="a")
        assert len(capsys.readouterr().err.splitlines()) == expected


def test_an_error_is_logged_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    configure({})
    try:
        raise RuntimeError("broken")
    except RuntimeError:
        logger("x").exception("failed", action="failed")
    assert "RuntimeError: broken" in json.loads(capsys.readouterr().err)["exception"]
