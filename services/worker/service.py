"""One worker: its parts put together, and its life from the first report to the last.

Answers "what does this process do, in which order?". It takes work only while the backend answers, consumers are confirmed, and
nobody asked it to pause or go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from typing import Any

import msgspec
from nats.aio.msg import Msg

from schemas.errors import BusError, InvalidEvent
from schemas.events import WorkerLeft
from schemas.subjects import control_subject
from schemas.work import Control, decode_wire
from services.runtime.bus import Bus
from services.runtime.clock import Clock, SystemClock
from services.runtime.ids import new_id
from services.runtime.lifecycle import Lifecycle
from services.runtime.logs import logger
from services.runtime.settings import Worker as WorkerSettings
from services.runtime.take import Taker
from services.worker.attempts import Attempts
from services.worker.backends.port import Backend, Identity
from services.worker.execution import Execution
from services.worker.heartbeat import Heart, Promise
from services.worker.inventory import Inventory
from services.worker.peers import Peers
from services.worker.priority import Priced, priorities
from services.worker.pulling import Pulling
from services.worker.reporting import Reporting
from services.worker.rounds import Rounds
from services.worker.runs import Runs
from services.worker.telemetry.sample import Telemetry
from services.worker.watchdogs import Limits

log = logger("worker")

IN_PROGRESS_S = 10.0
"""A third of the server's ack_wait of 30 s."""
LAST_WORDS_S = 10.0
"""For the ends of runs that a stop cut short."""
SETTLE_S = 0.1
"""One answer changes several cells; their updates come together."""


