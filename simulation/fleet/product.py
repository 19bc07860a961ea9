"""Our own policy in virtual time: the product's desk, fed with the facts, credits and heartbeats that it gets in the field.

Answers "what would the product have done?". There is no planning here: every release is ``services.router.desk.Desk``'s, every
statistic the product's, every pull's priority the worker's. What is modelled is what lies between: a log that stores each
message id once, groups and lanes that give an item to the standing pull of the best priority, and a millisecond for each way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import msgspec

from schemas.events import (
    AnyEvent,
    Credit,
    DispatcherElected,
    Domain,
    ModelInfo,
    Options,
    PayloadRef,
    Sizes,
    TaskSubmitted,
    Urgency,
    Wants,
    WorkerLoad,
)
from schemas.statistics import CellKey, Sample, fold, key_of, sample_of
from schemas.subjects import ANY_LANE, group_durable, lane_durable, submit_id
from schemas.work import WorkItem
from services.router.desk import Desk
from services.router.dispatch.actions import Action, DeleteItem, DropConsumer, EnsureConsumer, Publish, PutItem, Tell
from services.router.dispatch.heard import PULSE_S
from services.router.dispatch.permits import UNLIMITED, Limits
from services.worker.priority import Holder
from simulation.fleet.arrivals import Arrivals
from simulation.fleet.early import model_on_arrival
from simulation.fleet.history import judged, measured
from simulation.fleet.outcome import Done, Outcome
from simulation.fleet.physics import MODELS, Instance, Job
from simulation.fleet.station import CHARS_PER_TOKEN, Station
from simulation.kernel import Kernel

WAY_S = (0.0005, 0.0015)
"""A message's way to the server or back: PROTOCOL.md measured 3 to 6 ms from a submission to its start."""
CELLS_S = 0.25
"""From a fact to the statistics that it changes: the projector's rhythm."""
CELL_SAMPLES = 48
"""Samples kept for each cell: with a half-life of 20 the rest would weigh less than a fifth."""
HORIZON_S = 4e6
IDLE_PULSE_S = 5.0
"""While nothing waits, time is of interest with each fact only, and every fact brings it."""
INTRODUCED_S = 1.0
"""The fleet has a second to report, before the first task comes; no policy is measured by that."""
ROUTER = "router"
HEARTBEAT_S = 5.0


