"""One seeded history: a fleet, its clients and everything that goes wrong, and what must hold whatever went wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from schemas.events import (
    AnyEvent,
    AttemptFailed,
    Credit,
    Domain,
    PayloadRef,
    Sizes,
    TaskCompleted,
    TaskReleased,
    TaskSubmitted,
    Terminal,
    Urgency,
    Wants,
)
from schemas.subjects import ANY_LANE, group_durable, lane_durable, start_id, submit_id
from schemas.work import WorkItem
from services.router.dispatch.permits import Limit, Limits
from services.router.dispatch.state import RouterState
from simulation.check import check_log
from simulation.kernel import Kernel, Process
from simulation.router import Router
from simulation.server import Server
from simulation.worker import Worker

LIMITS = (
    Limits(model=Limit(3), client=Limit(3), backend=Limit(2)),
    Limits(model=Limit(3), client=Limit(3)),
)
"""By turns: with limits on backends everything goes by lanes, without them most of it to groups."""
QUIET_AFTER_S = 40.0
"""Faults end here; what is left must then come to its end by itself."""
HORIZON_S = 400.0


@dataclass
class Report:
    """What one seed did. ``violations`` is empty when every promise held; ``digest`` identifies the whole history."""

    seed: int
    tasks: int
    violations: list[str]
    digest: str
    ended_s: float
    events: int
    kills: int
    pauses: int
    router_crashes: int
    kinds: dict[str, int] = field(default_factory=dict)


class World:
    """The wiring. Everything random comes from the one seed."""

    def __init__(self, seed: int, *, tasks: int = 14) -> None:
        self.seed = seed
        self.kernel = Kernel(seed)
        self.server = Server(self.kernel)
        self.random = self.kernel.random
        self.ids = 0
        self.kills = self.pauses = self.router_crashes = 0
        self.runs: dict[tuple[str, int], int] = {}
        self.acked: set[str] = set()
        self.tasks = tasks
        self.clients = Process("clients")
        self.limits = LIMITS[seed % len(LIMITS)]
        self.routers = [Router(self, name, self.limits) for name in ("r1", "r2", "r3")]
        self.seen: list[str] = []
        self.workers = {
            "fast": Worker(self, "fast", ("m1", "m2"), 2, 1.0),
            "slow": Worker(self, "slow", ("m1", "m3"), 1, 4.0),
            "mid": Worker(self, "mid", ("m1", "m2", "m3"), 2, 2.0),
        }

    def new_id(self) -> str:
        self.ids += 1
        return f"e{self.ids}"

    def run(self) -> Report:
        self.server.followers = [router.notified for router in self.routers]
        self.server.watch = self._watch
        for n, router in enumerate(self.routers):
            self.kernel.after(0.2 * n, None, router.boot)
        for worker in self.workers.values():
            self.kernel.after(self.random.random(), None, worker.boot)
        for n in range(self.tasks):
            self.kernel.after(1.0 + self.random.random() * 20.0, self.clients, self._submit, f"t{n}")
        self._tick()
        self._plan_faults()
        self.kernel.run(HORIZON_S, self._done)
        return self._report()

    # wires

    def to_server(self, call: Callable[..., Any], *args: Any) -> None:
        """One way; lost while the server is dead, late while it is frozen."""
        self.kernel.after(self.kernel.delay(), self.server.process, lambda: call(*args) and None)

    def ask(
        self,
        process: Process,
        call: Callable[[], Any],
        then: Callable[[Any], None],
        *,
        once: bool = False,
        lost: float = 0.01,
    ) -> None:
        """Request and answer. Unless ``once``, repeated each second until an answer came: that is what the shells do."""
        done = [False]
        life = process.life

        def answer(result: Any) -> None:
            if not done[0] and process.life == life:
                done[0] = True
                then(result)

        def at_server() -> None:
            result = call()
            if not self.kernel.lost(lost):
                self.kernel.after(self.kernel.delay(), process, answer, result)

        def send() -> None:
            if not done[0]:
                self.kernel.after(self.kernel.delay(), self.server.process, at_server)
                if not once:
                    self.kernel.after(1.0, process, send)

        send()

    def broadcast_credit(self, credit: Credit) -> None:
        for router in self.routers:
            if router.process.alive and not self.kernel.lost():
                self.to_server(lambda r=router: self.kernel.after(self.kernel.delay(), r.process, r.hear, credit))

    @staticmethod
    def durable_of(item: WorkItem) -> str:
        return group_durable(item.capability, item.model) if item.lane == ANY_LANE else lane_durable(item.lane)

    # clients

    def _submit(self, task: str) -> None:
        urgency: Urgency = self.random.choice(["interactive", "interactive", "batch"])
        event = TaskSubmitted(
            id=self.new_id(), at=self.kernel.now, by="r1", task=task, client=self.random.choice(["a", "b"]),
            urgency=urgency, deadline_s=8.0 if self.random.random() < 0.05 else None,
            domain=Domain(label="general", method="rules"),
            sizes=Sizes(messages=1, chars=1, prompt_tokens=1, body_bytes=1),
            wants=Wants(model=self.random.choice([None, "m1", "m2", "m3"])),
            payload=PayloadRef(subject=f"task.in.a.{task}", bytes=1),
        )  # fmt: skip
        self.ask(
            self.clients, lambda: self.server.publish(event, submit_id(task)), lambda _: self.acked.add(task), lost=0.2
        )
        if self.random.random() < 0.15:
            self.kernel.after(self.random.random() * 6.0, self.clients, self._cancel, task)

    def _cancel(self, task: str) -> None:
        for router in self.routers:
            if router.process.alive:
                self.kernel.after(self.kernel.delay(), router.process, router.cancel, task)

    # faults

    def _tick(self) -> None:
        if self.server.process.alive and not self.server.process.paused:
            self.server.tick()
        self.kernel.after(0.1, None, self._tick)

    def _plan_faults(self) -> None:
        at = self.kernel.after
        for _ in range(self.random.randrange(2, 7)):
            moment = self.random.random() * QUIET_AFTER_S * 0.6
            faults = [
                self._aim_router,
                self._aim_worker,
                self._freeze,
                self._server_fault,
                self._drain,
                self._lose_model,
                self._rival,
            ]
            at(moment, None, self.random.choice(faults))
        if self.random.random() < 0.5:
            self.routers[0].crash_at = self.random.randrange(1, 160)
        if self.random.random() < 0.5:
            victim = self.random.choice(list(self.workers.values()))
            victim.crash_at = self.random.randrange(1, 60)

    def _aim_router(self) -> None:
        router = next((r for r in self.routers if r.process.alive), None)
        if router is not None:
            router.crash_at = router.actions + self.random.randrange(1, 12)

    def _aim_worker(self) -> None:
        worker = self.random.choice(list(self.workers.values()))
        worker.crash_at = worker.commands + self.random.randrange(1, 12)

    def crash_router(self, router: Router) -> None:
        """It comes back after a while; by then another one may decide."""
        self.router_crashes += 1
        self.kernel.kill(router.process)
        away = self.random.random() * self.random.choice([0.5, 6.0])
        self.kernel.after(away, None, lambda: router.boot() if not router.process.alive else None)

    def crash_worker(self, worker: Worker) -> None:
        self.kills += 1
        self.kernel.kill(worker.process)
        away = self.random.choice([0.2, 2.0, 12.0, 45.0]) * self.random.random()
        self.kernel.after(away, None, lambda: worker.boot() if not worker.process.alive else None)

    def _rival(self) -> None:
        """The dispatcher's key is free, and who had it does not know yet."""
        for router in self.routers:
            if router.process.alive and router.epoch >= 0:
                router.deaf_until = self.kernel.now + 3.0
        self.server.key = ("", 0, self.server.key[2] + 1)

    def _drain(self) -> None:
        worker = self.random.choice(list(self.workers.values()))
        if worker.process.alive and not worker.process.paused:
            worker.drain()

    def left(self, worker: Worker) -> None:
        """It said goodbye; it comes back another time."""
        self.kernel.kill(worker.process)
        away = 0.5 + self.random.random() * 15.0
        self.kernel.after(away, None, lambda: worker.boot() if not worker.process.alive else None)

    def _lose_model(self) -> None:
        """Somebody removes a model from a machine, and brings it back later."""
        worker = self.random.choice(list(self.workers.values()))
        lost = self.random.choice(worker.all_models)
        if not worker.process.paused:
            worker.change_models(tuple(m for m in worker.all_models if m != lost))
        self.kernel.after(self.random.random() * 20.0, None, self._bring_back, worker)

    def _bring_back(self, worker: Worker) -> None:
        if worker.process.alive and not worker.process.paused:
            worker.change_models(worker.all_models)
        else:
            self.kernel.after(1.0, None, self._bring_back, worker)

    def _freeze(self) -> None:
        """SIGSTOP of anybody, long enough for leases and deadlines to pass; a frozen dispatcher is replaced."""
        processes = [w.process for w in self.workers.values()] + [r.process for r in self.routers if r.process.alive]
        victim = self.random.choice(processes)
        if not victim.alive:
            return
        self.pauses += 1
        self.kernel.pause(victim)
        seconds = self.random.choice([0.5, 3.0, 10.0, 38.0]) * (0.5 + self.random.random() / 2)
        self.kernel.after(seconds, None, self._wake, victim)

    def _wake(self, victim: Process) -> None:
        self.kernel.resume(victim)
        for worker in self.workers.values():
            if worker.process is victim:
                worker.well_since = self.kernel.now

    def _server_fault(self) -> None:
        server = self.server.process
        seconds = self.random.choice([0.3, 2.0, 10.0])
        if self.random.random() < 0.5:
            self.kernel.pause(server)
            self.kernel.after(self.random.choice([seconds, 35.0]), None, self.kernel.resume, server)
        elif server.alive:
            self.kernel.kill(server)
            self.server.kill()
            self.kernel.after(seconds, None, self.kernel.revive, server)

    # what must hold at the moment when a fact is stored

    def _watch(self, event: AnyEvent) -> None:
        match event:
            case TaskCompleted() if (event.task, event.attempt) not in self.server.answers:
                self.seen.append(f"{event.task}.{event.attempt} completed before its answer was stored")
            case AttemptFailed(failure="lost"):
                worker = self.workers.get(event.worker or "")
                started = next(at for i, _, at in self.server.events if i == start_id(event.task, event.attempt))
                since = min(self.kernel.now - 30.0, started)
                if worker is not None and worker.is_well and worker.well_since < since:
                    self.seen.append(f"{event.task}.{event.attempt} was lost although {worker.name} was well")
            case AttemptFailed(failure="fenced"):
                if not any(_ends(earlier, event) for _, earlier, _ in self.server.events[:-1]):
                    self.seen.append(f"{event.task}.{event.attempt} was cancelled although it was wanted")
            case _:
                pass

    def _items_out_of_order(self) -> list[str]:
        """Items that were put before their release was stored."""
        released = {(e.task, e.attempt): at for _, e, at in self.server.events if isinstance(e, TaskReleased)}
        keys = [((item.body.task, item.body.attempt), item.at) for item in self.server.items.values()]
        return [f"{key} was put before its release" for key, at in keys if at < released.get(key, HORIZON_S)]

    # the end

    def _done(self) -> bool:
        if self.kernel.now < QUIET_AFTER_S or len(self.acked) < self.tasks or not self.server.idle():
            return False
        state = self._fold()
        return not state.tasks and all(not w.machine.hands for w in self.workers.values() if w.process.alive)

    def _fold(self) -> RouterState:
        state = RouterState()
        for seq, (_, event, at) in enumerate(self.server.events, 1):
            state.apply(event, seq, int(at * 1e6))
        return state

    def _report(self) -> Report:
        violations, kinds = check_log([event for _, event, _ in self.server.events], self.limits)
        state = self._fold()
        violations += self.seen + self._items_out_of_order()
        violations += [f"{key} ran {n} times" for key, n in self.runs.items() if n > 1]
        violations += [
            f"{task} was acknowledged and never ended" for task in sorted(self.acked) if not _ended(state, task)
        ]
        violations += [f"permit {permit} leaked ({n})" for permit, n in state.held.items()]
        if len(self.acked) < self.tasks:
            violations.append(f"only {len(self.acked)} of {self.tasks} submissions were acknowledged")
        if not self.server.idle():
            violations.append("work items are left over in the server")
        history = "\n".join(f"{at:.6f} {msg_id} {event}" for msg_id, event, at in self.server.events)
        return Report(
            seed=self.seed, tasks=self.tasks, violations=violations,
            digest=hashlib.sha256(history.encode()).hexdigest()[:16], ended_s=round(self.kernel.now, 3),
            events=len(self.server.events), kills=self.kills, pauses=self.pauses,
            router_crashes=self.router_crashes, kinds=kinds,
        )  # fmt: skip


def _ends(earlier: AnyEvent, fenced: AttemptFailed) -> bool:
    """A reason to stop an attempt: its task's end, or its own."""
    if isinstance(earlier, AttemptFailed):
        return (earlier.task, earlier.attempt) == (fenced.task, fenced.attempt)
    return isinstance(earlier, Terminal) and earlier.task == fenced.task


def _ended(state: RouterState, task: str) -> bool:
    found = state.task(task)
    return found is not None and found.terminal is not None


def run(seed: int, *, tasks: int = 14) -> Report:
    """One seed's history and its violations. The same seed gives the same history."""
    return World(seed, tasks=tasks).run()
