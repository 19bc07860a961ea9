"""``python -m support.off_clock``: the worker's own process, on a machine whose clock is wrong by ``CLOCK_OFF_S`` seconds."""

from __future__ import annotations

import os
import sys
import time

OFF_S = float(os.environ["CLOCK_OFF_S"])
_true_time, _true_time_ns = time.time, time.time_ns


def wrong_time() -> float:
    return _true_time() + OFF_S


def wrong_time_ns() -> int:
    return _true_time_ns() + int(OFF_S * 1e9)


if __name__ == "__main__":
    time.time, time.time_ns = wrong_time, wrong_time_ns
    from services.worker.__main__ import main

    sys.exit(main())
