"""How a machine is woken, and what is said where that does not work."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from schemas.errors import SettingsError
from services.router import waking
from services.router.waking import PACKETS, Waker, magic_packet, send_magic
from services.runtime.settings import Wake, load


def logged(capture: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    return [json.loads(line) for line in capture.readouterr().err.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("mac", ["0a:1b:2c:3d:4e:5f", "0A-1B-2C-3D-4E-5F", "0a1b2c3d4e5f"])
def test_a_magic_packet_is_six_ones_and_sixteen_addresses(mac: str) -> None:
    packet = magic_packet(mac)
    assert (len(packet), packet[:6], packet[-6:]) == (102, b"\xff" * 6, bytes.fromhex("0a1b2c3d4e5f"))


def test_the_packet_is_sent_more_than_once_because_nobody_acknowledges_it() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as card:
        card.bind(("127.0.0.1", 0))
        card.settimeout(5)
        send_magic("0a1b2c3d4e5f", "127.0.0.1", card.getsockname()[1])
        assert [card.recv(200) for _ in range(PACKETS)] == [magic_packet("0a1b2c3d4e5f")] * PACKETS


async def test_a_command_runs_in_a_shell(tmp_path: Path) -> None:
    await Waker({"desk": Wake(command=f"printf a > {tmp_path}/one && printf b > {tmp_path}/two")}).wake("desk")
    assert [(tmp_path / name).read_text() for name in ("one", "two")] == ["a", "b"]


@pytest.mark.parametrize(
    ("command", "words"),
    [("echo no plug here; exit 3", "ended with 3: no plug here"), ("exit 1", "ended with 1: it said nothing")],
)
async def test_a_command_that_fails_is_a_warning_with_its_own_words(
    command: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await Waker({"desk": Wake(command=command)}).wake("desk")
    (line,) = [line for line in logged(capsys) if line["action"] == "wake_failed"]
    assert line["worker"] == "desk" and words in line["error"]


async def test_a_command_that_does_not_end_is_ended(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waking, "COMMAND_S", 0.1)
    await Waker({"desk": Wake(command="exec sleep 600")}).wake("desk")
    (line,) = [line for line in logged(capsys) if line["action"] == "wake_failed"]
    assert "was not done after" in line["error"]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("{}", "wake.desk: says neither a command nor a mac"),
        ('{ mac = "aa:bb" }', "wake.desk.mac"),
        ('{ comand = "x" }', "did you mean command?"),
        ('{ mac = "aa:bb:cc:dd:ee:ff", port = 0 }', "wake.desk.port"),
    ],
)
def test_a_wake_that_cannot_be_is_refused_by_its_key(tmp_path: Path, table: str, words: str) -> None:
    file = tmp_path / "headrace.toml"
    file.write_text(f"[wake]\ndesk = {table}\n", encoding="utf-8")
    with pytest.raises(SettingsError) as refused:
        load(file, {})
    assert words in str(refused.value)
