"""Heartbeats to minutes: one row per worker, minute and write.

Answers "how loaded was a machine, minute by minute?". Pure. A field that no beat of the minute could read has count 0 and
becomes NULL in the view, never 0. A minute that two writes share is two rows, which the view adds up: counts and sums.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from schemas.codec import decode
from schemas.errors import InvalidEvent
from schemas.events import WorkerLoad
from schemas.samples import UNIT
from services.projector.tables import HEARTBEATS, short
from services.runtime.stored import StoredMessage

MINUTE_US = 60_000_000


class HeartbeatRow(msgspec.Struct, kw_only=True, rename=short(HEARTBEATS)):
    """A row of ``heartbeats``: ``_u`` are sums of millionths, ``_n`` say of how many beats."""

    minute_us: int
    worker: str
    beats: int = 0
    cpu_n: int = 0
    cpu_u: int = 0
    cpu_u_max: int | None = None
    pressure_n: int = 0
    pressure_u: int = 0
    others_n: int = 0
    others_u: int = 0
    others_u_max: int | None = None
    gpu_n: int = 0
    gpu_u: int = 0
    gpu_u_max: int | None = None
    vram_used_bytes_max: int | None = None
    ram_available_bytes_min: int | None = None
    running_n: int = 0
    running: int = 0
    running_max: int | None = None
    backend_n: int = 0
    backend_down: int = 0


def minutes(messages: Iterable[StoredMessage]) -> list[HeartbeatRow]:
    """The messages as rows; what is not a heartbeat is passed over (HEARTBEATS expires: it is no log of facts)."""
    rows: dict[tuple[int, str], HeartbeatRow] = {}
    for message in messages:
        try:
            beat = decode(message.data)
        except InvalidEvent:
            continue
        if not isinstance(beat, WorkerLoad):
            continue
        minute_us = message.at_us - message.at_us % MINUTE_US
        row = rows.get((minute_us, beat.worker))
        if row is None:
            row = rows[minute_us, beat.worker] = HeartbeatRow(minute_us=minute_us, worker=beat.worker)
        _add(row, beat)
    return list(rows.values())


def _add(row: HeartbeatRow, beat: WorkerLoad) -> None:
    row.beats += 1
    if (cpu := _millionths(beat.cpu_use)) is not None:
        row.cpu_n, row.cpu_u, row.cpu_u_max = row.cpu_n + 1, row.cpu_u + cpu, _most(row.cpu_u_max, cpu)
    if (pressure := _millionths(beat.cpu_pressure)) is not None:
        row.pressure_n, row.pressure_u = row.pressure_n + 1, row.pressure_u + pressure
    if (others := _millionths(beat.others_use)) is not None:
        row.others_n, row.others_u = row.others_n + 1, row.others_u + others
        row.others_u_max = _most(row.others_u_max, others)
    for gpu in beat.gpus or ():
        if (use := _millionths(gpu.use)) is not None:
            row.gpu_n, row.gpu_u, row.gpu_u_max = row.gpu_n + 1, row.gpu_u + use, _most(row.gpu_u_max, use)
        if gpu.vram_used_bytes is not None:
            row.vram_used_bytes_max = _most(row.vram_used_bytes_max, gpu.vram_used_bytes)
    if (free := beat.ram_available_bytes) is not None:
        row.ram_available_bytes_min = (
            free if row.ram_available_bytes_min is None else min(row.ram_available_bytes_min, free)
        )
    if beat.credit is not None:
        running = len(beat.credit.running)
        row.running_n, row.running, row.running_max = (
            row.running_n + 1,
            row.running + running,
            _most(row.running_max, running),
        )
    if beat.backend_up is not None:
        row.backend_n, row.backend_down = row.backend_n + 1, row.backend_down + (not beat.backend_up)


def _most(so_far: int | None, value: int) -> int:
    return value if so_far is None else max(so_far, value)


def _millionths(value: float | None) -> int | None:
    return round(value * UNIT) if value is not None and 0.0 <= value < UNIT else None
