"""What a finest cell (model, domain, worker) adds up to: integer sums that are the same on any machine.

Answers "what do these samples say together?". ``fold`` is a pure function of a set of samples: their order of arrival, the
batches they came in and the machine that adds them change nothing. The projector computes the same cells in SQL
(``services.projector.tables``); the tests hold the two equal, bit for bit. Never floats, never the present time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec

from schemas.evidence import (
    DRIFT_TOKENS_LEAST,
    Restart,
    Weighed,
    divide,
    free_us,
    lane,
    restart_of,
    weighed,
)
from schemas.samples import UNIT, Sample
from schemas.weights import weight

SOURCES = ("judge", "check", "thumb", "signal")

BUSY_LEAST_U = 50_000
"""Others' use below a twentieth is the noise of a desktop at rest."""


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """One quantity: ``n`` samples since the restart, Σ weight, Σ weight · value; quantiles of those ``n`` that still weigh."""

    n: int = 0
    w: int = 0
    wx: int = 0
    p50: int | None = None
    p95: int | None = None


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """One speed: Σ weight · tokens over Σ weight · microseconds is tokens per microsecond, as measured.

    ``wfree_us`` is the time without others' use, if all of it came off the speed; ``wtok_more`` Σ weight · tokens · further
    streams; ``w_told`` Σ weight of those whose machine said how much others used it. Quantiles are thousandths of tokens/s.
    """

    n: int = 0
    w: int = 0
    wtok: int = 0
    wus: int = 0
    wfree_us: int = 0
    wtok_more: int = 0
    w_told: int = 0
    p50: int | None = None
    p95: int | None = None


