"""``headrace key add``: the key on stdout and nowhere else, the file with one line more or as it was."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from services.cli.__main__ import run
from services.cli.exits import Exit
from services.cli.key import PREFIX, with_line
from services.runtime.settings import Key, load

EXAMPLE = Path(__file__).parents[3] / "headrace.toml.example"
LINE = 'new = { sha256 = "x" }'


def made(config: Path, capture: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(["key", "add", *words, "--config", str(config)]) == Exit.OK
    return capture.readouterr().out.strip()


def test_the_key_is_shown_and_the_file_has_its_hash_and_rights(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "headrace.toml"
    config.write_bytes(EXAMPLE.read_bytes())
    config.chmod(0o640)
    shown = {
        "me": made(config, capsys, "me", "--admin"),
        "open webui": made(config, capsys, "open webui", "--may-speak-for-users"),
        "guest": made(config, capsys, "guest"),
    }
    hashes = {name: hashlib.sha256(key.encode()).hexdigest() for name, key in shown.items()}
    assert load(config, {}).keys == {
        "me": Key(sha256=hashes["me"], admin=True),
        "open webui": Key(sha256=hashes["open webui"], may_speak_for_users=True),
        "guest": Key(sha256=hashes["guest"]),
    }
    assert all(key.startswith(PREFIX) and len(key) > 50 for key in shown.values())
    text = config.read_text(encoding="utf-8")
    assert not any(key in text for key in shown.values())
    left = [line for line in text.splitlines() if not any(digest in line for digest in hashes.values())]
    assert left == EXAMPLE.read_text(encoding="utf-8").splitlines(), "nothing else changed, comments included"
    assert config.stat().st_mode & 0o777 == 0o640 and [each.name for each in tmp_path.iterdir()] == [config.name]


def test_a_file_that_is_not_there_is_made_and_a_link_stays_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = tmp_path / "headrace.toml"
    link.symlink_to(tmp_path / "real.toml")
    made(link, capsys, "me")
    assert link.is_symlink() and list(load(tmp_path / "real.toml", {}).keys) == ["me"]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("", f"[keys]\n{LINE}\n"),
        ("[router]\nport = 1", f"[router]\nport = 1\n\n[keys]\n{LINE}\n"),
        ("[ keys ] # who\r\n\r\n[nats]\r\n", f"[ keys ] # who\r\n{LINE}\r\n\r\n[nats]\r\n"),
        (
            "[keys]\n# mine\na = {}\n# theirs\n\n# of the next\n[http]\n",
            f"[keys]\n# mine\na = {{}}\n{LINE}\n# theirs\n\n# of the next\n[http]\n",
        ),
        ("[keys.a]\nsha256 = 'y'\n", f"[keys.a]\nsha256 = 'y'\n\n[keys]\n{LINE}\n"),
    ],
)
def test_the_line_goes_to_the_end_of_keys(text: str, result: str) -> None:
    assert with_line(text, LINE) == result


@pytest.mark.parametrize(
    "text",
    [
        "keys = {}\n",
        "keys.a.sha256 = '" + "0" * 64 + "'\n",
        "[router]\nid = '''\n[keys]\n'''\n",
    ],
)
def test_a_file_of_another_form_is_left_alone_and_the_line_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    config = tmp_path / "headrace.toml"
    config.write_text(text)
    key = made(config, capsys, "me", "--json")
    told = json.loads(key)
    assert config.read_text() == text and told["written"] is None
    assert told["line"] == f'me = {{ sha256 = "{hashlib.sha256(told["key"].encode()).hexdigest()}" }}'
    assert run(["key", "add", "me", "--config", str(config)]) == Exit.OK
    assert "[keys]\nme = { sha256 = " in capsys.readouterr().err


def test_without_a_file_the_line_is_printed_beside_the_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["key", "add", "me"]) == Exit.OK
    told = capsys.readouterr()
    digest = hashlib.sha256(told.out.strip().encode()).hexdigest()
    assert f'[keys]\nme = {{ sha256 = "{digest}" }}' in told.err and "--config" in told.err


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("[keys]\nme = { sha256 = '" + "0" * 64 + "' }\n", "me", "has a key of me already"),
        ("[keys]\nme = \n", "you", "line 2"),
        ("[router]\nprot = 1\n", "you", "did you mean port"),
        ("", "", "cannot be a key's name"),
        ("", "花", "cannot be a key's name"),
        ("", "a\nb", "cannot be a key's name"),
    ],
)
def test_what_cannot_be_makes_no_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, name: str, words: str
) -> None:
    config = tmp_path / "headrace.toml"
    config.write_text(text)
    assert run(["key", "add", name, "--config", str(config)]) != Exit.OK
    told = capsys.readouterr()
    assert told.out == "" and words in told.err and config.read_text() == text
