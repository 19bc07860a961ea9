"""A Docker daemon, docker compose and a Python base image, from package registries alone: what can be had on this machine?

Each part is taken as it is where it already works, else built once into ``.parts/`` (git-ignored). What cannot be had
raises ``Unavailable`` with the reason and the way to get it, and the test skips with that. A daemon that already answers is
used and left alone; one that was started here keeps everything under ``.parts/docker`` and is stopped.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.eventually import eventually_now
from support.source import ROOT

PARTS = (ROOT / ".parts").resolve()  # runc refuses a path with a link in it
COMPOSE_VERSION = "v2.40.3"
COMPOSE_MODULE = "github.com/docker/compose/v2"
BASE_IMAGE = "headrace-test/python:bookworm"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


class Unavailable(Exception):
    """A part that cannot be had here; the message is the reason and the way out."""


def run(*command: str, env: dict[str, str] | None = None, cwd: Path = ROOT, within_s: float = 600) -> str:
    """The command's output; an AssertionError with its last lines where it fails."""
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=within_s, check=False)
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
        raise AssertionError(f"{' '.join(command)} ended with {done.returncode}:\n{tail}")
    return done.stdout


def compose_command() -> tuple[str, ...]:
    """``docker compose`` or ``docker-compose``, built through Go where neither is installed."""
    built = PARTS / "bin" / "docker-compose"
    for command in (("docker", "compose"), ("docker-compose",), (str(built),)):
        if shutil.which(command[0]) and _works(*command, "version"):
            return command
    if shutil.which("go") is None:
        raise Unavailable("no docker compose, and no Go to build it: install docker-compose-plugin, or Go >= 1.25")
    # `go install` refuses its go.mod; a module of one's own that asks for it does not.
    folder = PARTS / "compose"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "go.mod").write_text("module parts\n\ngo 1.25\n")
    packages = [f"{name}@{COMPOSE_VERSION}" for name in (COMPOSE_MODULE, f"{COMPOSE_MODULE}/cmd")]
    run("go", "get", *packages, cwd=folder)
    run("go", "build", "-o", str(built), f"{COMPOSE_MODULE}/cmd", cwd=folder)
    return (str(built),)


@contextmanager
def daemon() -> Iterator[dict[str, str]]:
    """The environment in which ``docker`` reaches a daemon: the machine's own, or one that lives as long as the block."""
    if shutil.which("docker") and _works("docker", "info"):
        yield dict(os.environ)
        return
    _need("dockerd", package="docker.io")
    PARTS.mkdir(exist_ok=True)
    with (PARTS / "docker.lock").open("w") as lock:
        fcntl.flock(
            lock, fcntl.LOCK_EX
        )  # two daemons on one data root destroy each other's layers, and neither says so
        with _own_daemon() as env:
            yield env


@contextmanager
def _own_daemon() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory(prefix="headrace-docker-") as folder:  # a socket's path may have 107 bytes at most
        socket, log = f"unix://{folder}/sock", Path(folder, "log")
        places = ["--data-root", str(PARTS / "docker"), "--exec-root", f"{folder}/run", "--pidfile", f"{folder}/pid"]
        with log.open("wb") as output:
            process = subprocess.Popen(["dockerd", *places, "-H", socket], stdout=output, stderr=output)
        env = {**os.environ, "DOCKER_HOST": socket}
        try:
            if not eventually_now(lambda: _works("docker", "info", env=env) or process.poll() is not None, within_s=60):
                raise Unavailable("dockerd did not answer within 60 s")
            if process.poll() is not None:
                raise Unavailable(f"dockerd does not start here: {log.read_text().splitlines()[-1:]}")
            yield env
        finally:
            process.terminate()
            process.wait(timeout=60)
            _unmount_below(folder)
            _unmount_below(str(PARTS / "docker"))


def python_base(env: dict[str, str]) -> str:
    """An image with Python >= 3.11 and venv: named by HEADRACE_TEST_BASE, or made by debootstrap, no image registry needed."""
    if named := os.environ.get("HEADRACE_TEST_BASE"):
        return named
    if _works("docker", "image", "inspect", BASE_IMAGE, env=env):
        return BASE_IMAGE
    _need("debootstrap", package="debootstrap")
    PARTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rootfs-", dir=PARTS) as folder:
        rootfs, packages = Path(folder, "root"), "python3,python3-venv,ca-certificates"
        run("debootstrap", "--variant=minbase", f"--include={packages}", "bookworm", str(rootfs))
        if (
            CERTIFICATES.exists()
        ):  # the machine may trust an authority of its own, and pip inside has to trust it as well
            shutil.copy(CERTIFICATES, rootfs / CERTIFICATES.relative_to("/"))
        archive = Path(folder, "rootfs.tar")
        run("tar", "-C", str(rootfs), "-cf", str(archive), ".")
        run("docker", "import", "--change", f"ENV PIP_CERT={CERTIFICATES}", str(archive), BASE_IMAGE, env=env)
    return BASE_IMAGE


def _unmount_below(folder: str) -> None:
    """dockerd leaves its network namespace mounted, and its data root on itself; the folders could not be removed."""
    mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for place in sorted((place for place in mounted if place.startswith(folder)), reverse=True):
        run("umount", place)


def _need(program: str, *, package: str) -> None:
    """Install a Debian package where this is Debian and we may; it is what the recipe needs and nothing else."""
    if shutil.which(program):
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Unavailable(
            f"no {program} here; install it (Debian and Ubuntu: apt install {package}), or run this as root"
        )
    install = ("apt-get", "install", "-y", "-qq", package)
    if not _works(*install) and not (_works("apt-get", "update", "-qq") and _works(*install)):
        raise Unavailable(f"apt-get cannot install {package}; install it by hand and run this again")


def _works(*command: str, env: dict[str, str] | None = None) -> bool:
    return (
        subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode
        == 0
    )
