from __future__ import annotations

import msgspec
import pytest

from services.router.fleet import Fleet, WorkerView
from services.router.http.fleet_rows import WorkerRow, model_rows, worker_rows, worker_state
from support.router_port import DESKTOP, LAPTOP


def fleet(*workers: WorkerView) -> Fleet:
    return Fleet(workers={worker.id: worker for worker in workers})


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "ready"),
        ({"fresh": False}, "stale"),
        ({"draining": True, "fresh": False}, "draining"),
        ({"alive": False, "draining": True}, "silent"),
        ({"backend_up": False, "draining": True}, "backend down"),
        ({"backend_up": False, "alive": False}, "silent"),
    ],
)
def test_a_worker_has_one_state(changes: dict[str, bool], state: str) -> None:
    assert worker_state(msgspec.structs.replace(DESKTOP, **changes)) == state


@pytest.mark.parametrize("worker", [DESKTOP, LAPTOP, WorkerView(id="w", name="bare", boot="b")])
def test_every_null_and_nothing_else_has_a_reason(worker: WorkerView) -> None:
    (row,) = worker_rows(fleet(worker))
    nulls = {name for name in WorkerRow.__struct_fields__ if getattr(row, name) is None}
    assert set(row.unknown) == nulls
    assert all(row.unknown.values())


def test_a_worker_whose_backend_is_down_says_why() -> None:
    down = msgspec.structs.replace(DESKTOP, backend_up=False, backend_reason="connection refused", wait_s=None)
    (row,) = worker_rows(fleet(down))
    assert (row.state, row.wait_s, row.unknown["wait_s"]) == ("backend down", None, "backend down: connection refused")


def test_workers_are_sorted_by_name() -> None:
    first = msgspec.structs.replace(DESKTOP, id="z", name="attic")
    assert [row.name for row in worker_rows(fleet(LAPTOP, DESKTOP, first))] == ["attic", "desktop", "laptop"]


def test_unequal_digests_are_shown_and_unknown_ones_are_unknown() -> None:
    def held(digest: str | None) -> WorkerView:
        info = msgspec.structs.replace(DESKTOP.models["qwen3"], digest=digest, context=1000)
        return msgspec.structs.replace(LAPTOP, models={"qwen3": info})

    assert [model_rows(fleet(DESKTOP, held(digest)))[0].one_digest for digest in ("sha256:9f", "sha256:00", None)] == [
        True,
        False,
        None,
    ]
    assert model_rows(fleet(DESKTOP, held(None)))[0].context == 40960


def test_residency_is_the_machine_s_own_word_where_it_gives_one() -> None:
    qwen, smol = model_rows(fleet(DESKTOP))
    assert (qwen.holders[0].resident, smol.holders[0].resident) == (True, False)
    assert model_rows(fleet(LAPTOP))[0].holders[0].resident is None
