"""What a finest cell (model, domain, worker) adds up to: integer sums that are the same on any machine.

Answers "what do these samples say together?". ``fold`` is a pure function of a set of samples: their order of arrival, the
batches they came in and the machine that adds them change nothing. The projector computes the same cells in SQL
(``services.projector.tables``); the tests hold the two equal, bit for bit. Never floats, never the present time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from schemas.samples import UNIT, Sample
from schemas.weights import weight

FREE_LEAST_U = 250_000
"""Below a quarter of the machine, an observed rate says more about the other user than about the machine."""

BUSY_LEAST_U = 50_000
"""Others' use below a twentieth is the noise of a desktop at rest."""

DRIFT_BEFORE = 20
DRIFT_BEFORE_LEAST = 5
DRIFT_RUN = 3
DRIFT_TENTHS = 18
DRIFT_TOKENS_LEAST = 8
"""A machine has changed when 3 rates in a row are all above 1.8 times, or all below a 1.8th of, the median of the up to 20
before them, at least 5 (ROUTING.md, B3.2). Answers of a few tokens and attempts that shared the machine prove nothing."""


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """One quantity: ``n`` samples since the restart, Σ weight, Σ weight · value; quantiles of those that still weigh."""

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


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """The statistics of one (model, domain, worker); ``worker`` None where only the model was judged. Sums, not averages.

    ``alone`` ran as one stream, ``shared`` as several, both beside nobody that is known of; ``busy`` as one beside others.
    """

    model: str
    domain: str
    worker: str | None = None
    digest: str | None = None
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
    digest, current = _since_restart(ordered)
    drifted = _drifted(current)
    current = [s for s in current if s.kind != "speed" or s.seq >= drifted]
    speed = _weighed(current, "speed")
    quality = _weighed(current, "quality")
    model, domain, worker = key_of(ordered[-1])
    return Cell(
        model=model,
        domain=domain,
        worker=worker,
        digest=digest,
        model_bytes=next((s.model_bytes for s, _ in reversed(speed) if s.model_bytes is not None), None),
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
        ok_n=sum(s.ok is True for s in current),
        fail_n=sum(s.ok is False for s in current),
        last_seq=ordered[-1].seq,
        speed_at_us=max((s.at_us for s, _ in speed), default=None),
        quality_at_us=max((s.at_us for s, _ in quality), default=None),
    )


def _since_restart(ordered: Sequence[Sample]) -> tuple[str | None, list[Sample]]:
    """The digest in force and its samples: a cell starts again when its model's digest changes.

    What ran decides; a judgement that comes late for an old digest is left out and resets nothing. Only a cell that was
    never run takes its judgements' digest.
    """
    known = [s for s in ordered if s.digest is not None]
    deciding = [s for s in known if s.kind == "speed"] or [s for s in known if s.kind == "quality"]
    if not deciding:
        return None, list(ordered)
    digest = deciding[-1].digest
    restart = max((s.seq for s in deciding if s.digest != digest), default=0)
    return digest, [s for s in ordered if s.seq > restart and s.digest in (None, digest)]


