"""Where a person's data lies unless told otherwise.

Answers "which directory?". Creates nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def default_data() -> Path:
    """``HEADRACE_DATA_DIR``, else the platform's place for a program's data (XDG on Linux)."""
    return Path(os.environ.get("HEADRACE_DATA_DIR") or platformdirs.user_data_dir("headrace"))
