"""How long a snapshot rests: by what it costs, not by how busy the machine is."""

from __future__ import annotations

import os
import time
from typing import cast

import pytest

from services.projector.service import REST, snapshot_and_rest
from services.projector.store import Store


class Machine:
    """Its snapshot takes ``clock_s`` by the clock, ``own_s`` of the process's CPU time and ``copying_s`` of its child's."""

    def __init__(self, clock_s: float, own_s: float, copying_s: float) -> None:
        self.takes, self.clock_s, self.own_s, self.copying_s = (clock_s, own_s, copying_s), 100.0, 3.0, 2.0

    def snapshot(self) -> bool:
        clock_s, own_s, copying_s = self.takes
        self.clock_s += clock_s
        self.own_s += own_s
        self.copying_s += copying_s
        return True


@pytest.mark.parametrize(
    ("clock_s", "own_s", "copying_s", "rest_s"),
    [(4.0, 0.02, 0.03, 4.0), (0.3, 0.05, 0.15, 0.2 * REST), (0.0, 0.0, 0.0, 0.0)],
    ids=["on a busy machine or a slow disk", "of a large file", "of nothing new"],
)
def test_a_snapshot_rests_for_its_cpu_time_and_never_less_than_it_took(
    monkeypatch: pytest.MonkeyPatch, clock_s: float, own_s: float, copying_s: float, rest_s: float
) -> None:
    machine = Machine(clock_s, own_s, copying_s)
    monkeypatch.setattr(time, "monotonic", lambda: machine.clock_s)
    monkeypatch.setattr(time, "process_time", lambda: machine.own_s)
    monkeypatch.setattr(os, "times", lambda: os.times_result((9.0, 9.0, machine.copying_s, 0.0, 9.0)))
    found = snapshot_and_rest(cast(Store, machine))
    assert found == pytest.approx(rest_s)
