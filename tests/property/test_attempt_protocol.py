"""PROTOCOL.md under a seeded simulator that kills, freezes and re-orders everybody at every publish boundary.

The mutations show that the checks can fail: each breaks one rule of the protocol, and the simulator must notice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from schemas.events import TaskCompleted, TaskReleased, TaskStarted
from schemas.subjects import start_id
from schemas.work import Answer, WorkItem
from services.router.dispatch import attempts, engine
from services.router.dispatch.actions import Action, Publish
from services.router.dispatch.heard import HeardClock
from services.router.dispatch.permits import Counts
from services.router.dispatch.state import Attempt, RouterState
from services.router.dispatch.turn import Turn
from services.worker.attempts import Attempts, Command, Key, Run
from simulation.worker import Worker
from simulation.world import Report, run

SEEDS = 1_000
MUTANT_SEEDS = 200


def _violations(first: int, count: int) -> list[Report]:
    return [report for report in (run(seed) for seed in range(first, first + count)) if report.violations]


@pytest.mark.parametrize("first", range(0, SEEDS, 250))
def test_no_task_is_lost_run_twice_or_ended_twice_whatever_dies(first: int) -> None:
    bad = _violations(first, 250)
    assert not bad, f"replay with: python -m simulation --seed {bad[0].seed}; {bad[0].violations[:3]}"


def test_the_histories_contain_every_kind_of_trouble() -> None:
    kinds: set[str] = set()
    for seed in range(120):
        kinds |= set(run(seed).kinds)
    assert {
        "attempt.failed/lost", "attempt.failed/not_started", "attempt.failed/fenced", "attempt.failed/stall",
        "attempt.failed/rejected", "attempt.failed/refused", "task.cancelled", "task.failed", "task.completed",
        "dispatcher.elected", "worker.left",
    } <= kinds  # fmt: skip


def test_a_seed_replays_exactly() -> None:
    assert [run(seed).digest for seed in range(5)] == [run(seed).digest for seed in range(5)]


def _claim_is_ignored(patch: pytest.MonkeyPatch) -> None:
    def claimed(self: Attempts, key: Key, own: bool) -> list[Command]:
        hand = self.hands[key]
        hand.stage, hand.phase = "running", "queued"
        return [Run(key, hand.item)]

    patch.setattr(Attempts, "claimed", claimed)


def _duplicate_alone_decides(patch: pytest.MonkeyPatch) -> None:
    def publish(self: Worker, event: Any, msg_id: str, then: Callable[[bool], None]) -> None:
        server = self.world.server

        def call() -> bool:
            was_there = msg_id in server.ids
            server.publish(event, msg_id)
            return not was_there

        self._ask(call, then)

    patch.setattr(Worker, "_publish", publish)


def _permits_of_an_item_are_ignored(patch: pytest.MonkeyPatch) -> None:
    arrived = Attempts.item_arrived

    def item_arrived(self: Attempts, round: int, item: WorkItem, claim: TaskStarted) -> list[Command]:
        return arrived(self, round, msgspec.structs.replace(item, holders=()), claim)

    patch.setattr(Attempts, "item_arrived", item_arrived)


def _the_answer_is_not_stored_first(patch: pytest.MonkeyPatch) -> None:
    def completed(self: Attempts, key: Key, end: TaskCompleted, answer: Answer) -> list[Command]:
        hand = self.hands[key]
        hand.phase, hand.end = "ending", end
        return self._arm_then_end(key, hand)

    patch.setattr(Attempts, "completed", completed)


def _not_started_has_an_id_of_its_own(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempts, "start_id", lambda task, n: start_id(task, n) + ".late")


def _items_go_before_their_release_counts(patch: pytest.MonkeyPatch) -> None:
    decided = engine._releases

    def releases(turn: Turn, ending: set[str]) -> Iterator[Action]:
        for action in decided(turn, ending):
            yield action
            assert isinstance(action, Publish) and isinstance(action.event, TaskReleased)
            release, task = action.event, turn.state.tasks[action.event.task]
            early = Attempt(
                n=release.attempt, epoch=release.epoch, model=release.model, capability=release.capability,
                lane=release.lane, expected=release.expected_worker, holders=release.holders, permits=release.permits,
                released_seq=0, released_us=0,
            )  # fmt: skip
            yield attempts._put(task, early, turn.epoch)

    patch.setattr(engine, "_releases", releases)


def _older_epochs_may_still_release(patch: pytest.MonkeyPatch) -> None:
    released = RouterState._released

    def any_epoch(self: RouterState, event: TaskReleased, seq: int, at_us: int) -> None:
        released(self, msgspec.structs.replace(event, epoch=self.epoch), seq, at_us)

    patch.setattr(RouterState, "_released", any_epoch)


def _what_the_log_does_not_know_yet_is_cancelled(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempts, "STRANGE_S", -1.0)


def _silence_is_measured_on_the_routers_own_clock(patch: pytest.MonkeyPatch) -> None:
    def beat(self: HeardClock, monotonic: float) -> float:
        self.seconds = monotonic
        return monotonic

    patch.setattr(HeardClock, "beat", beat)


def _permits_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Counts, "lacking", lambda self, permits: None)


def _leases_never_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempts, "_leased", lambda *args: iter(()))


def _terminal_facts_have_ids_of_their_own(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(engine, "end_id", lambda task: f"{task}.router-end")


MUTATIONS = [
    _claim_is_ignored,
    _duplicate_alone_decides,
    _permits_of_an_item_are_ignored,
    _the_answer_is_not_stored_first,
    _not_started_has_an_id_of_its_own,
    _items_go_before_their_release_counts,
    _older_epochs_may_still_release,
    _what_the_log_does_not_know_yet_is_cancelled,
    _silence_is_measured_on_the_routers_own_clock,
    _permits_are_not_counted,
    _leases_never_end,
    _terminal_facts_have_ids_of_their_own,
]


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda m: m.__name__.strip("_"))
def test_breaking_a_rule_of_the_protocol_is_noticed(
    mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    assert any(run(seed).violations for seed in range(MUTANT_SEEDS)), "the simulator did not notice"