class WorkerService:
    """``await run(life)`` returns once it has drained. One per process."""

    def __init__(
        self,
        bus: Bus,
        backend: Backend,
        identity: Identity,
        worker: str,
        settings: WorkerSettings,
        models: Mapping[str, Any],
        *,
        clock: Clock | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.worker, self.boot = worker, new_id()
        self._bus, self._settings = bus, settings
        self._clock = clock or SystemClock()
        self._telemetry = telemetry or Telemetry(local=settings.local)
        self._look_now = asyncio.Event()
        self._peers = Peers(bus, worker, self._clock, self._look_now.set, self._priorities_may_change)
        self._inventory = Inventory(
            backend, identity, models, self._peers.known, context=settings.context, was_loaded=self._look_now.set
        )
        self._reporting = Reporting(bus, self._inventory, self._telemetry, self._clock, worker, self.boot, settings)
        self._attempts = Attempts(worker, self.boot, settings.slots, accepting=False)
        self._taker = Taker(bus)
        self._pulling = Pulling(bus, backend, worker, pulled=self._look_now.set)
        self._heart = Heart(
            bus, self._clock, self._telemetry, self._inventory, self._promise,
            worker=worker, boot=self.boot, slots=settings.slots, interval_s=settings.heartbeat_s,
        )  # fmt: skip
        limits = Limits(**msgspec.structs.asdict(settings.timeouts))
        self._execution = Execution(
            self._attempts, bus, self._inventory, self._telemetry, self._clock,
            Runs(self._attempts, bus, self._inventory, self._clock, limits, settings.max_tokens),
            spawn=self._spawn, send_credit=self._heart.want_credit, look=self._look, rest=self._take_rest,
        )  # fmt: skip
        self._rounds = self._execution.rounds = Rounds(
            bus, self._taker, self._groups,
            on_out=self._execution.out, on_armed=self._execution.armed, on_item=self._execution.item,
            on_disarmed=self._execution.disarmed,
        )  # fmt: skip
        self._confirmed: frozenset[str] = frozenset()
        self._priced = Priced(self._price)
        self._holds: set[str] = {"start"}
        self._resting: asyncio.TimerHandle | None = None
        self._repricing: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, life: Lifecycle) -> None:
        """Raises what broke it; a lost connection or a dead backend does not."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._cancel_tasks)
            stack.push_async_callback(self._taker.close)
            stack.push_async_callback(self._peers.stop)
            stack.push_async_callback(self._pulling.close)
            if not await life.unless_draining(self._peers.meet()):
                return
            self._bus.on_reconnect(self._heart.want_credit)
            control = await self._bus.listen(control_subject(self.worker), self._control)
            stack.push_async_callback(control.stop)
            await self._look()
            for loop in (self._heart.send_credits(), self._heart.beat(), self._keep_looking(), self._keep_items()):
                self._spawn(loop)
            self._hold("start", held=False)
            life.ready()
            draining = asyncio.ensure_future(life.until_draining())
            await asyncio.wait([draining, self._broken], return_when=asyncio.FIRST_COMPLETED)
            draining.cancel()
            if self._broken.done():
                self._broken.result()
            await self._drain()

    # -- what it is told ---------------------------------------------------------------------------------------------------

    def _control(self, message: Msg) -> None:
        try:
            control = decode_wire(message.data, Control)
        except InvalidEvent as error:
            log.warning("not a control message", action="bad_control", error=str(error))
            return
        if control.command == "hello":
            self._hello(control)
        elif control.command == "cancel" and control.task is not None and control.attempt is not None:
            self._execution.cancel(control.task, control.attempt)
        elif control.command in ("pause", "resume"):
            self._hold("pause", held=control.command == "pause")
        elif control.command == "drain":
            self._hold("drain", held=True)
        else:
            self._pulling.told(control)

    def _hello(self, control: Control) -> None:
        """A router confirms consumers; only those are ever armed."""
        confirmed = frozenset(control.armable)
        if confirmed != self._confirmed:
            self._confirmed = confirmed
            self._rounds.replace()
        if control.want_report:
            self._reporting.forget()
            self._look_now.set()
        self._apply()
        self._heart.want_credit()

    # -- whether it takes work ---------------------------------------------------------------------------------------------

    def _hold(self, reason: str, *, held: bool) -> None:
        (self._holds.add if held else self._holds.discard)(reason)
        self._apply()

    def _take_rest(self, seconds: float, failure: str) -> None:
        log.warning("the backend rests", action="backend_rests", seconds=seconds, failure=failure)
        if self._resting is not None:
            self._resting.cancel()
        self._hold(f"rest after {failure}", held=True)

        def rested() -> None:
            self._resting = None
            self._holds = {reason for reason in self._holds if not reason.startswith("rest ")}
            self._apply()

        self._resting = asyncio.get_running_loop().call_later(seconds, rested)

    def _apply(self) -> None:
        wants = bool(self._confirmed) and not self._holds
        if wants and not self._attempts.accepting:
            self._execution.execute(self._attempts.start())
        elif not wants and self._attempts.accepting:
            self._execution.execute(self._attempts.pause())
            self._rounds.replace()

    def _groups(self) -> list[tuple[str, int]]:
        return self._priced.groups(self._clock.monotonic(), self._inventory.models, self._confirmed)

    def _price(self) -> list[tuple[str, int]]:
        return priorities(
            self.worker, self._inventory.models, self._reporting.supports, self._confirmed, self._peers.holders(),
            self._peers.statistics, now_us=int(self._clock.unix() * 1e6),
        )  # fmt: skip

    def _priorities_may_change(self) -> None:
        """New figures: once they have settled, standing pulls whose priority would be another are replaced. Otherwise they
        would stand for up to 5 s, and the machine that was just measured as slow would be served like the fastest."""
        if self._repricing is None:
            self._repricing = asyncio.get_running_loop().call_later(SETTLE_S, self._reprice)

    def _reprice(self) -> None:
        self._repricing, self._priced = None, Priced(self._price)
        armed = self._rounds.armed()
        if armed and self._attempts.free and armed != dict(self._groups()):
            self._rounds.replace()

    def _promise(self) -> Promise:
        return Promise(
            free=self._attempts.free,
            running=self._execution.running(),
            armed=self._rounds.armed(),
            draining="drain" in self._holds,
            reasons=tuple(sorted(self._holds)),
        )

    # -- what it holds -----------------------------------------------------------------------------------------------------

    async def _keep_looking(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._settings.heartbeat_s):
                    await self._look_now.wait()
            except TimeoutError:
                pass
            self._look_now.clear()
            await self._look()

    async def _look(self) -> None:
        """Ask the backend, take work accordingly, and report what changed."""
        was_up = self._inventory.up
        await self._inventory.look()
        if was_up and not self._inventory.up:
            log.warning("the backend is down", action="backend_down", reason=self._inventory.reason)
        elif self._inventory.up and not was_up:
            log.info("the backend answers", action="backend_up", models=len(self._inventory.models))
        self._hold("backend", held=not self._inventory.up)
        try:
            await self._reporting.report()
        except BusError as error:
            log.warning("report not stored", action="report_lost", error=str(error))

    async def _keep_items(self) -> None:
        while True:
            await asyncio.sleep(IN_PROGRESS_S)
            await self._execution.in_progress()

    # -- its end -----------------------------------------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Finish what is in hand, cut short what takes too long, say goodbye."""
        self._hold("drain", held=True)
        await self._rounds.close()
        if not await self._empty_handed(self._settings.drain_s):
            self._execution.stop_runs()
            await self._empty_handed(LAST_WORDS_S)
        event = WorkerLeft(
            id=new_id(), at=self._clock.unix(), by=self.worker, worker=self.worker, boot=self.boot, reason="drained"
        )
        try:
            await self._bus.publish_event(event, event.id, deadline_s=LAST_WORDS_S)
        except BusError as error:
            log.warning("left without a word", action="leave_lost", error=str(error))

    async def _empty_handed(self, within_s: float) -> bool:
        try:
            async with asyncio.timeout(within_s):
                await self._execution.empty.wait()
        except TimeoutError:
            return False
        return True

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not self._broken.done():
            self._broken.set_exception(error)

    async def _cancel_tasks(self) -> None:
        for timer in filter(None, (self._resting, self._repricing)):
            timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))
