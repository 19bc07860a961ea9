"""``python -m support.told_load``: the worker's own process, on a machine whose sensors read what the test says.

``OTHERS_USE`` names a file with the share of the machine that somebody else uses; an empty one is a machine that can read nothing
of itself. ``TOLD_HOST`` is what its host is called, where a fleet on one machine is to be one of several.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from services.worker.telemetry import sample

TOLD = Path(os.environ["OTHERS_USE"])


def read(telemetry: sample.Telemetry, now: float) -> sample.Load:
    said = TOLD.read_text()
    if not said:
        return sample.Load(unreadable=dict.fromkeys((*sample.FIELDS, "gpus", "others_use"), sample.NO_AGENT))
    telemetry.others.use, telemetry.others.measured_at = float(said), now
    return sample.Load(cpu_use=float(said), cpu_count=4.0, cpu_pressure=0.0, others_use=float(said), others_age_s=0.0)


if __name__ == "__main__":
    sample.Telemetry.read = read  # type: ignore[method-assign,assignment]
    if "TOLD_HOST" in os.environ:
        socket.gethostname = lambda: os.environ["TOLD_HOST"]
    from services.worker.__main__ import main

    sys.exit(main())
