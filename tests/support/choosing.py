"""Decisions as the router stores them, in one call, for stories about choices."""

from __future__ import annotations

from collections.abc import Iterable

from schemas import codec
from schemas.cells import Cell
from schemas.events import Candidate, TaskRouted, Wants
from services.router.fleet import WorkerView
from services.router.policy.decide import decide
from services.router.policy.request import RouteRequest
from support.fleets import NOW_US, fleet, measured


def route(
    workers: Iterable[WorkerView],
    cells: Iterable[Cell],
    *,
    domain: str = "code",
    wants: Wants | None = None,
    slider: float = 1.0,
    seed: int = 0,
    prompt_tokens: int = 200,
) -> TaskRouted:
    """The ``task.routed`` of one task, through the codec and back."""
    asks = RouteRequest(domain=domain, prompt_tokens=prompt_tokens, wants=wants or Wants())
    decision = decide(asks, fleet(*workers), measured(cells), seed=seed, now_us=NOW_US, slider=slider)
    stored = codec.decode(codec.encode(decision.routed("task-1", id="ev-1", at=0.0, by="router-1", epoch=1)))
    assert isinstance(stored, TaskRouted)
    return stored


def winner(routed: TaskRouted) -> tuple[str, str | None]:
    assert routed.choice is not None
    return routed.choice.model, routed.choice.worker


def candidate(routed: TaskRouted, model: str, worker: str) -> Candidate:
    return next(c for c in routed.candidates if (c.model, c.worker) == (model, worker))
