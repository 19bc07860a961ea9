"""A worker process in virtual time: the product's ``Attempts`` machine between a modelled server and a modelled backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from schemas.events import Credit, ModelInfo, TaskCompleted, TaskStarted, WorkerLeft, WorkerReported
from schemas.subjects import group_durable, lane_durable
from schemas.work import Answer, Control, WorkItem
from services.worker import attempts as machine
from services.worker.attempts import Attempts, Command, Key
from simulation.kernel import Process
from simulation.server import Item, Round

if TYPE_CHECKING:
    from simulation.world import World

EXPIRES_S = 5.0
HEARTBEAT_S = 5.0


class Worker:
    """``speed`` multiplies the seconds of a run; ``crash_at`` kills it just before its n-th command."""

    def __init__(self, world: World, name: str, models: tuple[str, ...], slots: int, speed: float) -> None:
        self.world, self.kernel = world, world.kernel
        self.name, self.models, self.slots, self.speed = name, models, slots, speed
        self.all_models = models
        self.well_since = 0.0
        self.process = Process(name, alive=False)
        self.crash_at: int | None = None
        self.commands = 0
        self.boots = 0
        self.run_ids: dict[Key, int] = {}

    @property
    def is_well(self) -> bool:
        return self.process.alive and not self.process.paused

    def boot(self) -> None:
        self.kernel.revive(self.process)
        self.boots += 1
        self.boot_id = f"{self.name}.b{self.boots}"
        self.machine = Attempts(self.name, self.boot_id, self.slots)
        self.items: dict[Key, Item] = {}
        self.armable: tuple[str, ...] = ()
        self.started = self.leaving = False
        self.standing: dict[int, Callable[[], None]] = {}
        self.credits = 0
        self.well_since = self.kernel.now
        self._report()
        self._beat()
        self._in_progress()

    def _report(self) -> None:
        report = WorkerReported(
            id=self.world.new_id(), at=self.kernel.now, by=self.name, worker=self.name, boot=self.boot_id,
            name=self.name, backend="sim", slots=self.slots, models=tuple(
                ModelInfo(name=m, backend_name=m) for m in self.models),
        )  # fmt: skip
        self.reporting = True
        self._publish(report, report.id, lambda own: self._reported(report))

    def _reported(self, report: WorkerReported) -> None:
        """One report after the other: two on their way could overtake each other."""
        self.reporting = False
        if tuple(info.name for info in report.models) != self.models:
            self._report()

    def change_models(self, models: tuple[str, ...]) -> None:
        """Somebody removed a model, or brought it back. Pulls that stand for it stay until they expire."""
        if self.process.alive and models != self.models:
            self.models = models
            if not self.reporting:
                self._report()
            self._credit()

    def drain(self) -> None:
        """Take nothing new, finish what is in hand, say goodbye, go."""
        if self.process.alive and not self.leaving:
            self.leaving = True
            self._execute(self.machine.pause())
            for close in list(self.standing.values()):
                close()
            self._leave_when_empty()

    def _leave_when_empty(self) -> None:
        if self.machine.hands or self.machine.rounds:
            self.kernel.after(0.2, self.process, self._leave_when_empty)
            return
        left = WorkerLeft(id=self.world.new_id(), at=self.kernel.now, by=self.name, worker=self.name, boot=self.boot_id)
        self._publish(left, left.id, lambda own: self.world.left(self))

    def control(self, control: Control) -> None:
        if control.command == "hello":
            self.armable = control.armable
            if not self.started and not self.leaving:
                self.started = True
                self._execute(self.machine.start())
        elif control.command == "cancel" and control.task is not None and control.attempt is not None:
            self._execute(self.machine.cancel(control.task, control.attempt))

    def _beat(self) -> None:
        self._credit()
        self.kernel.after(HEARTBEAT_S, self.process, self._beat)

    def _in_progress(self) -> None:
        for key in self.machine.hands:
            self.world.to_server(self.world.server.in_progress, self.items[key])
        self.kernel.after(10.0, self.process, self._in_progress)

    def _credit(self) -> None:
        self.credits += 1
        armed = self._durables() if self.started else {}
        credit = Credit(
            worker=self.name, boot=self.boot_id, seq=self.credits, slots=self.slots, free=self.machine.free,
            running=self.machine.running(), armed=armed, draining=self.leaving,
        )  # fmt: skip
        self.world.broadcast_credit(credit)

    def _durables(self) -> dict[str, int]:
        """The confirmed consumers of what it holds now."""
        held = {lane_durable(self.name), *(group_durable("cpu_inference", model) for model in self.models)}
        return {durable: min(int(self.speed), 9) for durable in self.armable if durable in held}

    def _execute(self, commands: list[Command]) -> None:
        for command in commands:
            self.commands += 1
            if self.crash_at is not None and self.commands >= self.crash_at:
                self.crash_at = None
                self.world.crash_worker(self)
                return
            self._do(command)

    def _do(self, command: Command) -> None:
        match command:
            case machine.Claim(key, event, msg_id):
                self._publish(event, msg_id, lambda own: self._execute(self.machine.claimed(key, own)))
            case machine.Run(key, item):
                self._run(key, item)
            case machine.Stop(key):
                self.kernel.after(0.05, self.process, self._finish, key, self.run_ids[key], "cancelled")
            case machine.StoreAnswer(key, _):
                self._ask(lambda: self.world.server.answers.add(key), lambda _: self._stored(key))
            case machine.Arm(number):
                self._arm(number)
            case machine.PublishEnd(key, event, msg_id):
                self._publish(event, msg_id, lambda own: self._ended(key, own))
            case machine.Ack(key) | machine.Terminate(key, _):
                held = self.items.pop(key)
                self.world.to_server(self.world.server.ack, held, held.deliveries)
            case machine.SendCredit():
                self._credit()

    def _arm(self, number: int) -> None:
        durables = self._durables()
        process, life = self.process, self.process.life
        over = [False]

        def deliver(item: Item) -> None:
            if not over[0]:
                over[0] = True
                self.standing.pop(number, None)
                self._item(number, item)

        def place() -> bool:
            expires = self.kernel.now + EXPIRES_S
            orders.append(self.world.server.arm(Round(process, life, durables, expires, deliver)))
            self.kernel.after(0.0, process, sent)
            return True

        def sent() -> None:
            """Whatever the worker says from here on comes after its pulls: the server reads a connection in order."""
            if not over[0]:
                proven[0] = bool(commands := self.machine.out(number))
                self._execute(commands)

        def stands(ok: bool) -> None:
            if ok and not over[0] and not proven[0]:
                self._execute(self.machine.armed(number))

        def give_up() -> None:
            if not over[0]:
                over[0] = True
                self.standing.pop(number, None)
                self._execute(self.machine.disarmed(number))

        def close() -> None:
            """The server answers once nothing more can come; what was on its way has come by then, or 0.2 s later."""
            self._ask(
                lambda: self.world.server.close(orders),
                lambda _: self.kernel.after(0.2, process, give_up),
            )

        orders: list[int] = []
        proven = [False]
        self.standing[number] = close
        self._ask(place, stands, once=True)
        self.kernel.after(EXPIRES_S + 0.2, self.process, give_up)

    def _item(self, number: int, item: Item) -> None:
        work: WorkItem = item.body
        key = (work.task, work.attempt)
        if key not in self.machine.hands:
            self.items[key] = item
        claim = TaskStarted(
            id=self.world.new_id(), at=self.kernel.now, by=self.name, task=work.task, attempt=work.attempt,
            worker=self.name, boot=self.boot_id, model=work.model,
        )  # fmt: skip
        self._execute(self.machine.item_arrived(number, work, claim))

    def _run(self, key: Key, item: WorkItem) -> None:
        self.world.runs[key] = self.world.runs.get(key, 0) + 1
        self.run_ids[key] = self.commands
        if not self.machine.wants_run(key):
            self._finish(key, self.commands, "cancelled")
            return
        self.machine.progress(key, "decode", 1)
        seconds = self.speed * self.kernel.random.expovariate(1 / 0.6)
        luck = self.kernel.random.random()
        how = "rejected" if luck < 0.01 else "stall" if luck < 0.05 else "ok"
        how = how if item.model in self.models else "protocol"
        self.kernel.after(seconds, self.process, self._finish, key, self.commands, how)

    def _finish(self, key: Key, run: int, how: str) -> None:
        hand = self.machine.hands.get(key)
        if hand is None or hand.stage != "running" or self.run_ids.get(key) != run:
            return
        stamp = TaskStarted(
            id=self.world.new_id(), at=self.kernel.now, by=self.name, task=key[0], attempt=key[1],
            worker=self.name, boot=self.boot_id, model=hand.item.model,
        )  # fmt: skip
        if how == "cancelled":
            self._execute(self.machine.failed(key, machine.cancelled_failure(hand.item, stamp, 1)))
        elif how == "ok":
            end = TaskCompleted(
                id=self.world.new_id(), at=self.kernel.now, by=self.name, task=key[0], attempt=key[1],
                worker=self.name, boot=self.boot_id, model=hand.item.model, domain=hand.item.domain,
            )  # fmt: skip
            answer = Answer(task=key[0], attempt=key[1], model=hand.item.model, worker=self.name)
            self._execute(self.machine.completed(key, end, answer))
        else:
            kind: Any = how
            end_failed = machine.failure(hand.item, stamp, kind, retryable=how != "rejected", tokens=0, detail="luck")
            self._execute(self.machine.failed(key, end_failed))

    def _stored(self, key: Key) -> None:
        self._execute(self.machine.stored(key))

    def _ended(self, key: Key, own: bool) -> None:
        hand = self.machine.hands[key]
        stamp = TaskStarted(
            id=self.world.new_id(), at=self.kernel.now, by=self.name, task=key[0], attempt=key[1],
            worker=self.name, boot=self.boot_id, model=hand.item.model,
        )  # fmt: skip
        fenced = machine.failure(
            hand.item, stamp, "fenced", retryable=False, tokens=1, detail="another attempt ended it"
        )
        self._execute(self.machine.ended(key, own, fenced))

    def _publish(self, event: Any, msg_id: str, then: Callable[[bool], None]) -> None:
        self._ask(lambda: self.world.server.publish(event, msg_id), lambda stored: then(stored[1].id == event.id))

    def _ask(self, call: Callable[[], Any], then: Callable[[Any], None], *, once: bool = False) -> None:
        self.world.ask(self.process, call, then, once=once)
