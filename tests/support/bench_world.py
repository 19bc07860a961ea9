"""A fleet as the benchmarker folds it, in virtual time: machines join, tell their load, run tasks, fall asleep."""

from __future__ import annotations

from collections import Counter
from typing import Any

from schemas.cells import fold
from schemas.events import (
    AnyEvent,
    Bench,
    Candidate,
    Domain,
    Gpu,
    Kind,
    Measure,
    ModelInfo,
    Options,
    PayloadRef,
    Policy,
    Prediction,
    Sizes,
    TaskCancelled,
    TaskCompleted,
    TaskReleased,
    TaskRouted,
    TaskStarted,
    TaskSubmitted,
    Times,
    Tokens,
    Urgency,
    Wants,
    WorkerInput,
    WorkerLoad,
    WorkerReported,
)
from schemas.samples import Sample, sample_of
from schemas.statistics import Statistics
from services.benchmarker.debts import Debt, debts
from services.benchmarker.state import Fleet

US = 1_000_000
GB = 1_000_000_000
START_US = 1_767_225_600 * US
UNKNOWN = Measure(value=1.0, level="prior", n=0)


class World:
    """``at`` is the virtual time in seconds since the start; ``loads`` is what each machine tells with its next heartbeats."""

    def __init__(self) -> None:
        self.fleet, self.stats, self.seq, self.now_us = Fleet(), Statistics(), 0, START_US
        self.loads: dict[str, dict[str, Any]] = {}
        self.samples: dict[tuple[str, str, str | None], list[Sample]] = {}
        self.beats: Counter[tuple[str, str]] = Counter()
        self._tasks = 0

    def debts(self) -> tuple[Debt, ...]:
        return debts(self.fleet, self.stats, self.fleet.use, self.now_us)

    def owed(self, kind: str = "probe") -> list[tuple[str, str, str, str]]:
        return [(d.model, d.worker, d.domain, d.reason) for d in self.debts() if d.kind == kind]

    def join(self, worker: str, *models: str | ModelInfo, boot: str = "b1", **load: Any) -> None:
        """A machine of its own, all of whose models are in memory unless ``resident`` says which; it tells its load at once."""
        infos = tuple(info(m) if isinstance(m, str) else m for m in models)
        told = {k: load.pop(k) for k in ("host", "slots", "gpu", "supports") if k in load}
        report = WorkerReported(
            id=f"r{self.seq}", at=0.0, by=worker, worker=worker, boot=boot, name=worker, backend="ollama", models=infos,
            **{"host": worker, **told},
        )  # fmt: skip
        self.say(report)
        names = tuple(m.name for m in infos)
        self.loads[worker] = {
            "boot": boot, "others_use": 0.0, "resident": names, "backend_up": True, "ram_available_bytes": 0, **load,
        }  # fmt: skip
        self.beat(worker)

    def beat(self, worker: str) -> None:
        self.fleet.hear(self.load(worker), self.now_us)

    def load(self, worker: str) -> WorkerLoad:
        """Its next heartbeat, whoever hears it."""
        told = self.loads[worker]
        self.beats[worker, told["boot"]] += 1
        seq = self.beats[worker, told["boot"]]
        return WorkerLoad(id=f"h{self.now_us}", at=0.0, by=worker, worker=worker, seq=seq, uptime_s=0.0, **told)

    def passes(self, seconds: float, *, asleep: tuple[str, ...] = ()) -> None:
        """Time, with a heartbeat of everybody awake every five seconds."""
        left = seconds
        while left > 0:
            step = min(left, 5.0)
            left -= step
            self.now_us += round(step * US)
            for worker in self.loads:
                if worker not in asleep:
                    self.beat(worker)

    def say(self, event: AnyEvent) -> None:
        self.seq += 1
        self.fleet.apply(event, self.seq, self.now_us)
        sample = sample_of(event, self.seq, self.now_us)
        if sample is not None:
            self.learn(sample)

    def learn(self, sample: Sample) -> None:
        of_cell = self.samples.setdefault((sample.model, sample.domain, sample.worker), [])
        of_cell.append(sample)
        self.stats.put(fold(of_cell))

    def judged(self, model: str, domain: str, value: float = 0.5, times: int = 1) -> None:
        for _ in range(times):
            self.seq += 1
            self.learn(
                Sample(
                    seq=self.seq, at_us=self.now_us, kind="quality", model=model, domain=domain,
                    quality_u=round(value * US), quality_w_u=US,
                )
            )  # fmt: skip

    # -- tasks ---------------------------------------------------------------------------------------------------------

    def submit(
        self,
        model: str | None = "m",
        domain: str = "general",
        *,
        worker: str | None = None,
        bench: Bench | None = None,
        urgency: Urgency | None = None,
        kind: Kind | None = None,
    ) -> str:
        self._tasks += 1
        task = f"t{self._tasks}"
        self.say(
            TaskSubmitted(
                id=task, at=0.0, by="r", task=task, client="benchmarker" if bench else "me",
                kind=kind or ("bench" if bench else "chat"), urgency=urgency or ("background" if bench else "interactive"),
                domain=Domain(label=domain, method="rules"), bench=bench, options=Options(max_tokens=64),
                sizes=Sizes(messages=1, chars=400, prompt_tokens=100, body_bytes=400),
                wants=Wants(model=model, worker=worker), payload=PayloadRef(subject=f"task.in.me.{task}", bytes=1),
            )
        )  # fmt: skip
        return task

    def route(self, task: str, *pairs: tuple[str, str], decode: float = 50.0, silent: tuple[str, ...] = ()) -> None:
        """``silent`` were not heard then."""
        told = tuple(
            Candidate(
                model=m, worker=w, cost_s=1.0, predicted=Prediction(), prefill=UNKNOWN, load=UNKNOWN, quality=UNKNOWN,
                decode=Measure(value=decode, level="cell", n=3), others_use=0.0,
            )
            for m, w in pairs
        )  # fmt: skip
        self.say(
            TaskRouted(
                id=f"{task}.r", at=0.0, by="r", task=task, epoch=1, policy=Policy(name="p", weights={}), position=1,
                candidates=told, inputs=tuple(WorkerInput(worker=w, alive=False) for w in silent),
            )
        )  # fmt: skip

    def release(self, task: str, worker: str, model: str = "m") -> None:
        self.say(
            TaskReleased(
                id=f"{task}.1", at=0.0, by="r", task=task, attempt=1, epoch=1, model=model,
                capability="cpu_inference", lane=worker, expected_worker=worker,
            )
        )  # fmt: skip

    def start(self, task: str, worker: str, model: str = "m") -> None:
        self.release(task, worker, model)
        self.say(
            TaskStarted(id=f"{task}.s", at=0.0, by=worker, task=task, attempt=1, worker=worker, boot="b1", model=model)
        )

    def complete(self, task: str, worker: str, model: str = "m", *, decode: float | None = 50.0) -> None:
        submitted = self.fleet.tasks[task].submitted
        times = Times(prefill_s=0.5, decode_s=None if decode is None else 64 / decode, total_s=2.0)
        self.say(
            TaskCompleted(
                id=f"{task}.e", at=0.0, by=worker, task=task, attempt=1, worker=worker, boot="b1", model=model,
                domain=submitted.domain.label, kind=submitted.kind, client=submitted.client, resident=True,
                tokens=Tokens(prompt=300, output=64), times=times, others_use=0.0, model_bytes=GB,
            )
        )  # fmt: skip

    def cancel(self, task: str) -> None:
        self.say(TaskCancelled(id=f"{task}.c", at=0.0, by="r", task=task, epoch=1, reason="x"))

    def ran(
        self, worker: str, model: str = "m", domain: str = "general", *, decode: float | None = 50.0, times: int = 1
    ) -> None:
        """Real tasks of two seconds each."""
        for _ in range(times):
            self._run(self.submit(model, domain), worker, model, decode, 2.0)

    def probed(
        self, worker: str, model: str = "m", reason: str = "joined", *, decode: float | None = 50.0, took_s: float = 2.0
    ) -> None:
        task = self.submit(model, worker=worker, bench=Bench(purpose="probe", reason=reason))
        self._run(task, worker, model, decode, took_s)

    def _run(self, task: str, worker: str, model: str, decode: float | None, took_s: float) -> None:
        self.route(task, (model, worker))
        self.start(task, worker, model)
        self.passes(took_s)
        self.complete(task, worker, model, decode=decode)


def info(name: str, **fields: Any) -> ModelInfo:
    return ModelInfo(**{"name": name, "backend_name": name, "bytes": GB, "digest": "d1", **fields})


def gpu(*, total: int = 16 * GB, used: int = 0, use: float = 0.0) -> Gpu:
    return Gpu(name="G", use=use, vram_total_bytes=total, vram_used_bytes=used)
