"""The files of openwebui/ as Open WebUI loads them: text, its import rewriting, ``exec`` in a module that is soon forgotten.

Answers "would Open WebUI take it, and what would it find in it?". Measured with 0.12.4 (its utils/plugin.py).
"""

from __future__ import annotations

import sys
import types
from typing import Any

from services.cli.pipe import BRIDGE, FOLDER, PIPE, SOURCES

REWRITTEN = ("utils", "apps", "main", "config")
"""After "from" these words become modules of Open WebUI's, in comments and texts too."""


def text_of(name: str) -> str:
    return (FOLDER / SOURCES[name]).read_text(encoding="utf-8")


def load(name: str) -> types.ModuleType:
    text = text_of(name)
    for word in REWRITTEN:
        text = text.replace(f"from {word}", f"from open_webui.{word}")
    module = types.ModuleType(f"function_{name}")
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, SOURCES[name], "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    return module


pipe_module: Any = load(PIPE)
bridge_module: Any = load(BRIDGE)
