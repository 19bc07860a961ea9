"""The worker's half of the attempt protocol (PROTOCOL.md, "One attempt"), as a pure machine.

Answers "what must this worker do next?". The shell executes each command in the order given and feeds the result back through
the method named in the command's docstring; the machine decides everything that PROTOCOL.md decides. It never talks to anybody,
never reads a clock and never retries an attempt.

Slots: an attempt takes a slot from its item until its run is over (and its answer stored). One pull round of one item is armed
for each free slot; at an attempt's end the next pull is armed *before* the terminal fact is published, and a credit is sent
only when all that is done, so that a release made on the terminal fact finds this worker's pull standing. Pulls and fact leave
on one connection, which the server reads in order: the fact's PubAck proves the pulls, and nothing waits for them alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from schemas.events import AttemptFailed, Event, FailureClass, Phase, RunningAttempt, TaskCompleted, TaskStarted
from schemas.subjects import end_id, fail_id, start_id
from schemas.work import Answer, WorkItem

Key = tuple[str, int]


class Claim(msgspec.Struct, frozen=True):
    """Publish ``event`` under ``msg_id`` and wait for the PubAck -> ``claimed(key, own)``. ``own`` is True when stored, or
    when "duplicate" but the stored event has this event's id; False for another's. -> ``claim_failed`` if nothing is known."""

    key: Key
    event: TaskStarted
    msg_id: str


class Run(msgspec.Struct, frozen=True):
    """Start the backend's stream -> ``finished(key, ...)`` exactly once, also after ``Stop``."""

    key: Key
    item: WorkItem


class Stop(msgspec.Struct, frozen=True):
    """Close the upstream stream now; the run then reports ``finished`` as cancelled."""

    key: Key


class StoreAnswer(msgspec.Struct, frozen=True):
    """Store the answer under its subject, until it is stored -> ``stored(key)``."""

    key: Key
    answer: Answer


class Arm(msgspec.Struct, frozen=True):
    """Arm pull round ``round`` of one item over all confirmed groups and the lane. Once all its pulls are sent, before whatever
    is sent later -> ``out(round)``; where that brings no command, once the server has them -> ``armed(round)``; its item ->
    ``item_arrived(round, ...)``; when it ends without one -> ``disarmed(round)``."""

    round: int


class PublishEnd(msgspec.Struct, frozen=True):
    """Publish ``event`` under ``msg_id``, wait for the PubAck, as for Claim -> ``ended(key, own)``."""

    key: Key
    event: Event
    msg_id: str


class Ack(msgspec.Struct, frozen=True):
    """Ack the work item: its end is in the log. Nothing to feed back."""

    key: Key


class Terminate(msgspec.Struct, frozen=True):
    """``+TERM`` the work item with ``reason``: this delivery must never run. Nothing to feed back."""

    key: Key
    reason: str


class SendCredit(msgspec.Struct, frozen=True):
    """Send the absolute credit (``free``, ``running``). Nothing to feed back."""


Command = Claim | Run | Stop | StoreAnswer | Arm | PublishEnd | Ack | Terminate | SendCredit


@dataclass
class Hand:
    """One attempt in hand. ``stage`` is the protocol's; ``phase`` is what a credit shows."""

    item: WorkItem
    stage: str = "claiming"  # claiming, running, storing, arming, ending, fencing, refusing
    phase: Phase = "claiming"
    tokens: int = 0
    cancelled: bool = False
    end: Event | None = None
    proves: int | None = None
    """The round whose pulls left just before its end."""


