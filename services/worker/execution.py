"""The shell around the attempt machine: executes its commands in order and feeds the results back.

Answers "how is each step of PROTOCOL.md done here?". All protocol decisions are the machine's; this file only
talks. What is on its way when the process dies is lost, and that is right: the router's deadline or lease decides then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from schemas.errors import BackendError, BusError, InvalidEvent
from schemas.events import AttemptFailed, Phase, RunningAttempt, TaskCompleted, TaskStarted
from schemas.subjects import answer_subject, item_id
from schemas.work import Answer, WorkItem, decode_wire, encode_wire
from services.runtime.bus import Bus
from services.runtime.clock import Clock
from services.runtime.ids import new_id
from services.runtime.logs import logger
from services.runtime.take import Taken
from services.worker import attempts as machine
from services.worker.attempts import Attempts, Command, Key, cancelled_failure, failure
from services.worker.completion import Context, described, failed
from services.worker.inventory import Inventory
from services.worker.rest import Rest
from services.worker.rounds import Rounds
from services.worker.runs import Runs
from services.worker.storing import is_ours, until_stored
from services.worker.streams import Streams
from services.worker.telemetry.sample import Telemetry

log = logger("worker")

SICK = frozenset({"disconnect", "oom", "protocol", "timeout", "stall"})
"""After these the backend is looked at before another pull is armed."""

Work = Coroutine[Any, Any, Any]
Spawn = Callable[[Work], "asyncio.Task[Any]"]


class Execution:
    """One per worker process. ``spawn`` starts a task whose error ends the worker, ``look`` refreshes the inventory,
    ``rest`` takes no work for some seconds."""

    def __init__(
        self,
        attempts: Attempts,
        bus: Bus,
        inventory: Inventory,
        telemetry: Telemetry,
        clock: Clock,
        runs: Runs,
        *,
        spawn: Spawn,
        send_credit: Callable[[], None],
        look: Callable[[], Coroutine[Any, Any, None]],
        rest: Callable[[float, str], None],
    ) -> None:
        self.attempts = attempts
        self.rounds: Rounds | None = None
        self.stopping = False
        """The process goes: runs that are cut short are for another machine to do again."""
        self._bus, self._inventory, self._telemetry, self._clock, self._runs = bus, inventory, telemetry, clock, runs
        self._spawn, self._send_credit, self._look = spawn, send_credit, look
        self._take_rest, self._rest = rest, Rest()
        self.empty = asyncio.Event()
        """Set while no attempt is in hand."""
        self.empty.set()
        self._items: dict[Key, Taken] = {}
        self._contexts: dict[Key, Context] = {}
        self._claimed_at: dict[Key, float] = {}
        self._running: dict[Key, asyncio.Task[tuple[TaskCompleted, Answer]]] = {}
        self._streams: Streams[Key] = Streams()

    # -- what happens ------------------------------------------------------------------------------------------------------

    def out(self, number: int) -> bool:
        """Whether an end follows a round's pulls, which proves them."""
        commands = self.attempts.out(number)
        self.execute(commands)
        return bool(commands)

    def armed(self, number: int) -> None:
        self.execute(self.attempts.armed(number))

    def disarmed(self, number: int) -> None:
        self.execute(self.attempts.disarmed(number))

    def item(self, number: int, taken: Taken) -> None:
        try:
            item = decode_wire(taken.data, WorkItem)
        except InvalidEvent as error:
            log.error("not a work item", action="bad_item", subject=taken.subject, error=str(error))
            self._spawn(taken.term("not a work item"))
            self.disarmed(number)
            return
        key = (item.task, item.attempt)
        is_new = key not in self.attempts.hands
        self._items[key] = taken  # also of a repeated delivery: only the latest one's acks count
        model = self._inventory.find(item.model)
        started = TaskStarted(
            id=new_id(), at=self._clock.unix(), by=self.attempts.worker, task=item.task, attempt=item.attempt,
            worker=self.attempts.worker, boot=self.attempts.boot, model=item.model,
            digest=model.digest if model else None, context=model.context if model else None,
            concurrency=self.attempts.concurrency() + 1, deliveries=taken.deliveries,
        )  # fmt: skip
        if is_new:
            self._claimed_at[key] = self._clock.monotonic()
            self._contexts[key] = Context(
                item=item, started=started, model=model, identity=self._inventory.identity,
                gpu=self._telemetry.gpu_name, others_use=self._telemetry.others.use,
            )  # fmt: skip
            self._runs.prefetch(item)
        self.execute(self.attempts.item_arrived(number, item, started))

    def cancel(self, task: str, attempt: int) -> None:
        self.execute(self.attempts.cancel(task, attempt))

    def stop_runs(self) -> None:
        """Cut every run short; their ends still go into the log."""
        self.stopping = True
        for run in self._running.values():
            run.cancel()

    def running(self) -> tuple[RunningAttempt, ...]:
        """What a credit lists, with the seconds since each claim."""
        now = self._clock.monotonic()
        return tuple(
            msgspec.structs.replace(one, elapsed_s=round(now - self._claimed_at[(one.task, one.attempt)], 3))
            for one in self.attempts.running()
        )

    async def in_progress(self) -> None:
        """Ask for more time for every item in hand."""
        for taken in list(self._items.values()):
            await taken.in_progress()

    # -- commands ----------------------------------------------------------------------------------------------------------

    def execute(self, commands: list[Command]) -> None:
        for command in commands:
            if (work := self._do(command)) is not None:
                self._spawn(work)
        self._note_empty()

    async def _go_on(self, commands: list[Command]) -> None:
        """As ``execute``, the first piece of work in the task that is here already: an attempt's steps follow one another, and a
        task for each cost as much as the step."""
        mine: Work | None = None
        for command in commands:
            work = self._do(command)
            if mine is None:
                mine = work
            elif work is not None:
                self._spawn(work)
        self._note_empty()
        if mine is not None:
            await mine

    def _note_empty(self) -> None:
        (self.empty.clear if self.attempts.hands else self.empty.set)()

    def _do(self, command: Command) -> Work | None:
        """Its work, where it does not end at once."""
        match command:
            case machine.Claim():
                return self._claim(command)
            case machine.Run(key):
                return self._run(key)
            case machine.Stop(key):
                if key in self._running and self.attempts.hands[key].phase != "loading":
                    self._running[key].cancel()  # a load goes on to its end, see Runs
            case machine.StoreAnswer():
                return self._store(command)
            case machine.Arm(number):
                assert self.rounds is not None  # nothing is armed before the shell is whole
                self.rounds.arm(number)
            case machine.PublishEnd():
                return self._publish_end(command)
            case machine.Ack(key):
                return self._items.pop(key).ack()
            case machine.Terminate(key, reason):
                return self._items.pop(key).term(reason)
            case machine.SendCredit():
                self._forget_ended()
                self._send_credit()
        return None

    async def _claim(self, command: machine.Claim) -> None:
        try:
            own = await is_ours(self._bus, command.event, command.msg_id)
        except BusError as error:
            log.warning("a claim's fate is unknown", action="claim_failed", task=command.key[0], error=str(error))
            self._items.pop(command.key, None)
            self.execute(self.attempts.claim_failed(command.key))
            return
        if not own:
            log.info("the claim is another's", action="claim_lost", task=command.key[0], attempt=command.key[1])
        await self._go_on(self.attempts.claimed(command.key, own))

    async def _store(self, command: machine.StoreAnswer) -> None:
        answer, item = command.answer, self._contexts[command.key].item
        subject = answer_subject(item.client, item.task, item.attempt)
        data, msg_id = encode_wire(answer), f"{item_id(*command.key)}.out"
        if len(data) > self._bus.nc.max_payload:
            most = self._bus.nc.max_payload
            detail = f"the answer has {len(data)} bytes, the NATS server takes {most}: raise its max_payload"
            error = BackendError("protocol", detail, retryable=False)
            self.execute(self.attempts.failed(command.key, self._failed_event(command.key, error)))
            return
        await until_stored(lambda: self._bus.publish_stored(subject, data, msg_id))
        await self._go_on(self.attempts.stored(command.key))

    async def _publish_end(self, command: machine.PublishEnd) -> None:
        key, item = command.key, self._contexts[command.key].item
        own = await until_stored(lambda: is_ours(self._bus, command.event, command.msg_id))
        await self._go_on(self.attempts.ended(key, own, None if own else self._fenced(key, item)))

    def _fenced(self, key: Key, item: WorkItem) -> AttemptFailed:
        tokens, detail = self.attempts.hands[key].tokens, "another attempt's end stands"
        event = failure(item, self._stamp(key), "fenced", retryable=False, tokens=tokens, detail=detail)
        return self._describe(event, "ending")

    # -- the run -----------------------------------------------------------------------------------------------------------

    async def _run(self, key: Key) -> None:
        """The backend's part, in a task of its own that ``Stop`` cancels; this one always reports how it ended."""
        if not self.attempts.wants_run(key):
            self._finish_cancelled(key)
            return
        run = self._running[key] = asyncio.create_task(self._runs.make(self._contexts[key]), name=f"run {key[0]}")
        self._streams.begin(key, self._clock.monotonic())
        self._telemetry.others.ours(len(self._running), self._clock.monotonic())
        over = asyncio.Event()
        run.add_done_callback(lambda _: over.set())  # a third of what ``asyncio.wait`` costs
        try:
            await over.wait()
        finally:
            run.cancel()
            del self._running[key]
            together = self._streams.end(key, self._clock.monotonic())
            self._telemetry.others.ours(len(self._running), self._clock.monotonic())
        if run.cancelled():
            self._finish_cancelled(key)
        elif error := run.exception():
            await self._finish_failed(key, error)
        else:
            end, answer = run.result()
            self._rest.succeeded()
            log.info(
                "task completed", action="task_completed", task=key[0], attempt=key[1], model=end.model,
                outcome=end.outcome, tokens=end.tokens.output, seconds=end.times.total_s,
            )  # fmt: skip
            await self._go_on(self.attempts.completed(key, msgspec.structs.replace(end, concurrency=together), answer))

    def _finish_cancelled(self, key: Key) -> None:
        hand = self.attempts.hands[key]
        if self.stopping and not hand.cancelled:
            error = BackendError("disconnect", "the worker was stopped before the answer was whole")
            self.execute(self.attempts.failed(key, self._failed_event(key, error)))
            return
        log.info("run cancelled", action="run_cancelled", task=key[0], attempt=key[1])
        event = cancelled_failure(hand.item, self._stamp(key), hand.tokens)
        self.execute(self.attempts.failed(key, self._describe(event, hand.phase)))

    async def _finish_failed(self, key: Key, error: BaseException) -> None:
        if not isinstance(error, BackendError):
            log.error("a run failed in our own code", action="run_failed", exc_info=error)
            error = BackendError("protocol", f"{type(error).__name__}: {error}")
        event = self._failed_event(key, error)
        log.warning("attempt failed", action="attempt_failed", task=key[0], attempt=key[1], error=str(error))
        if error.failure in SICK:
            await self._look()
        if (seconds := self._rest.after(error.failure)) > 0.0:
            self._take_rest(seconds, error.failure)
        self.execute(self.attempts.failed(key, event))

    def _failed_event(self, key: Key, error: BackendError) -> AttemptFailed:
        hand = self.attempts.hands[key]
        elapsed_s = round(self._clock.monotonic() - self._claimed_at[key], 6)
        return failed(
            self._contexts[key], self._stamp(key), error, tokens=hand.tokens, phase=hand.phase, elapsed_s=elapsed_s
        )

    def _describe(self, event: AttemptFailed, phase: Phase) -> AttemptFailed:
        key = (event.task, event.attempt)
        elapsed_s = round(self._clock.monotonic() - self._claimed_at[key], 6)
        return described(event, self._contexts[key], phase=phase, elapsed_s=elapsed_s)

    def _stamp(self, key: Key) -> TaskStarted:
        """The claim with a fresh id and time: the envelope of the next fact about this attempt."""
        return msgspec.structs.replace(self._contexts[key].started, id=new_id(), at=self._clock.unix())

    def _forget_ended(self) -> None:
        for key in self._contexts.keys() - self.attempts.hands.keys():
            del self._contexts[key], self._claimed_at[key]
            self._runs.forget(key)
