"""Structured logs: one line per happening, each with a machine-readable ``action``.

Answers "what is it doing?". Text for people on a terminal, JSON lines otherwise or with ``HEADRACE_LOG=json``. Goes to
stderr; level from ``HEADRACE_LOG_LEVEL`` (default info). Never log a prompt, an answer or a credential.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import structlog

LEVELS = ("debug", "info", "warning", "error", "critical")


def logger(name: str) -> Any:
    """``logger("bus").info("task completed", action="task_completed", task=…)``"""
    if not structlog.is_configured():
        configure()
    return structlog.get_logger(part=name)


def configure(environ: Mapping[str, str] | None = None) -> None:
    """Once per process, before the first line; a test may call it again."""
    env = os.environ if environ is None else environ
    level_name = env.get("HEADRACE_LOG_LEVEL", "info").lower()
    level = getattr(logging, level_name.upper()) if level_name in LEVELS else logging.INFO
    as_json = env.get("HEADRACE_LOG") == "json" or not sys.stderr.isatty()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.StackInfoRenderer(),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(_as_json) if as_json else structlog.dev.ConsoleRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=_Stderr,
        cache_logger_on_first_use=True,
    )


class _Stderr:
    """Looked up for each line: tests replace it, and a logger lives as long as its module."""

    def __init__(self, *_: object) -> None:
        pass

    def msg(self, line: str) -> None:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()

    debug = info = warning = error = critical = msg


def _as_json(line: Mapping[str, Any], default: Callable[[Any], Any]) -> str:
    """A busy worker writes a line for each task: the standard library takes a third of that line's time."""
    return msgspec.json.encode(line, enc_hook=default).decode()