class Product:
    """``on_arrival`` fixes an open task's model when it comes, by the product's own decision then: what late choice is
    compared with. ``pulse_s`` is how often heard time moves."""

    heartbeat_s = HEARTBEAT_S

    def __init__(
        self,
        instance: Instance,
        *,
        limits: Limits = UNLIMITED,
        slider: float = 1.0,
        on_arrival: bool = False,
        pulse_s: float = PULSE_S,
    ) -> None:
        self.instance, self.on_arrival, self.pulse_s, self.slider = instance, on_arrival, pulse_s, slider
        self.kernel = Kernel(instance.seed)
        self.ids = self.past = 0
        self.desk = Desk(ROUTER, slider=slider, limits=limits, new_id=self.new_id)
        self.desk.clock.interval_s = HORIZON_S  # what we hear is exact; the protocol's simulator has the other kind
        self.beaten = 0.0
        self.log: list[tuple[AnyEvent, int]] = []
        self.stored: dict[str, int] = {}
        self.items: dict[int, tuple[str, WorkItem]] = {}
        self.samples: dict[CellKey, list[Sample]] = {}
        self.jobs = {job.id: job for job in instance.jobs}
        self.running: dict[str, float] = {}
        self.done: list[Done] = []
        self.evicted: list[tuple[str, str]] = []  # (by whose load, which model)
        self.stations = {m.name: Station(self, m) for m in instance.machines}
        self._arrivals = Arrivals(instance)
        self._following = False

    def run(self) -> Outcome:
        self._begin()
        self.kernel.run(HORIZON_S, lambda: len(self.done) >= len(self.instance.jobs))
        self._settle()
        events = tuple(event for event, _ in self.log)
        return Outcome("ours", self.instance, tuple(self.done), events)

    def _begin(self) -> None:
        self.desk.elected(1)
        self.desk.beat(0.0, 0.0)
        self.publish(DispatcherElected(**self.envelope(ROUTER), epoch=1, router=ROUTER), "elected.1")
        self._remember()
        for station in self.stations.values():
            station.boot()
            away = [(*self.instance.away[station.name], station.boot)] if station.name in self.instance.away else []
            for gone, back, rise in [
                *away,
                *((*nap, station.wake) for nap in self.instance.naps.get(station.name, ())),
            ]:
                self.kernel.after(INTRODUCED_S + gone, None, station.vanish)
                self.kernel.after(INTRODUCED_S + back, None, rise)
        self._pulse()
        for job in self._arrivals.first():
            self.kernel.after(INTRODUCED_S + job.at, None, self._submit, job)

    def _remember(self) -> None:
        """What was measured and judged before the log begins."""
        past = [*measured(self.instance), *judged(self.instance)]
        self.past = len(past)  # a fold begins at sequence 1, so the log's samples come after these
        for seq, sample in enumerate(past, 1):
            self.samples.setdefault(key_of(sample), []).append(msgspec.structs.replace(sample, seq=seq))
        for samples in self.samples.values():
            self.desk.put_cell(fold(samples))

    # what stations and clients use

    def new_id(self) -> str:
        self.ids += 1
        return f"e{self.ids}"

    @property
    def now_us(self) -> int:
        return int(self.kernel.now * 1e6)

    def envelope(self, by: str) -> dict[str, Any]:
        return {"id": self.new_id(), "at": self.kernel.now, "by": by}

    def later(self, call: Callable[..., None], *args: Any) -> None:
        """One way over the network."""
        self.kernel.after(self.kernel.random.uniform(*WAY_S), None, call, *args)

    def publish(self, event: AnyEvent, msg_id: str, then: Callable[[bool], None] | None = None) -> None:
        """Store it, unless its id is taken; ``then`` learns whether it is ours that is stored."""
        self.later(self._store, event, msg_id, then)

    def tell_credit(self, credit: Credit) -> None:
        self.later(self._hear, credit)

    def tell_load(self, load: WorkerLoad) -> None:
        self.later(self._hear, load)

    def holders(self, model: str) -> list[Holder]:
        return [s.holder(model) for s in self.stations.values() if model in s.models and not s.asleep]

    @staticmethod
    @lru_cache(maxsize=64)
    def info(model: str, resident: bool | None) -> ModelInfo:
        size = int(MODELS[model] * 1e9)
        return ModelInfo(
            name=model, backend_name=model, digest=model, bytes=size, capability="gpu_inference", resident=resident
        )

    def finished(self, done: Done) -> None:
        self.done.append(done)
        for job in self._arrivals.ended(self.kernel.now):
            self._submit(job)

    def match(self) -> None:
        """Give waiting items to the standing pulls: the best priority first, of equals whoever comes first by name."""
        for seq, (durable, item) in list(self.items.items()):
            standing = [(p, s.name) for s in self.stations.values() if (p := s.pull_priority(durable)) is not None]
            if standing:
                del self.items[seq]
                self.stations[min(standing)[1]].take(item)

    # the clients

    def _submit(self, job: Job) -> None:
        at = self.kernel.now
        self.jobs[job.id] = replace(job, at=at)
        urgency: Urgency = job.urgency  # type: ignore[assignment]
        event = TaskSubmitted(
            **self.envelope(ROUTER), task=job.id, client=job.client, session=job.session, urgency=urgency,
            domain=Domain(label=job.domain, method="simulated"), wants=Wants(model=job.model),
            sizes=Sizes(messages=1, chars=CHARS_PER_TOKEN * job.prompt, prompt_tokens=job.prompt, body_bytes=1),
            options=Options(slider=self.slider if job.model is None else None),
            payload=PayloadRef(subject=f"task.in.{job.client}.{job.id}", bytes=1),
        )  # fmt: skip
        if job.model is None and self.on_arrival:
            model = model_on_arrival(self.desk, event, at)
            event = msgspec.structs.replace(event, wants=Wants(model=model))
        self.publish(event, submit_id(job.id))

    # the server and the way to the desk

    def _store(self, event: AnyEvent, msg_id: str, then: Callable[[bool], None] | None) -> None:
        seq = self.stored.get(msg_id)
        if seq is None:
            self.log.append((event, self.now_us))
            seq = self.stored[msg_id] = len(self.log)
            self._count(event, seq)
            if not self._following:
                self._following = True
                self.later(self._feed)
        own = self.log[seq - 1][0].id == event.id
        if then is not None:
            self.later(then, own)
        if event.by == ROUTER:
            self.later(self._published, msg_id, seq)

    def _published(self, msg_id: str, seq: int) -> None:
        self.desk.live.stored(msg_id, seq)
        self.desk.live.folded(self.desk.state.position)

    def _feed(self) -> None:
        self._following = False
        first = self.desk.state.position
        self.desk.fold([(event, first + n, at) for n, (event, at) in enumerate(self.log[first:], 1)])
        self.desk.passed(len(self.log))
        self._step()

    def _hear(self, word: Credit | WorkerLoad) -> None:
        if isinstance(word, Credit):
            self.desk.live.hear_credit(word, self._beat())
        else:
            self.desk.live.hear_load(word, self._beat())
        self.desk.refresh()
        self._step()

    def _count(self, event: AnyEvent, seq: int) -> None:
        seq += self.past
        sample = sample_of(event, seq, self.now_us)
        if sample is not None:
            cell = self.samples.setdefault(key_of(sample), [])
            cell.append(sample)
            del cell[:-CELL_SAMPLES]
            self.kernel.after(CELLS_S, None, self._refold, key_of(sample), seq)

    def _refold(self, key: CellKey, seq: int) -> None:
        if self.samples[key][-1].seq == seq:  # else a younger sample's turn comes
            self.desk.put_cell(fold(self.samples[key]))

    # the router's shell

    def _beat(self) -> float:
        if self.kernel.now - self.beaten >= self.pulse_s:
            self.beaten = self.kernel.now
            self.desk.beat(self.kernel.now, self.kernel.now)
        return self.desk.now

    def _pulse(self) -> None:
        self._beat()
        self._step()
        waits = any(task.live is None for task in self.desk.state.tasks.values())
        self.kernel.after(self.pulse_s if waits else IDLE_PULSE_S, None, self._pulse)

    def _step(self) -> None:
        self._beat()
        for action in self.desk.decide(self.kernel.now):
            self._do(action)

    def _do(self, action: Action) -> None:
        live = self.desk.live
        match action:
            case Publish(event, msg_id):
                self.publish(event, msg_id)
            case PutItem():
                self.later(self._put, action)
            case DeleteItem(key, seq):
                self.items.pop(seq, None)
                live.not_stored(action.key)
                live.items.pop(key, None)
            case Tell(worker, control):
                self.later(self.stations[worker].control, control)
            case EnsureConsumer(durable, slots):
                live.not_stored(action.key)
                live.confirmed[durable] = slots
                self.later(self._step)
            case DropConsumer(durable):
                live.not_stored(action.key)
                live.confirmed.pop(durable, None)
                live.unheld.pop(durable, None)

    def _put(self, action: PutItem) -> None:
        item = action.item
        durable = group_durable(item.capability, item.model) if item.lane == ANY_LANE else lane_durable(item.lane)
        self.ids += 1
        self.items[self.ids] = (durable, item)
        self.desk.live.not_stored(action.key)
        self.desk.live.items[action.attempt] = (self.ids, self.desk.now)
        self.match()

    def _settle(self) -> None:
        """Let the last facts reach the log."""
        end = self.kernel.now + 1.0
        self.kernel.run(end, lambda: False)
