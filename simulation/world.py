"""One seeded history: a fleet, its clients and everything that goes wrong, and what must hold whatever went wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from schemas.events import Credit, Domain, PayloadRef, Sizes, TaskSubmitted, Urgency, Wants
from schemas.subjects import ANY_LANE, group_durable, lane_durable, submit_id
from schemas.work import WorkItem
from services.router.dispatch.permits import Limit, Limits
from services.router.dispatch.state import RouterState
from simulation.check import check_log
from simulation.kernel import Kernel, Process
from simulation.router import Router
from simulation.server import Server
from simulation.worker import Worker

LIMITS = Limits(model=Limit(3), client=Limit(3), backend=Limit(2))
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
        self.routers = [Router(self, "r1", LIMITS), Router(self, "r2", LIMITS)]
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
        self.routers[0].boot()
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
        self, process: Process, call: Callable[[], Any], then: Callable[[Any], None], *, once: bool = False
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
            if not self.kernel.lost(0.01):
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

    def take_key(self) -> int:
        self.server.revision += 1
        return self.server.revision

    @staticmethod
    def durable_of(item: WorkItem) -> str:
        return group_durable(item.capability, item.model) if item.lane == ANY_LANE else lane_durable(item.lane)

    # clients

    def _submit(self, task: str) -> None:
        urgency: Urgency = self.random.choice(["interactive", "interactive", "batch"])
        event = TaskSubmitted(
            id=self.new_id(), at=self.kernel.now, by="r1", task=task, client=self.random.choice(["a", "b"]),
            urgency=urgency, domain=Domain(label="general", method="rules"),
            sizes=Sizes(messages=1, chars=1, prompt_tokens=1, body_bytes=1),
            wants=Wants(model=self.random.choice([None, "m1", "m2", "m3"])),
            payload=PayloadRef(subject=f"task.in.a.{task}", bytes=1),
        )  # fmt: skip
        self.ask(self.clients, lambda: self.server.publish(event, submit_id(task)), lambda _: self.acked.add(task))
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
        for _ in range(self.random.randrange(1, 5)):
            moment = self.random.random() * QUIET_AFTER_S * 0.6
            at(moment, None, self.random.choice([self._aim_router, self._aim_worker, self._freeze, self._server_fault]))
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
        """Another router, or itself, takes over after a while."""
        self.router_crashes += 1
        self.kernel.kill(router.process)
        heir = self.random.choice(self.routers)
        self.kernel.after(self.random.random() * 3.0, None, self._boot_router, heir)

    def _boot_router(self, heir: Router) -> None:
        if not any(r.process.alive and not r.process.paused for r in self.routers):
            dead = [r for r in self.routers if not r.process.alive]
            if dead:
                (heir if heir in dead else dead[0]).boot()

    def crash_worker(self, worker: Worker) -> None:
        self.kills += 1
        self.kernel.kill(worker.process)
        away = self.random.choice([0.2, 2.0, 12.0, 45.0]) * self.random.random()
        self.kernel.after(away, None, lambda: worker.boot() if not worker.process.alive else None)

    def _freeze(self) -> None:
        """SIGSTOP of anybody, long enough for leases and deadlines to pass; a frozen dispatcher may be replaced."""
        processes = [w.process for w in self.workers.values()] + [r.process for r in self.routers if r.process.alive]
        victim = self.random.choice(processes)
        if not victim.alive:
            return
        self.pauses += 1
        self.kernel.pause(victim)
        seconds = self.random.choice([0.5, 3.0, 10.0, 38.0]) * (0.5 + self.random.random() / 2)
        self.kernel.after(seconds, None, self.kernel.resume, victim)
        if victim in [r.process for r in self.routers] and self.random.random() < 0.5:
            self.kernel.after(1.0, None, self._boot_router, self.random.choice(self.routers))

    def _server_fault(self) -> None:
        server = self.server.process
        seconds = self.random.choice([0.3, 2.0, 10.0])
        if self.random.random() < 0.5:
            self.kernel.pause(server)
            self.kernel.after(seconds, None, self.kernel.resume, server)
        elif server.alive:
            self.kernel.kill(server)
            self.server.kill()
            self.kernel.after(seconds, None, self.kernel.revive, server)

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
        violations, kinds = check_log([event for _, event, _ in self.server.events], LIMITS)
        state = self._fold()
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


def _ended(state: RouterState, task: str) -> bool:
    found = state.task(task)
    return found is not None and found.terminal is not None


def run(seed: int, *, tasks: int = 14) -> Report:
    """One seed's history and its violations. The same seed gives the same history."""
    return World(seed, tasks=tasks).run()
