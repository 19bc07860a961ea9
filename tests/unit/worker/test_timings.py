from __future__ import annotations

import pytest

from schemas.events import Times
from services.worker.backends.port import BackendTimings
from services.worker.timings import Seen, times_of

SEEN = Seen(sent=10.0, first_token=11.0, last_token=13.0, ended=13.5)
SILENT = BackendTimings()


def test_the_backends_own_figures_stand_first() -> None:
    own = BackendTimings(queue_us=100_000, load_us=200_000, prefill_us=300_000, decode_us=1_900_000)
    assert times_of(own, SEEN, was_resident=True) == Times(
        queue_s=0.1, load_s=0.2, prefill_s=0.3, decode_s=1.9, first_token_s=1.0, total_s=3.5, source="backend"
    )


def test_a_silent_backend_is_measured_by_the_workers_clock() -> None:
    assert times_of(SILENT, SEEN, was_resident=True) == Times(
        prefill_s=1.0, decode_s=2.0, first_token_s=1.0, total_s=3.5, source="worker"
    )


@pytest.mark.parametrize("was_resident", [False, None])
def test_case_28_a_wait_that_may_hide_a_load_is_no_prefill(was_resident: bool | None) -> None:
    times = times_of(SILENT, SEEN, was_resident=was_resident)
    assert (times.prefill_s, times.load_s, times.decode_s) == (None, None, 2.0)


def test_case_28_a_reported_load_is_taken_out_of_the_wait() -> None:
    times = times_of(BackendTimings(load_us=700_000, queue_us=100_000), SEEN, was_resident=False)
    assert (times.load_s, times.prefill_s) == (0.7, pytest.approx(0.2))


def test_the_wait_before_the_first_progress_of_the_prompt_is_the_queue() -> None:
    seen = Seen(sent=10.0, taken=10.4, first_token=11.0, last_token=13.0, ended=13.0)
    times = times_of(SILENT, seen, was_resident=True)
    assert (times.queue_s, times.prefill_s) == (0.4, 0.6)


def test_one_token_has_no_decode_rate() -> None:
    times = times_of(SILENT, Seen(sent=0.0, first_token=1.0, last_token=1.0, ended=1.0), was_resident=None)
    assert (times.decode_s, times.source) == (None, None)


def test_what_nobody_measured_stays_none() -> None:
    assert times_of(SILENT, Seen(sent=0.0, ended=2.0), was_resident=None) == Times(total_s=2.0)