class Group(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Decode samples of one circumstance, to be held against those of another (ROUTING.md, B3.4).

    ``wx`` is Σ weight · tokens · further streams where several ran, Σ weight · microseconds taken by others beside those.
    """

    n: int = 0
    w: int = 0
    wtok: int = 0
    wus: int = 0
    wx: int = 0


class Tally(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Judged comparisons with one other model: ``n`` since the restart and Σ of what was won in them (millionths, a tie half);
    Σ weight and Σ weight · value, with what is left of those before."""

    peer: str
    n: int = 0
    x: int = 0
    w: int = 0
    wx: int = 0


class Sources(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many judgements came from where, comparisons included; ``void`` are judges' verdicts that could not be read."""

    judge: int = 0
    check: int = 0
    thumb: int = 0
    signal: int = 0
    void: int = 0


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """The statistics of one (model, domain, worker); ``worker`` None where only the model was judged. Sums, not averages.

    Counts and quantiles are since the restart; weighted sums hold what was before as a prior (``schemas.evidence``).
    ``quality`` is of answers judged by themselves, ``pairs`` (by the peer's name) of those held against another model's.
    ``alone`` ran as one stream, ``shared`` as several, both beside nobody that is known of; ``busy`` as one beside others.
    """

    model: str
    domain: str
    worker: str | None = None
    digest: str | None = None
    quantisation: str | None = None
    model_bytes: int | None = None
    queue: Sums = Sums()
    load: Sums = Sums()
    first_token: Sums = Sums()
    total: Sums = Sums()
    output: Sums = Sums()
    prefill: Rates = Rates()
    decode: Rates = Rates()
    alone: Group = Group()
    shared: Group = Group()
    busy: Group = Group()
    quality: Sums = Sums()
    pairs: tuple[Tally, ...] = ()
    sources: Sources = Sources()
    restarted: Restart | None = None
    ok_n: int = 0
    fail_n: int = 0
    last_seq: int = 0
    speed_at_us: int | None = None
    quality_at_us: int | None = None


CellKey = tuple[str, str, str | None]


def key_of(cell: Cell | Sample) -> CellKey:
    return cell.model, cell.domain, cell.worker


def fold(samples: Iterable[Sample]) -> Cell:
    """The cell of ``samples``, all of one key and at least one, in any order. A sample that comes twice counts once."""
    ordered = sorted({sample.seq: sample for sample in samples}.values(), key=lambda sample: sample.seq)
    state = divide(ordered)
    speed, quality = weighed(state, "speed"), weighed(state, "quality")
    model, domain, worker = key_of(ordered[-1])
    return Cell(
        model=model,
        domain=domain,
        worker=worker,
        digest=state.digest,
        quantisation=state.quantisation,
        model_bytes=next((s.model_bytes for s, _, now in reversed(speed) if now and s.model_bytes is not None), None),
        queue=_sums(speed, lambda s: s.queue_us),
        load=_sums(speed, lambda s: s.load_us if s.resident is False else None),
        first_token=_sums(speed, lambda s: s.first_token_us),
        total=_sums(speed, lambda s: s.total_us),
        output=_sums(speed, lambda s: s.output_tok if s.task_kind != "bench" else None),
        prefill=_rates(speed, lambda s: (s.prefill_tok, s.prefill_us)),
        decode=_rates(speed, lambda s: (s.decode_tok, s.decode_us), more_streams),
        alone=_group(speed, "alone"),
        shared=_group(speed, "shared"),
        busy=_group(speed, "busy"),
        quality=_judgements(quality),
        pairs=_tallies(quality),
        sources=_sources(state.now),
        restarted=restart_of(state),
        ok_n=sum(s.ok is True for s in state.now),
        fail_n=sum(s.ok is False for s in state.now),
        last_seq=ordered[-1].seq,
        speed_at_us=max((s.at_us for s, _, now in speed if now), default=None),
        quality_at_us=max((s.at_us for s, _, now in quality if now), default=None),
    )


def _sums(weighed: Sequence[Weighed], value: Callable[[Sample], int | None]) -> Sums:
    values = [(x, w, now) for s, w, now in weighed if (x := value(s)) is not None]
    live = [x for x, w, now in values if now and w > 0]
    return Sums(
        n=sum(now for *_, now in values),
        w=sum(w for _, w, _ in values),
        wx=sum(w * x for x, w, _ in values),
        p50=quantile(live, 50),
        p95=quantile(live, 95),
    )


def _rates(
    weighed: Sequence[Weighed],
    halves: Callable[[Sample], tuple[int | None, int | None]],
    more: Callable[[Sample], int] = lambda _: 0,
) -> Rates:
    values = [
        (tok, us, free_us(us, s.others_u), tok * more(s), s.others_u is not None, now, w)
        for s, w, now in weighed
        for tok, us in (halves(s),)
        if tok is not None and us is not None and us > 0
    ]
    live = [tok * 1000 * UNIT // us for tok, us, *_, now, w in values if now and w > 0]
    return Rates(
        n=sum(now for *_, now, _ in values),
        w=sum(w for *_, w in values),
        wtok=sum(w * tok for tok, *_, w in values),
        wus=sum(w * us for _, us, *_, w in values),
        wfree_us=sum(w * free for _, _, free, *_, w in values),
        wtok_more=sum(w * more_tok for *_, more_tok, _, _, w in values),
        w_told=sum(w for *_, told, _, w in values if told),
        p50=quantile(live, 50),
        p95=quantile(live, 95),
    )


def _group(weighed: Sequence[Weighed], name: str) -> Group:
    """Of the present state, weighed by the younger ones of the group alone: a machine that is always full must not forget how
    fast it is alone."""
    latest = max((s.at_us for s, *_ in weighed), default=0)
    mine = [s for s, _, now in weighed if now and _circumstance(s) == name]
    values = [
        (s.decode_tok or 0, s.decode_us or 0, _excess(s, name), weight(len(mine) - 1 - index, latest - s.at_us))
        for index, s in enumerate(mine)
    ]
    return Group(
        n=len(values),
        w=sum(w for *_, w in values),
        wtok=sum(w * tok for tok, *_, w in values),
        wus=sum(w * us for _, us, _, w in values),
        wx=sum(w * x for *_, x, w in values),
    )


def _circumstance(sample: Sample) -> str | None:
    """Which group it belongs to. Several streams beside others prove neither, nor do answers of a few tokens."""
    if not sample.decode_us or sample.decode_tok is None or sample.decode_tok < DRIFT_TOKENS_LEAST:
        return None
    if (sample.others_u or 0) < BUSY_LEAST_U:
        return "shared" if more_streams(sample) else "alone"
    return None if more_streams(sample) else "busy"


def _excess(sample: Sample, name: str) -> int:
    tok, us = sample.decode_tok or 0, sample.decode_us or 0
    return {"shared": tok * more_streams(sample), "busy": us - free_us(us, sample.others_u)}.get(name, 0)


def _judgements(weighed: Sequence[Weighed]) -> Sums:
    """Those that judge an answer by itself; comparisons are on no common scale, and stand in ``pairs``."""
    values = [(s.quality_u or 0, w, w * (s.quality_w_u or 0), now) for s, w, now in weighed if s.peer is None]
    live = [x for x, w, _, now in values if now and w > 0]
    return Sums(
        n=sum(now for *_, now in values),
        w=sum(ww for *_, ww, _ in values),
        wx=sum(ww * x for x, _, ww, _ in values),
        p50=quantile(live, 50),
        p95=quantile(live, 95),
    )


def _tallies(weighed: Sequence[Weighed]) -> tuple[Tally, ...]:
    sums: dict[str, list[int]] = {}
    for s, w, now in weighed:
        if s.peer is not None:
            value, ww = s.quality_u or 0, w * (s.quality_w_u or 0)
            sums[s.peer] = [
                a + b for a, b in zip(sums.get(s.peer, (0,) * 4), (now, now * value, ww, ww * value), strict=True)
            ]
    tallies = (Tally(peer=peer, n=n, x=x, w=w, wx=wx) for peer, (n, x, w, wx) in sorted(sums.items()))
    return tuple(tally for tally in tallies if tally.n or tally.w)


def _sources(now: Iterable[Sample]) -> Sources:
    counts: Counter[tuple[str | None, str]] = Counter((s.source, lane(s)) for s in now)
    counted = {source: counts[source, "quality"] for source in SOURCES}
    return Sources(**counted, void=counts["judge", "void"])


def more_streams(sample: Sample) -> int:
    """How many other attempts ran on the worker at the same time. A sample that does not say ran alone."""
    return max((sample.concurrency or 1) - 1, 0)


def quantile(values: list[int], percent: int) -> int | None:
    """The least value that ``percent`` % of them are at most, the ⌈n · percent / 100⌉th: an observed one, so the same in SQL."""
    return sorted(values)[(len(values) * percent + 99) // 100 - 1] if values else None
