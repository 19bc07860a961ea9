"""Replaying the log rebuilds every number bit for bit: judgements, pairs, thumbs, other files and other speeds included."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings, strategies as st

from schemas import codec
from schemas.events import AnyEvent, AttemptFailed, QualityJudged, TaskCompleted, Times, Tokens
from schemas.statistics import Cell, Statistics, effective, key_of
from services.projector.as_of import AsOf, as_of
from services.projector.store import Store
from services.runtime.stored import StoredMessage
from support.builders import build
from support.folded import everything, expected

MODELS, DOMAINS, WORKERS = ("qwen3", "llama", "gemma"), ("code", "maths"), ("desk", "lap")
TASKS = ("t1", "t2", "never heard of")

some_model, some_domain, some_task = (st.sampled_from(names) for names in (MODELS, DOMAINS, TASKS))
some_worker = st.sampled_from(WORKERS)
unit = st.sampled_from((0.0, 0.25, 0.5, 1.0))


@st.composite
def runs(draw: st.DrawFn) -> list[AnyEvent]:
    """Some executions of one model on one machine, at one speed and of one file: what drift and restarts are made of."""
    fixed = {
        "model": draw(some_model),
        "domain": "code",
        "worker": draw(some_worker),
        "digest": draw(st.sampled_from(("d1", "d1", "d2", None))),
        "quantisation": draw(st.sampled_from(("q4", "q4", "q8", None))),
        "tokens": Tokens(prompt=50, cached=0, output=100),
        "task": draw(some_task),
    }
    seconds = draw(st.sampled_from((1.0, 1.2, 4.0)))
    times = Times(decode_s=seconds, prefill_s=0.5, total_s=seconds + 0.5)
    return [build(TaskCompleted, times=times, **fixed) for _ in range(draw(st.integers(1, 9)))]


@st.composite
def pair(draw: st.DrawFn) -> list[AnyEvent]:
    """Both sides, as the benchmarker says them; now and then a verdict that says nothing."""
    one, other = draw(st.permutations(MODELS))[:2]
    told = draw(st.sampled_from(({}, {"suite": "code", "prompt": "p1"}, {"suite": "code", "prompt": "p2"})))
    value, weight, domain = draw(unit), draw(st.sampled_from((1.0, 1.0, 0.5, 0.0))), draw(some_domain)
    return [
        build(
            QualityJudged,
            model=model,
            peer=peer,
            value=won,
            weight=weight,
            domain=domain,
            worker=draw(st.sampled_from((*WORKERS, None))),
            source="judge",
            judge="phi4",
            digest=draw(st.sampled_from(("d1", "d2", None))),
            pair="p",
            tasks=(draw(some_task),),
            **told,
        )
        for model, peer, won in ((one, other, value), (other, one, 1.0 - value))
    ]


@st.composite
def opinion(draw: st.DrawFn) -> list[AnyEvent]:
    source = draw(st.sampled_from(("thumb", "thumb", "signal", "check")))
    fields: dict[str, Any] = {"client": draw(st.sampled_from(("me", "you")))} if source == "thumb" else {}
    if source == "signal":
        fields["signal"] = draw(st.sampled_from(("empty", "asked_again")))
    if source == "check":
        fields = {"suite": "code", "prompt": draw(st.sampled_from(("p1", "p2", None)))}
    known = {"model": draw(some_model), "domain": draw(some_domain), "worker": draw(some_worker), "value": draw(unit)}
    return [build(QualityJudged, source=source, judge=None, peer=None, tasks=(draw(some_task),), **known, **fields)]


@st.composite
def failure(draw: st.DrawFn) -> list[AnyEvent]:
    return [build(AttemptFailed, failure="stall", model=draw(some_model), domain="code", worker=draw(some_worker))]


@st.composite
def logs(draw: st.DrawFn) -> list[StoredMessage]:
    told = draw(st.lists(runs() | runs() | pair() | opinion() | opinion() | failure(), min_size=1, max_size=25))
    log, seq, at_us = [], 0, 0
    for event in (event for some in told for event in some):
        seq += draw(st.sampled_from((1, 1, 3)))
        at_us += draw(st.sampled_from((1, 1_000_000, 86_400_000_000)))
        log.append(StoredMessage(seq, "ev.test", codec.encode(event), None, at_us))
    return log


@contextmanager
def projection() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory) / "projector").open()
        try:
            yield store
        finally:
            store.close()


def cells_of(store: Store) -> dict[Any, Cell]:
    store.refresh()
    return {key_of(cell): cell for cell in store.cells()}


def file_of(store: Store) -> dict[str, Any]:
    store.refresh()
    store.snapshot()
    return everything(store.files.snapshot)


@given(log=logs(), data=st.data())
@settings(max_examples=8, deadline=None)
def test_a_replay_in_other_batches_is_the_same_to_the_last_bit(log: list[StoredMessage], data: st.DataObject) -> None:
    cuts = data.draw(st.sets(st.integers(0, len(log)), max_size=4))
    with projection() as live, projection() as again:
        for start, end in pairwise(sorted({0, len(log), *cuts})):
            live.apply(log[max(0, start - 2) : end])  # what is delivered twice is passed over
            if data.draw(st.booleans()):
                live.refresh()
        again.apply(log)
        assert cells_of(live) == expected(log)["cells"]
        assert file_of(live) == file_of(again)


@given(log=logs(), data=st.data())
@settings(max_examples=10, deadline=None)
def test_what_travels_and_what_stood_earlier_give_the_same_expectations(
    log: list[StoredMessage], data: st.DataObject
) -> None:
    end = data.draw(st.integers(1, len(log)))
    folded = expected(log[:end])["cells"]
    travelled = [msgspec.json.decode(msgspec.json.encode(cell), type=Cell) for cell in folded.values()]
    assert {key_of(cell): cell for cell in travelled} == folded
    with projection() as store:
        store.apply(log)
        earlier = as_of(store, AsOf(position=log[end - 1].seq))
    assert {key_of(cell): cell for cell in earlier.cells} == folded
    kept, rebuilt = Statistics(data.draw(st.permutations(travelled))), Statistics(earlier.cells)
    assert kept.pools() == rebuilt.pools()
    for model in (*MODELS, "qwen3-coder"):
        known = [effective(s, model, "code", "desk", model_bytes=None, now_us=10**14) for s in (kept, rebuilt)]
        assert known[0] == known[1]
        assert known[0].quality.value is not None and 0.0 <= known[0].quality.value <= 1.0
    assert kept.standings("code") == rebuilt.standings("code")
