"""A worker in virtual time: standing pulls with the product's priorities, one run at a time for each slot, credits, heartbeats.

Answers "what does a machine say and do, and when?". How long anything takes is the physics'; which priority a pull has is
``services.worker.priority``'s. The order at the end of a run is the protocol's: pull armed, fact stored, item acked, credit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from schemas.events import (
    Credit,
    Gpu,
    ModelInfo,
    RunningAttempt,
    TaskCompleted,
    TaskStarted,
    Times,
    Tokens,
    WorkerLoad,
    WorkerReported,
)
from schemas.subjects import end_id, start_id
from schemas.work import Control, WorkItem
from services.worker.priority import Holder, priorities
from simulation.fleet.outcome import Done
from simulation.fleet.physics import MODELS, Machine, Memory

if TYPE_CHECKING:
    from simulation.fleet.product import Product

SILENT = "this machine cannot tell"
CHARS_PER_TOKEN = 4
SUPPORTS = ("gpu_inference",)


class Station:
    """``free`` counts pulls that stand; ``armed`` are their priorities as of the last look."""

    def __init__(self, product: Product, machine: Machine) -> None:
        self.product, self.kernel, self.machine, self.name = product, product.kernel, machine, machine.name
        self.models = product.instance.models_of(machine)
        self.infos = tuple(
            ModelInfo(name=m, backend_name=m, digest=m, bytes=int(MODELS[m] * 1e9), capability="gpu_inference")
            for m in self.models
        )
        self.memory = Memory(machine.vram)
        self.asleep = False
        self.boots = self.credits = self.beats = 0
        self.armable: tuple[str, ...] = ()
        self._seen: object = None

    def boot(self) -> None:
        self.boots += 1
        self.boot_id = f"{self.name}.b{self.boots}"
        self.memory = Memory(self.machine.vram, list(self.models) if self.product.instance.warm else [])
        self.asleep, self.free, self.armed, self._seen = False, 1, dict[str, int](), None
        self.hands: dict[tuple[str, int], float] = {}
        self.product.publish(
            WorkerReported(
                **self.product.envelope(self.name), worker=self.name, boot=self.boot_id, name=self.name,
                supports=SUPPORTS, backend="simulated", backend_id=self.name, slots=1, models=self.infos,
            ),
            f"report.{self.boot_id}",
        )  # fmt: skip
        self._beat(self.boot_id)

    def vanish(self) -> None:
        """Abruptly: what runs is lost, what is sent there too."""
        self.asleep = True

    def wake(self) -> None:
        """As it fell asleep, with its models in memory; what ran then is lost."""
        self.asleep, self.free, self._seen = False, 1, None
        for task, _ in self.hands:
            self.product.running.pop(task, None)
        self.hands.clear()
        self._beat(self.boot_id)
        self.product.later(self.product.match)

    @property
    def resident(self) -> tuple[str, ...] | None:
        return tuple(self.memory.resident) if self.machine.reports else None

    @property
    def others_use(self) -> float | None:
        return self.product.instance.others_use(self.name, self.kernel.now) if self.machine.reports else None

    @property
    def on_battery(self) -> bool | None:
        return self.product.instance.on_battery(self.name, self.kernel.now) if self.machine.reports else None

    def control(self, control: Control) -> None:
        if self.asleep:
            return
        if control.command == "hello" and set(control.armable) != set(self.armed):
            self.armable = control.armable
            self._credit()
        elif control.command == "cancel" and control.task is not None and control.attempt is not None:
            self._give_up((control.task, control.attempt))

    def _give_up(self, attempt: tuple[str, int]) -> None:
        """What still runs; where the end is on its way already, the word comes too late."""
        if attempt in self.hands and self.product.running.pop(attempt[0], None) is not None:
            del self.hands[attempt]
            self._arm()
            self._credit()

    def pull_priority(self, durable: str) -> int | None:
        """As it stands at the server; None where no pull of this machine stands for it."""
        return None if self.asleep or self.free < 1 else self.armed.get(durable)

    def take(self, item: WorkItem) -> None:
        """The pull was answered with ``item``."""
        self.free -= 1
        self.product.later(self._claim, item, self.boot_id)

    def _claim(self, item: WorkItem, boot: str) -> None:
        if self.asleep or boot != self.boot_id:
            return
        self.hands[item.task, item.attempt] = self.kernel.now
        started = TaskStarted(
            **self.product.envelope(self.name), task=item.task, attempt=item.attempt, worker=self.name,
            boot=self.boot_id, model=item.model, digest=item.model,
        )  # fmt: skip
        self.product.publish(started, start_id(item.task, item.attempt), lambda own: self._run(item, boot, own))

    def _run(self, item: WorkItem, boot: str, own: bool) -> None:
        if self.asleep or boot != self.boot_id or (item.task, item.attempt) not in self.hands:
            return
        if not own:
            self._end(item, boot)
            return
        instance, job = self.product.instance, self.product.jobs[item.task]
        before = list(self.memory.resident)
        was_resident = self.memory.touch(item.model)
        self.product.evicted += [(item.task, model) for model in before if model not in self.memory.resident]
        load_s = 0.0 if was_resident else instance.load_s(item.model, self.machine)
        prefill_s, decode_s = instance.run_s(job, item.model, self.machine, self.kernel.now + load_s)
        self.product.running[item.task] = self.kernel.now
        end = TaskCompleted(
            **self.product.envelope(self.name), task=item.task, attempt=item.attempt, worker=self.name, boot=boot,
            model=item.model, backend_model=item.model, digest=item.model, model_bytes=int(MODELS[item.model] * 1e9),
            backend="simulated", domain=item.domain, kind=item.kind, urgency=item.urgency, capability=item.capability,
            lane=item.lane, client=item.client, session=item.session, resident=was_resident,
            tokens=Tokens(prompt=job.prompt, cached=0, output=job.output), prompt_chars=CHARS_PER_TOKEN * job.prompt,
            times=Times(load_s=load_s, prefill_s=prefill_s or None, decode_s=decode_s,
                        total_s=load_s + prefill_s + decode_s, source="backend"),
            others_use=self.others_use,
        )  # fmt: skip
        self._credit()
        self.kernel.after(load_s + prefill_s + decode_s, None, self._finish, item, boot, end)

    def _finish(self, item: WorkItem, boot: str, end: TaskCompleted) -> None:
        if self.asleep or boot != self.boot_id or (item.task, item.attempt) not in self.hands:
            return
        job = self.product.jobs[item.task]
        begun = self.product.running.pop(item.task)
        self._arm()
        done = Done(item.task, job.at, begun, self.kernel.now, self.name, item.model, item.domain)
        self.product.finished(done)
        self.product.publish(end, end_id(item.task), lambda own: self._end(item, boot, armed=True))

    def _end(self, item: WorkItem, boot: str, *, armed: bool = False) -> None:
        """The fact is stored: the item is acked, and the next credit says so."""
        if self.asleep or boot != self.boot_id:
            return
        del self.hands[item.task, item.attempt]
        if not armed:
            self._arm()
        self._credit()

    def _arm(self) -> None:
        self.free += 1
        self._look()
        self.product.later(self.product.match)

    def _look(self) -> None:
        """Price the pulls again where residency or a measured speed has changed."""
        holders = {model: self.product.holders(model) for model in self.models}
        seen = (self.product.desk.stats.version, self.armable, self.resident, holders)
        if seen == self._seen:
            return
        self._seen, infos = seen, [self.info(model) for model in self.models]
        statistics, now_us = self.product.desk.stats, self.product.now_us
        told = priorities(self.name, infos, SUPPORTS, self.armable, holders, statistics, now_us=now_us)
        self.armed = dict(told)

    def info(self, model: str) -> ModelInfo:
        return self.product.info(model, None if self.resident is None else model in self.memory.resident)

    def holder(self, model: str) -> Holder:
        resident = None if self.resident is None else model in self.memory.resident
        return Holder(worker=self.name, model_bytes=int(MODELS[model] * 1e9), resident=resident)

    def _credit(self) -> None:
        self._look()
        self.product.tell_credit(self.credit())

    def credit(self) -> Credit:
        self.credits += 1
        now = self.kernel.now
        running = tuple(
            RunningAttempt(task=task, attempt=n, phase="decode", elapsed_s=now - at)
            for (task, n), at in self.hands.items()
        )
        return Credit(
            worker=self.name, boot=self.boot_id, seq=self.credits, slots=1, free=max(0, 1 - len(running)),
            running=running, armed=dict(self.armed),
        )  # fmt: skip

    def _gpus(self) -> tuple[Gpu, ...] | None:
        if not self.machine.reports:
            return None
        used = sum(MODELS[model] for model in self.memory.resident)
        return (Gpu(vram_total_bytes=int(self.machine.vram * 1e9), vram_used_bytes=int(used * 1e9)),)

    def _beat(self, boot: str) -> None:
        if self.asleep or boot != self.boot_id:
            return
        self.beats += 1
        silent = {} if self.machine.reports else {"others_use": SILENT, "resident": SILENT}
        self.product.tell_load(
            WorkerLoad(
                **self.product.envelope(self.name), worker=self.name, boot=boot, seq=self.beats,
                uptime_s=self.kernel.now, interval_s=self.product.heartbeat_s, backend_up=True, resident=self.resident,
                others_use=self.others_use, on_battery=self.on_battery, gpus=self._gpus(), credit=self.credit(),
                unreadable=silent,
            )
        )  # fmt: skip
        self.kernel.after(self.product.heartbeat_s, None, self._beat, boot)