def _drifted(ordered: Sequence[Sample]) -> int:
    """The sequence from which the machine's speed is another one; 0 where it always was the present one.

    While most of the 20 before are old ones, each new rate moves it on, so that three samples are the whole evidence; after
    ten it stays. What was before is not lost: the levels above still hold it until the cell has evidence of its own.
    """
    rates = [
        (s.seq, s.decode_tok * 1000 * UNIT // free_us(s.decode_us, s.others_u))
        for s in ordered
        if s.kind == "speed"
        and s.decode_tok is not None
        and s.decode_us is not None
        and s.decode_us > 3
        and s.decode_tok >= DRIFT_TOKENS_LEAST
        and s.concurrency in (None, 1)
    ]
    for end in range(len(rates), DRIFT_BEFORE_LEAST + DRIFT_RUN - 1, -1):
        run = rates[end - DRIFT_RUN : end]
        before = sorted(rate for _, rate in rates[max(0, end - DRIFT_RUN - DRIFT_BEFORE) : end - DRIFT_RUN])
        median = before[(len(before) - 1) // 2]
        slowest, fastest = min(rate for _, rate in run), max(rate for _, rate in run)
        if 10 * slowest > DRIFT_TENTHS * median or DRIFT_TENTHS * fastest < 10 * median:
            return run[0][0]
    return 0


def _weighed(samples: Sequence[Sample], kind: str) -> list[tuple[Sample, int]]:
    """The samples of one kind, oldest first, each with its weight; ages count from the kind's own latest time."""
    mine = [s for s in samples if s.kind == kind]
    latest = max((s.at_us for s in mine), default=0)
    return [(s, weight(len(mine) - 1 - index, latest - s.at_us)) for index, s in enumerate(mine)]


def _sums(weighed: Sequence[tuple[Sample, int]], value: Callable[[Sample], int | None]) -> Sums:
    values = [(x, w) for s, w in weighed if (x := value(s)) is not None]
    live = [x for x, w in values if w > 0]
    return Sums(
        n=len(values),
        w=sum(w for _, w in values),
        wx=sum(w * x for x, w in values),
        p50=quantile(live, 50),
        p95=quantile(live, 95),
    )


def _rates(
    weighed: Sequence[tuple[Sample, int]],
    halves: Callable[[Sample], tuple[int | None, int | None]],
    more: Callable[[Sample], int] = lambda _: 0,
) -> Rates:
    values = [
        (tok, us, free_us(us, s.others_u), tok * more(s), s.others_u is not None, w)
        for s, w in weighed
        for tok, us in (halves(s),)
        if tok is not None and us is not None and us > 0
    ]
    live = [tok * 1000 * UNIT // us for tok, us, *_, w in values if w > 0]
    return Rates(
        n=len(values),
        w=sum(w for *_, w in values),
        wtok=sum(w * tok for tok, *_, w in values),
        wus=sum(w * us for _, us, *_, w in values),
        wfree_us=sum(w * free for _, _, free, *_, w in values),
        wtok_more=sum(w * more_tok for *_, more_tok, _, w in values),
        w_told=sum(w for *_, told, w in values if told),
        p50=quantile(live, 50),
        p95=quantile(live, 95),
    )


def _group(weighed: Sequence[tuple[Sample, int]], name: str) -> Group:
    """Weighed by the younger ones of the group alone: a machine that is always full must not forget how fast it is alone."""
    latest = max((s.at_us for s, _ in weighed), default=0)
    mine = [s for s, _ in weighed if _circumstance(s) == name]
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


def _judgements(weighed: Sequence[tuple[Sample, int]]) -> Sums:
    values = [(s.quality_u, w, w * s.quality_w_u) for s, w in weighed if s.quality_u is not None and s.quality_w_u]
    live = [x for x, w, _ in values if w > 0]
    return Sums(
        n=len(values),
        w=sum(ww for *_, ww in values),
        wx=sum(ww * x for x, _, ww in values),
        p50=quantile(live, 50),
        p95=quantile(live, 95),
    )


def more_streams(sample: Sample) -> int:
    """How many other attempts ran on the worker at the same time. A sample that does not say ran alone."""
    return max((sample.concurrency or 1) - 1, 0)


def free_us(us: int, others_u: int | None) -> int:
    """The time it would have taken alone. Unknown use corrects nothing: silence must not make a machine look faster."""
    return us * max(UNIT - (others_u or 0), FREE_LEAST_U) // UNIT


def quantile(values: list[int], percent: int) -> int | None:
    """The value at rank ⌊(n − 1) · percent / 100⌋: an observed one, so the same in Python and SQL."""
    return sorted(values)[(len(values) - 1) * percent // 100] if values else None
