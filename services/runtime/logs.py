"""Structured logs: one line per happening, each with a machine-readable ``action``.

Answers "what is it doing?". Text for people on a terminal, JSON lines otherwise or with ``HEADRACE_LOG=json``. Goes to
stderr; level from ``HEADRACE_LOG_LEVEL`` (default info). Never log a prompt, an answer or a credential.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

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
            structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: structlog.WriteLogger(sys.stderr),  # looked up for each line: tests replace it
        cache_logger_on_first_use=False,
    )
