"""The dispatcher's core by hand: facts in, actions out, and a server that stores whatever it is told to."""

from __future__ import annotations

from itertools import count
from typing import Any, TypeVar

from schemas import events
from schemas.events import AnyEvent, Credit, ModelInfo, RunningAttempt, TaskRouted, TaskSubmitted
from schemas.subjects import group_durable, lane_durable
from services.router.dispatch import engine
from services.router.dispatch.actions import (
    Action,
    DeleteItem,
    DropConsumer,
    EnsureConsumer,
    Publish,
    PutItem,
    Tell,
    Wake,
)
from services.router.dispatch.live import Live
from services.router.dispatch.permits import UNLIMITED, Limits
from services.router.dispatch.state import RouterState, Task
from services.router.dispatch.turn import Absence, Config, Stamp
from support.builders import build

A = TypeVar("A", bound=Action)
ROUTER = "r1"


class Dispatch:
    """``model`` is what the decision on a task chooses where the client left it open; None chooses nothing."""

    def __init__(self, limits: Limits = UNLIMITED, *, epoch: int = 1, model: str | None = "m") -> None:
        self.state, self.live, self.now = RouterState(), Live(), 0.0
        self.limits, self.epoch, self.model, self.absence = limits, epoch, model, Absence()
        self.ids, self.seqs, self.credits = count(), count(1), count(1)
        self.items: dict[str, int] = {}
        self.stored: dict[str, AnyEvent] = {}
        self.tell(build(events.DispatcherElected, epoch=epoch, router=ROUTER))

    # facts and messages

    def tell(self, event: AnyEvent) -> int:
        seq = next(self.seqs)
        self.state.apply(event, seq, int(self.now * 1e6))
        self.live.folded(seq)
        return seq

    def report(self, worker: str, *models: str, boot: str = "b1", slots: int = 1, **fields: Any) -> None:
        held = tuple(ModelInfo(name=m, backend_name=m, digest=f"d-{m}") for m in models or ("m",))
        fields = {"models": held, "backend_id": None, "supports": ("cpu_inference",)} | fields
        self.tell(build(events.WorkerReported, by=worker, worker=worker, boot=boot, slots=slots, **fields))

    def credit(
        self, worker: str, *running: tuple[str, int], free: int = 1, boot: str = "b1", priority: int = 0, **fields: Any
    ) -> None:
        """Everything that the worker reported is armed, unless told otherwise."""
        record = self.state.workers.get(worker)
        models = record.report.models if record is not None else ()
        armed = {group_durable(m.capability, m.name): priority for m in models} | {lane_durable(worker): priority}
        hands = tuple(RunningAttempt(task=t, attempt=n, phase="decode") for t, n in running)
        fields = {"armed": armed, "slots": free + len(running), **fields}
        credit = Credit(worker=worker, boot=boot, seq=next(self.credits), free=free, running=hands, **fields)
        self.live.hear_credit(credit, self.now)

    def join(self, worker: str, *models: str, free: int = 1, priority: int = 0, **fields: Any) -> None:
        """A worker reports, gets its consumers and says that it is ready."""
        self.report(worker, *models, slots=free, **fields)
        self.settle()
        self.credit(worker, free=free, priority=priority)

    def submit(self, task: str, *, model: str | None = None, **fields: Any) -> None:
        fields = {"wants": events.Wants(model=model), "client": "me"} | fields
        self.tell(build(TaskSubmitted, task=task, **fields))

    def start(self, task: str, worker: str, boot: str = "b1") -> None:
        """The worker claims the task's live attempt."""
        live = self.task(task).live
        assert live is not None
        self.tell(build(events.TaskStarted, task=task, attempt=live.n, worker=worker, boot=boot, by=worker))

    def complete(self, task: str) -> None:
        last = max(self.task(task).attempts)
        worker = self.task(task).attempts[last].worker or ""
        self.tell(build(events.TaskCompleted, task=task, attempt=last, worker=worker, by=worker, cause=None))

    def fail(self, task: str, failure: str, *, retryable: bool = True) -> None:
        last = max(self.task(task).attempts)
        self.tell(build(events.AttemptFailed, task=task, attempt=last, failure=failure, retryable=retryable))

    # decisions

    def decide(self) -> list[Action]:
        """What is wanted now; it counts as being on its way until ``do``."""
        config, stamp = (
            Config(route=self._route, limits=self.limits, absence=self.absence),
            Stamp(ROUTER, self.now, self._new_id),
        )
        actions = engine.decide(self.state, self.live, self.now, config, stamp, self.epoch)
        engine.mark_pending(self.live, actions)
        return actions

    def do(self, action: Action) -> None:
        """The shell's part, with a server that always answers."""
        live = self.live
        match action:
            case Publish(event, msg_id):
                if msg_id not in self.stored:
                    self.stored[msg_id] = event  # type: ignore[assignment]
                    self.tell(event)  # type: ignore[arg-type]
                live.not_stored(action.key)
            case PutItem():
                seq = self.items.setdefault(action.msg_id, len(self.items) + 1)
                live.items[action.attempt] = (seq, self.now)
                live.not_stored(action.key)
            case DeleteItem(key, _):
                live.items.pop(key, None)
                live.not_stored(action.key)
            case EnsureConsumer(durable, slots):
                live.confirmed[durable] = slots
                live.not_stored(action.key)
            case DropConsumer(durable):
                live.confirmed.pop(durable)
                live.unheld.pop(durable)
                live.not_stored(action.key)
            case Wake():
                live.not_stored(action.key)
            case Tell():
                pass

    def settle(self) -> list[Action]:
        """Decide and do until nothing is wanted any more."""
        done: list[Action] = []
        for _ in range(100):
            actions = self.decide()
            if not actions:
                return done
            for action in actions:
                self.do(action)
            done += actions
        raise AssertionError(f"it never settles; last: {done[-3:]}")

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def task(self, task: str) -> Task:
        found = self.state.task(task)
        assert found is not None, f"{task} is unknown"
        return found

    def _new_id(self) -> str:
        return f"id-{next(self.ids)}"

    def _route(self, task: Task) -> TaskRouted | None:
        model = task.submitted.wants.model or self.model
        if model is None:
            return None
        return TaskRouted(
            id=self._new_id(), at=self.now, by=ROUTER, task=task.submitted.task, epoch=self.epoch,
            policy=events.Policy(name="test", weights={}), position=0, choice=events.Choice(model=model),
        )  # fmt: skip


def of(kind: type[A], actions: list[Action]) -> list[A]:
    return [action for action in actions if isinstance(action, kind)]


def facts(actions: list[Action]) -> list[str]:
    """The published facts, by type: what a log would show."""
    return [events.type_of(action.event) for action in of(Publish, actions)]