@dataclass
class Attempts:
    """The machine. Every method returns the commands to execute, in order."""

    worker: str
    boot: str
    slots: int
    hands: dict[Key, Hand] = field(default_factory=dict)
    rounds: dict[int, bool] = field(default_factory=dict)  # round -> its pulls stand for sure
    last_round: int = 0
    accepting: bool = True

    def start(self) -> list[Command]:
        """The worker may take work from now on."""
        self.accepting = True
        return self._arm_free()

    def pause(self) -> list[Command]:
        """Take nothing new; what is in hand goes on. The shell closes the standing rounds, which come back as disarmed."""
        self.accepting = False
        return [*self._end_waiting(), SendCredit()]

    @property
    def free(self) -> int:
        """Slots whose pull stands, which is what a credit may promise."""
        return min(sum(self.rounds.values()), self._free_slots()) if self.accepting else 0

    def running(self) -> tuple[RunningAttempt, ...]:
        """Everything in hand, for credits and heartbeats; the shell adds elapsed seconds."""
        return tuple(
            RunningAttempt(task=key[0], attempt=key[1], phase=hand.phase, tokens=hand.tokens)
            for key, hand in self.hands.items()
        )

    def concurrency(self) -> int:
        """Attempts that run on the backend now, the one being claimed included."""
        return sum(1 for hand in self.hands.values() if hand.stage in ("claiming", "running"))

    def out(self, round: int) -> list[Command]:
        """A round's pulls are sent: an attempt that waited for this publishes its end behind them, whose PubAck proves them."""
        return self._end_next(round)

    def armed(self, round: int) -> list[Command]:
        """The server has all pulls of a round. An attempt that waited for this may now publish its end."""
        if round in self.rounds:
            self.rounds[round] = True
        return self._end_next() or [SendCredit()]

    def disarmed(self, round: int) -> list[Command]:
        """A round ended without an item (expired, disconnected, closed): arm another one if a slot is free. One whose pulls
        never stood keeps no end back any longer: arming first is for speed, and an end is for ever."""
        stood = self.rounds.pop(round, True)
        if not self.accepting:
            return self._end_waiting()
        return [*self._arm_free(), *([] if stood else self._end_next())]

    def item_arrived(self, round: int, item: WorkItem, claim: TaskStarted) -> list[Command]:
        """A round brought an item; ``claim`` is the start that the shell built for it (ids and clocks are the shell's)."""
        stood = self.rounds.pop(round, True)
        return [*self._take(item, claim), *([] if stood else self._end_next())]

    def _take(self, item: WorkItem, claim: TaskStarted) -> list[Command]:
        key = (item.task, item.attempt)
        if key in self.hands:
            return self._arm_free()
        if item.holders and self.worker not in item.holders:
            hand = self.hands[key] = Hand(item=item, stage="refusing", phase="ending")
            hand.end = AttemptFailed(
                id=claim.id, at=claim.at, by=claim.by, cause=claim.cause, task=item.task, attempt=item.attempt,
                worker=self.worker, boot=self.boot, failure="refused", retryable=True,
                detail=f"{self.worker} is outside the item's permits",
            )  # fmt: skip
            return [*self._arm_free(), PublishEnd(key, hand.end, start_id(*key))]
        self.hands[key] = Hand(item=item)
        return [Claim(key, claim, start_id(*key))]

    def claimed(self, key: Key, own: bool) -> list[Command]:
        """The claim's id is decided: run if it is ours, else this delivery must never run."""
        hand = self.hands[key]
        if not own:
            del self.hands[key]
            return [Terminate(key, "another event holds the claim"), *self._arm_free(), SendCredit()]
        hand.stage, hand.phase = "running", "queued"
        return [Run(key, hand.item), SendCredit()]

    def claim_failed(self, key: Key) -> list[Command]:
        """Whether the claim was stored is unknown: do not run, do not ack. The router's deadline or lease decides."""
        del self.hands[key]
        return [*self._arm_free(), SendCredit()]

    def progress(self, key: Key, phase: Phase, tokens: int) -> None:
        """What the run is doing, for credits only."""
        hand = self.hands.get(key)
        if hand is not None and hand.stage == "running":
            hand.phase, hand.tokens = phase, tokens

    def cancel(self, task: str, attempt: int) -> list[Command]:
        """The router wants this attempt ended. Ignored unless it runs or is about to."""
        hand = self.hands.get((task, attempt))
        if hand is None or hand.cancelled or hand.stage not in ("claiming", "running"):
            return []
        hand.cancelled = True
        return [Stop((task, attempt))] if hand.stage == "running" else []

    def wants_run(self, key: Key) -> bool:
        """False once it was cancelled between its claim and its run; the shell then reports finished at once."""
        return not self.hands[key].cancelled

    def completed(self, key: Key, end: TaskCompleted, answer: Answer) -> list[Command]:
        """The run succeeded (an empty answer is an outcome too): store the answer first."""
        hand = self.hands[key]
        hand.stage, hand.phase, hand.end = "storing", "ending", end
        return [StoreAnswer(key, answer)]

    def failed(self, key: Key, end: AttemptFailed) -> list[Command]:
        """The run failed or was stopped: nothing to store. A worker never says that the *task* failed."""
        hand = self.hands[key]
        hand.phase, hand.end = "ending", end
        return self._arm_then_end(key, hand)

    def stored(self, key: Key) -> list[Command]:
        """The answer is stored."""
        return self._arm_then_end(key, self.hands[key])

    def ended(self, key: Key, own: bool, fenced: AttemptFailed | None = None) -> list[Command]:
        """The end's id is decided. Another attempt's terminal fact: say that ours was ``fenced``, which frees its permits."""
        hand = self.hands[key]
        if hand.proves in self.rounds:
            self.rounds[hand.proves] = True
        if not own and isinstance(hand.end, TaskCompleted) and hand.stage == "ending":
            assert fenced is not None  # the shell brings it with whatever is not its own
            hand.stage, hand.end = "fencing", fenced
            return [PublishEnd(key, fenced, fail_id(*key))]
        del self.hands[key]
        return [Ack(key), SendCredit()]

    def _end_next(self, round: int | None = None) -> list[Command]:
        """One round's pulls are out, or never will be: one attempt that waited for that publishes its end."""
        for key, hand in self.hands.items():
            if hand.stage == "arming":
                hand.proves = round
                return [self._publish_end(key, hand)]
        return []

    def _publish_end(self, key: Key, hand: Hand) -> PublishEnd:
        assert hand.end is not None
        hand.stage = "ending"
        msg_id = end_id(key[0]) if isinstance(hand.end, TaskCompleted) else fail_id(*key)
        return PublishEnd(key, hand.end, msg_id)

    def _arm_then_end(self, key: Key, hand: Hand) -> list[Command]:
        hand.stage = "arming"
        arm = self._arm_free()
        return arm or [self._publish_end(key, hand)]

    def _free_slots(self) -> int:
        used = sum(1 for hand in self.hands.values() if hand.stage in ("claiming", "running", "storing"))
        return self.slots - used

    def _arm_free(self) -> list[Command]:
        if not self.accepting:
            return []
        arms: list[Command] = []
        for _ in range(self._free_slots() - len(self.rounds)):
            self.last_round += 1
            self.rounds[self.last_round] = False
            arms.append(Arm(self.last_round))
        return arms

    def _end_waiting(self) -> list[Command]:
        """No pull will be armed any more: attempts that waited for one publish their ends now."""
        return [self._publish_end(key, hand) for key, hand in self.hands.items() if hand.stage == "arming"]


def cancelled_failure(item: WorkItem, base: TaskStarted, tokens: int) -> AttemptFailed:
    """The end of an attempt that the router asked to stop: not retryable, its task already has its terminal fact."""
    return failure(item, base, "fenced", retryable=False, tokens=tokens, detail="cancelled by the router")


def failure(
    item: WorkItem, base: TaskStarted, kind: FailureClass, *, retryable: bool, tokens: int, detail: str
) -> AttemptFailed:
    """``attempt.failed`` for ``item`` with the envelope of ``base`` (a fresh id comes from the shell's stamp in ``base``)."""
    return AttemptFailed(
        id=base.id, at=base.at, by=base.by, cause=base.cause, task=item.task, attempt=item.attempt,
        worker=base.worker, boot=base.boot, failure=kind, retryable=retryable, tokens=tokens, detail=detail,
    )  # fmt: skip
