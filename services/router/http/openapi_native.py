"""How do answers of Headrace's own paths look, and errors everywhere? Their shapes, for ``/openapi.json`` alone.

No answer is made of these. Only what every answer has is required; ``tests/fuzz`` holds the answers to them.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from schemas.bias import Judge
from schemas.events import Domain, TaskRouted
from schemas.work import Answer
from services.router.http.fleet_rows import ModelRow, WorkerRow
from services.router.http.preview_rows import Decided, Preview
from services.router.http.stats_maps import HeatMap
from services.router.http.stats_rows import StatsRow
from services.router.policy.routes import Route
from services.router.port import TaskStatus

Json = dict[str, Any]
Sometimes = msgspec.UnsetType


class Shape(msgspec.Struct, kw_only=True):
    """Fields may be added to it."""


class Accepted(Shape, kw_only=True):
    task: str
    domain: Domain
    language: str | None
    decision: Decided | None
    warning: str | None = None


class TaskEnd(Shape, kw_only=True):
    status: TaskStatus
    worker_name: str | None
    answer: Answer | None


class Cancelled(Shape, kw_only=True):
    task: str
    cancelled: bool
    state: str


class PreviewBeside(Preview, frozen=True, kw_only=True):
    versus: Json | Sometimes = msgspec.UNSET


class Explanation(Shape, kw_only=True):
    status: TaskStatus
    decision: TaskRouted | None
    events: list[Json]
    words: list[str]
    story: list[str]
    verification: list[Json] | Sometimes = msgspec.UNSET
    versus: Json | Sometimes = msgspec.UNSET


class Workers(Shape, kw_only=True):
    workers: list[WorkerRow]


class OneWorker(Shape, kw_only=True):
    worker: WorkerRow


class Models(Shape, kw_only=True):
    models: list[ModelRow]
    virtual: list[str]


class VirtualModels(Shape, kw_only=True):
    virtual: list[str]
    routes: list[Route]
    path: str | None
    problem: str | None
    warnings: list[str]


class QueueShown(Shape, kw_only=True):
    waiting: int
    released: int
    running: int
    since_start: dict[str, int]
    tasks: list[TaskStatus]


class Alive(Shape, kw_only=True):
    ok: bool


class Stats(Shape, kw_only=True):
    position: int
    total: int
    next_offset: int | None
    rows: list[StatsRow]


class StatsMaps(Shape, kw_only=True):
    position: int
    maps: list[HeatMap]


class Judges(Shape, kw_only=True):
    position: int
    judges: list[Judge]


class BenchOwed(Shape, kw_only=True):
    on: bool
    total: int = 0
    owed: list[Json] = []
    left_s: dict[str, float] = {}


class RatingStored(Shape, kw_only=True):
    task: str
    stored: list[Json]
    again: bool
    supersedes: str | None
    withdrawn: list[str] = []


class ComparisonShown(Shape, kw_only=True):
    compare: str
    state: Literal["running", "ended"]
    domain: str | None
    entries: list[Json]
    judged: list[Json]


class Fault(Shape, kw_only=True):
    code: str
    message: str
    field: str | None
    nearest: list[str]
    retry_after_s: float | None


class HeadraceError(Shape, kw_only=True):
    error: Fault


class OpenaiFault(Shape, kw_only=True):
    message: str
    type: str
    param: str | None
    code: str


class OpenaiError(Shape, kw_only=True):
    error: OpenaiFault


class AnthropicFault(Shape, kw_only=True):
    type: str
    message: str


class AnthropicError(Shape, kw_only=True):
    type: Literal["error"]
    error: AnthropicFault


class OllamaError(Shape, kw_only=True):
    error: str
