"""A command line that cannot be: the value, the reason and the way out, in our form and as JSON where that was asked for."""

from __future__ import annotations

import json

import pytest

from services.cli.__main__ import run
from services.cli.exits import Exit


@pytest.mark.parametrize(
    ("line", "said", "hint"),
    [
        ("upp", "no such command 'upp'. Did you mean 'up'?", "headrace --help"),
        ("up --bogus", "no such option: --bogus", "headrace up --help"),
        ("ask --modle x hi", "no such option: --modle; did you mean --model?", "headrace ask --help"),
        ("up --port 99999", "--port '99999' should be less than or equal to 65535", "headrace up [OPTIONS]"),
        ("bench --limit many", "--limit 'many' should be a valid integer", "headrace bench --help"),
        ("stats --sort speed", "--sort 'speed' is not one of 'name', 'decode'", "headrace stats --help"),
        ("pull x", "missing option '--on'", "headrace pull [OPTIONS] {model}"),
    ],
)
def test_what_was_mistyped_is_named_with_its_value_and_the_way_out(
    line: str, said: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(line.split()) == Exit.USAGE
    shown = capsys.readouterr()
    assert shown.err.startswith(f"headrace: {said}")
    assert hint in shown.err and shown.out == ""


def test_with_json_it_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "--limit", "0", "--json"]) == Exit.USAGE
    assert "--limit '0' should be" in json.loads(capsys.readouterr().err)["error"]["message"]


def test_a_group_alone_shows_its_help_and_complains_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["key"]) == Exit.USAGE
    shown = capsys.readouterr()
    assert "add" in shown.out + shown.err and "headrace: " not in shown.err
