"""Samples and cells for tests, by what matters to them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from schemas.statistics import Cell, Sample, fold

DAY_US = 86_400_000_000
GB = 1_000_000_000


def speed(seq: int, **fields: Any) -> Sample:
    """One completed execution: 100 tokens at 50 tokens/s on the desk, a second after the last."""
    given = {
        "at_us": seq * 1_000_000,
        "kind": "speed",
        "model": "qwen3",
        "domain": "code",
        "worker": "desk",
        "model_bytes": 5 * GB,
        "digest": "d1",
        "task_kind": "chat",
        "ok": True,
        "resident": True,
        "prefill_tok": 200,
        "prefill_us": 200_000,
        "decode_tok": 100,
        "decode_us": 2_000_000,
        "output_tok": 100,
        "total_us": 2_200_000,
    }
    return Sample(seq=seq, **{**given, **fields})


def judged(seq: int, value: float, **fields: Any) -> Sample:
    given = {
        "at_us": seq * 1_000_000,
        "kind": "quality",
        "model": "qwen3",
        "domain": "code",
        "worker": "desk",
        "quality_u": round(value * 1e6),
        "quality_w_u": 1_000_000,
    }
    return Sample(seq=seq, **{**given, **fields})


def cell(*samples: Sample) -> Cell:
    return fold(samples)


def _some(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


_times = _some(st.integers(0, 10**12) | st.integers(1, 5_000_000))
_tokens = _some(st.integers(0, 2**30) | st.integers(1, 500))


@st.composite
def sample(draw: st.DrawFn, seq: int) -> Sample:
    """Any sample, extremes and holes included, of a few cells."""
    kind = draw(st.sampled_from(("speed", "speed", "quality", "failure")))
    shared = {
        "seq": seq,
        "at_us": draw(st.integers(0, 400 * DAY_US)),
        "kind": kind,
        "model": draw(st.sampled_from(("qwen3", "llama"))),
        "domain": draw(st.sampled_from(("code", "maths"))),
        "worker": draw(st.sampled_from(("desk", "lap", None) if kind == "quality" else ("desk", "lap"))),
        "digest": draw(st.sampled_from(("d1", "d1", "d2", None))),
        "quantisation": draw(st.sampled_from(("q4", "q4", "q4", "q8", None))),
        "task": draw(st.sampled_from(("t1", "t2", None))),
    }
    if kind == "quality":
        return Sample(
            **shared,
            quality_u=draw(st.integers(0, 10**6)),
            quality_w_u=draw(st.just(0) | st.integers(0, 10**6)),
            source=draw(st.sampled_from(("judge", "judge", "check", "thumb", "thumb", "signal", None))),
            judge=draw(st.sampled_from(("me", "you", None))),
            peer=draw(st.sampled_from((None, "gemma", "qwen3", "llama"))),
            topic=draw(st.sampled_from((None, None, "code/p1", "code/p2"))),
        )
    if kind == "failure":
        return Sample(**shared, ok=False)
    return Sample(
        **shared,
        model_bytes=draw(_some(st.integers(1, 2**50))),
        task_kind=draw(st.sampled_from(("chat", "bench"))),
        resident=draw(_some(st.booleans())),
        concurrency=draw(st.sampled_from((None, 0, 1, 1, 2, 8))),
        others_u=draw(_some(st.integers(0, 10**6))),
        ok=draw(st.booleans()),
        queue_us=draw(_times),
        load_us=draw(_times),
        prefill_tok=draw(_tokens),
        prefill_us=draw(_times),
        decode_tok=draw(_tokens),
        decode_us=draw(_times),
        output_tok=draw(_tokens),
        first_token_us=draw(_times),
        total_us=draw(_times),
    )


@st.composite
def sample_log(draw: st.DrawFn, max_size: int = 60) -> list[Sample]:
    """Samples in stream order, with the holes that other events leave."""
    gaps = draw(st.lists(st.integers(1, 3), min_size=1, max_size=max_size))
    seq, log = 0, []
    for gap in gaps:
        seq += gap
        log.append(draw(sample(seq)))
    return log


@st.composite
def changing_log(draw: st.DrawFn, max_size: int = 80) -> list[Sample]:
    """One cell whose machine changes speed now and then: what the detection of drift is about."""
    log: list[Sample] = []
    while len(log) < max_size:
        us = draw(st.sampled_from((1_000_000, 1_500_000, 2_000_000, 6_000_000)))
        for _ in range(draw(st.integers(1, 25))):
            noise = draw(st.integers(0, us // 10))
            digest = draw(st.sampled_from(("d1",) * 30 + ("d2",)))
            streams = draw(st.sampled_from((None, 1, 1, 1, 2)))
            log.append(speed(len(log) + 1, decode_us=us + noise, digest=digest, concurrency=streams))
    return log


@st.composite
def judged_log(draw: st.DrawFn, max_size: int = 40) -> list[Sample]:
    """One cell that is judged by everybody, some of it twice, while its file changes now and then: what counts, and how much?"""
    log: list[Sample] = []
    digest, quantisation, at_us = "d1", "q4", 0
    for seq in range(1, draw(st.integers(2, max_size)) + 1):
        at_us += draw(st.sampled_from((1_000_000, DAY_US, 9 * DAY_US)))
        if draw(st.integers(0, 9)) == 0:
            digest, quantisation = draw(st.sampled_from(("d1", "d2"))), draw(st.sampled_from(("q4", "q8")))
            log.append(speed(seq, at_us=at_us, digest=digest, quantisation=quantisation))
            continue
        told = {
            "at_us": at_us,
            "digest": draw(st.sampled_from((digest, digest, "d1", None))),
            "quantisation": draw(st.sampled_from((quantisation, None))),
            "task": draw(st.sampled_from(("t1", "t2", None))),
            "source": draw(st.sampled_from(("judge", "check", "thumb", "thumb", "signal"))),
            "judge": draw(st.sampled_from(("me", "you"))),
            "peer": draw(st.sampled_from((None, None, "gemma", "llama"))),
            "topic": draw(st.sampled_from((None, "code/p1", "code/p2"))),
            "quality_w_u": draw(st.sampled_from((0, 300_000, 1_000_000))),
        }
        log.append(judged(seq, draw(st.sampled_from((0.0, 0.5, 1.0))), **told))
    return log
