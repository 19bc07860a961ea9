"""PROTOCOL.md under a seeded simulator that kills, freezes and re-orders everybody at every publish boundary.

The mutations show that the checks can fail: each breaks one rule of the protocol, and the simulator must notice.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import services.router.dispatch.engine as engine
from schemas.subjects import start_id
from services.router.dispatch.permits import Counts
from services.worker.attempts import Attempts, Command, Key, Run
from simulation.world import Report, run

SEEDS = 1_000


def _violations(first: int, count: int) -> list[Report]:
    return [report for report in (run(seed) for seed in range(first, first + count)) if report.violations]


@pytest.mark.parametrize("first", range(0, SEEDS, 250))
def test_no_task_is_lost_run_twice_or_ended_twice_whatever_dies(first: int) -> None:
    bad = _violations(first, 250)
    assert not bad, f"replay with: python -m simulation --seed {bad[0].seed}; {bad[0].violations[:3]}"


def test_the_histories_contain_every_kind_of_trouble() -> None:
    kinds: set[str] = set()
    for seed in range(300):
        kinds |= set(run(seed).kinds)
    assert {
        "attempt.failed/lost", "attempt.failed/not_started", "attempt.failed/fenced", "attempt.failed/stall",
        "attempt.failed/rejected", "task.cancelled", "task.failed", "task.completed", "dispatcher.elected",
    } <= kinds  # fmt: skip


def test_a_seed_replays_exactly() -> None:
    assert [run(seed).digest for seed in range(5)] == [run(seed).digest for seed in range(5)]


def _claim_is_ignored(patch: pytest.MonkeyPatch) -> None:
    def claimed(self: Attempts, key: Key, own: bool) -> list[Command]:
        hand = self.hands[key]
        hand.stage, hand.phase = "running", "queued"
        return [Run(key, hand.item)]

    patch.setattr(Attempts, "claimed", claimed)


def _not_started_has_an_id_of_its_own(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(engine, "start_id", lambda task, n: start_id(task, n) + ".late")


def _permits_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Counts, "lacking", lambda self, permits: None)


def _leases_never_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(engine, "_leased", lambda *args: iter(()))


def _terminal_facts_have_ids_of_their_own(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(engine, "end_id", lambda task: f"{task}.router-end")


MUTATIONS = [
    _claim_is_ignored,
    _not_started_has_an_id_of_its_own,
    _permits_are_not_counted,
    _leases_never_end,
    _terminal_facts_have_ids_of_their_own,
]


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda m: m.__name__.strip("_"))
def test_breaking_a_rule_of_the_protocol_is_noticed(
    mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    assert any(run(seed).violations for seed in range(120)), "the simulator did not notice"
