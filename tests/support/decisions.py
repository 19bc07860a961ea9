"""Decisions to examine: the router's own about random fleets, and those that ``support.history`` tells."""

from __future__ import annotations

import random
from collections import defaultdict

import msgspec

from schemas import codec, events
from schemas.events import TaskRouted, TaskSubmitted
from schemas.statistics import CellKey, Sample, Statistics, fold, key_of, sample_of
from services.router.fleet import Fleet, WorkerView
from services.router.policy.decide import decide
from services.router.policy.request import request_of
from support.builders import MODEL
from support.history import Entry, history
from support.machines import DESK, LAPTOP, MODELS

Decision = tuple[TaskSubmitted, TaskRouted]


def told_decision(seed: int) -> Decision:
    log = [entry.event for entry in history(seed, 20)]
    routed = random.Random(seed).choice([event for event in log if isinstance(event, TaskRouted)])
    return next(event for event in log if isinstance(event, TaskSubmitted) and event.task == routed.task), routed


def real_decision(seed: int) -> Decision:
    """What the router says of a random task, after a log, about a fleet that reports only parts of itself."""
    rng = random.Random(seed)
    log = list(history(seed, 40))
    submitted = rng.choice([entry.event for entry in log if isinstance(entry.event, TaskSubmitted)])
    decision = decide(
        request_of(submitted),
        _fleet(rng),
        _statistics(log),
        seed=rng.randrange(1_000),
        now_us=log[-1].at_us,
        slider=rng.choice((0.0, 0.1, 1.0)),
    )
    stored = codec.decode(codec.encode(decision.routed(submitted.task, id="d1", at=1.0, by="router-1", epoch=1)))
    assert isinstance(stored, TaskRouted)
    assert len(stored.candidates) >= 5
    return submitted, stored


def _fleet(rng: random.Random) -> Fleet:
    """Two machines that the log measured, and three that nobody knows."""
    models = {model.name: msgspec.structs.replace(MODEL, name=model.name) for model in MODELS}
    views = [
        WorkerView(
            id=name,
            name=name,
            boot="b",
            models=models,
            wait_s=rng.choice((None, 0.0, 1.25)),
            resident=rng.choice((None, frozenset(), frozenset(models))),
            others_use=rng.choice((None, 0.0, 0.3, 0.9)),
            fresh=rng.random() < 0.8,
        )
        for name in (DESK.worker, LAPTOP.worker, "w-new-1", "w-new-2", "w-new-3")
    ]
    return Fleet(workers={view.id: view for view in views})


def _statistics(log: list[Entry]) -> Statistics:
    samples: defaultdict[CellKey, list[Sample]] = defaultdict(list)
    for seq, at_us, event in log:
        assert isinstance(event, events.AnyEvent)
        if sample := sample_of(event, seq, at_us):
            samples[key_of(sample)].append(sample)
    return Statistics(fold(members) for members in samples.values())
