"""A router process in virtual time: the product's fold, live view and engine between modelled wires."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from schemas.events import Candidate, Choice, Credit, DispatcherElected, Measure, Policy, Prediction, TaskRouted
from services.router.dispatch import engine
from services.router.dispatch.actions import Action, DeleteItem, DropConsumer, EnsureConsumer, Publish, PutItem, Tell
from services.router.dispatch.heard import PULSE_S, HeardClock
from services.router.dispatch.live import Live
from services.router.dispatch.permits import Limits
from services.router.dispatch.state import RouterState, Task
from services.router.dispatch.turn import Config, Stamp
from simulation.kernel import Process

if TYPE_CHECKING:
    from simulation.world import World

T = TypeVar("T")
UNKNOWN = Measure(value=None, level="prior", n=0)
RENEW_S, KEY_LEASE_S = 0.7, 3.0
FEED_LAG_S = 0.4
"""Now and then a feed has to make its consumer anew, while credits come as ever."""
SNAPSHOT_PULSES = 20
TOLD_TIMES = (0, 2, *(1,) * 18)
"""A control message may get lost, or come twice."""


class Router:
    """``crash_at`` kills it just before, or (odd) just after, its n-th action has left."""

    def __init__(self, world: World, name: str, limits: Limits) -> None:
        self.world, self.kernel, self.name, self.limits = world, world.kernel, name, limits
        self.process = Process(name, alive=False)
        self.crash_at: int | None = None
        self.actions = 0

    def boot(self) -> None:
        """Start from nothing or from a snapshot: fold the log, and stand for election."""
        self.kernel.revive(self.process)
        self.state, self.live, self.clock = RouterState(), Live(), HeardClock()
        if self.world.server.snapshot[0] and self.kernel.random.random() < 0.7:
            self.state = engine.restore(self.world.server.snapshot[1])
        self.epoch = -1
        self.pulses = 0
        self.following = False
        self._pull()
        self.key_seen = (-1, 0.0)
        self.deaf_until = 0.0  # for its key and its feed, not for credits
        self._pulse()
        self._stand()

    def _stand(self) -> None:
        """Keep the dispatcher's key, or take it when nobody has it, nobody renews it, or it is still our own."""
        server = self.world.server
        if self.deaf_until > self.kernel.now:
            pass
        elif self.epoch >= 0:
            self.world.ask(self.process, lambda: server.renew(self.name, self.epoch), self._renewed, once=True)
        else:
            self.world.ask(self.process, lambda: server.key, self._looked, once=True)
        self.kernel.after(RENEW_S, self.process, self._stand)

    def _renewed(self, ours: bool) -> None:
        if not ours:
            self.epoch = -1

    def _looked(self, key: tuple[str, int, int]) -> None:
        holder, _, revision = key
        if self.key_seen[0] != revision:
            self.key_seen = (revision, self.clock.seconds)
        if holder in ("", self.name) or self.clock.seconds - self.key_seen[1] > KEY_LEASE_S:
            take = self.world.server.take
            self.world.ask(self.process, lambda: take(self.name, revision), self._elected, once=True)

    def _elected(self, epoch: int) -> None:
        if epoch < 0:
            return
        self.epoch = epoch
        self.live.elected()
        event = DispatcherElected(
            id=self.world.new_id(), at=self.kernel.now, by=self.name, epoch=epoch, router=self.name
        )
        self.world.ask(self.process, lambda: self.world.server.publish(event, f"elected.{epoch}"), lambda _: None)

    def _pulse(self) -> None:
        self.world.to_server(lambda: self.kernel.after(self.kernel.delay(), self.process, self._heard))
        self.kernel.after(PULSE_S, self.process, self._pulse)
        self.pulses += 1
        if self.pulses % SNAPSHOT_PULSES == 0:
            saved = (self.state.position, engine.snapshot(self.state))
            self.world.to_server(lambda: setattr(self.world.server, "snapshot", saved))

    def _heard(self) -> None:
        self.clock.beat(self.kernel.now)
        if not self.following and self.kernel.now >= self.deaf_until:
            self._pull()
        self._step()

    def notified(self) -> None:
        """The server stored something; the feed brings it in order."""
        if self.process.alive and not self.following:
            self.following = True
            lag = max(self.deaf_until - self.kernel.now, FEED_LAG_S if self.kernel.lost() else 0.0)
            self.kernel.after(self.kernel.delay() + lag, self.process, self._pull)

    def _pull(self) -> None:
        self.following = False
        if not self.world.server.process.alive or self.world.server.process.paused:
            return
        before = self.state.position
        for seq in range(before + 1, len(self.world.server.events) + 1):
            _, event, at = self.world.server.events[seq - 1]
            self.state.apply(event, seq, int(at * 1e6))
        self.live.folded(self.state.position)
        if self.state.position > before:
            self._step()

    def hear(self, credit: Credit) -> None:
        self.live.hear_credit(credit, self.clock.seconds)
        self._step()

    def cancel(self, task: str) -> None:
        if self.state.task(task) is not None:
            self.live.cancels[task] = "the client went away"
            self._step()

    def _step(self) -> None:
        stamp = Stamp(self.name, self.kernel.now, self.world.new_id)
        config = Config(route=self._route, limits=self.limits)
        actions = engine.decide(self.state, self.live, self.clock.seconds, config, stamp, self.epoch)
        engine.mark_pending(self.live, actions)
        for action in actions:
            self.actions += 1
            crash = self.crash_at is not None and self.actions >= self.crash_at
            if not crash or self.actions % 2:
                self._do(action)
            if crash:
                self.crash_at = None
                self.world.crash_router(self)
                return

    def _do(self, action: Action) -> None:
        server = self.world.server
        match action:
            case Publish(event, msg_id):
                self._ask(action, lambda: server.publish(event, msg_id)[0], lambda seq: self._published(action, seq))
            case PutItem():
                durable = self.world.durable_of(action.item)

                def put() -> int:
                    found = server.find(action.subject) if action.look_first else None
                    return found or server.put(action.subject, durable, action.item, action.msg_id)

                self._ask(action, put, lambda seq: self._put(action, seq))
            case DeleteItem(key, seq):
                self._ask(action, lambda: server.delete(seq), lambda _: self._deleted(action, key))
            case Tell(worker, control):
                target = self.world.workers[worker]
                for _ in range(self.kernel.random.choice(TOLD_TIMES)):
                    self.world.to_server(
                        lambda: self.kernel.after(self.kernel.delay(), target.process, target.control, control)
                    )
            case EnsureConsumer(durable):
                self._ask(action, lambda: server.consumers.add(durable), lambda _: self._confirmed(action))
            case DropConsumer(durable):
                self._ask(action, lambda: server.consumers.discard(durable), lambda _: self._dropped(action))

    def _published(self, action: Publish, seq: int) -> None:
        self.live.stored(action.key, seq)
        self.live.folded(self.state.position)

    def _put(self, action: PutItem, seq: int) -> None:
        self.live.not_stored(action.key)
        self.live.items[action.attempt] = (seq, self.clock.seconds)
        self._step()

    def _deleted(self, action: DeleteItem, key: tuple[str, int]) -> None:
        self.live.not_stored(action.key)
        self.live.items.pop(key, None)

    def _confirmed(self, action: EnsureConsumer) -> None:
        self.live.not_stored(action.key)
        self.live.confirmed[action.durable] = action.slots
        self._step()

    def _dropped(self, action: DropConsumer) -> None:
        self.live.not_stored(action.key)
        self.live.confirmed.pop(action.durable, None)
        self.live.unheld.pop(action.durable, None)

    def _ask(self, action: Action, call: Callable[[], T], then: Callable[[T], object]) -> None:
        """Once; when no answer comes within 2 s the fate is unknown, and the engine may ask again under the same id."""
        answered = [False]

        def answer(result: T) -> None:
            answered[0] = True
            then(result)

        def unknown() -> None:
            if not answered[0]:
                self.live.not_stored(action.key)

        self.world.ask(self.process, call, answer, once=True)
        self.kernel.after(2.0, self.process, unknown)

    def _route(self, task: Task) -> TaskRouted | None:
        submitted = task.submitted
        model = submitted.wants.model or "m1"
        candidates = tuple(
            Candidate(
                model=name, worker="", cost_s=0.0, predicted=Prediction(), decode=UNKNOWN, prefill=UNKNOWN,
                load=UNKNOWN, quality=UNKNOWN,
            )
            for name in ("m1", "m2", "m3")
        )  # fmt: skip
        return TaskRouted(
            id=self.world.new_id(), at=self.kernel.now, by=self.name, cause=submitted.id, task=submitted.task,
            epoch=self.epoch, policy=Policy(name="sim", weights={}), position=0, candidates=candidates,
            choice=Choice(model=model),
        )  # fmt: skip
