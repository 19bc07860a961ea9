"""``schemas.cells.fold`` in SQL, and the way back from a row to a ``Cell``.

Answers "how are the statistics computed inside DuckDB?". Integers only, no floats, no present time: any batching, order or
machine gives the same bits, and the property tests hold them equal to Python's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from schemas.cells import (
    BUSY_LEAST_U,
    DRIFT_BEFORE,
    DRIFT_BEFORE_LEAST,
    DRIFT_RUN,
    DRIFT_TENTHS,
    DRIFT_TOKENS_LEAST,
    FREE_LEAST_U,
    Cell,
    Group,
    Rates,
    Sums,
)
from schemas.samples import UNIT
from schemas.weights import FRACTIONS, HALF_LIFE_SAMPLES, HALF_LIFE_US, STEPS, WEIGHT_BITS

SUMS = ("queue", "load", "first_token", "total", "output")
RATES = ("prefill", "decode")
GROUPS = ("alone", "shared", "busy")

_MORE = "greatest(coalesce(concurrency, 1) - 1, 0)"
"""``schemas.cells.more_streams``."""

_FREE = f"({{us}} * greatest({UNIT} - coalesce(others_u, 0), {FREE_LEAST_U}) // {UNIT})"
"""``schemas.cells.free_us``."""


def _quantile(values: str, percent: int, when: str) -> str:
    """An observed value at rank ⌊(n − 1) · percent / 100⌋, as ``schemas.cells.quantile``; NULL of no values."""
    live = f"FILTER (WHERE {when} AND w > 0)"
    return f"list_extract(list_sort(list({values}) {live}), (count(*) {live} - 1) * {percent} // 100 + 1)"


def _sums(name: str, value: str, when: str, weight: str = "w") -> str:
    when = f"{value} IS NOT NULL AND {when}"
    return (
        f"count(*) FILTER (WHERE {when}) AS {name}_n, "
        f"coalesce(sum({weight}) FILTER (WHERE {when}), 0)::HUGEINT AS {name}_w, "
        f"coalesce(sum({weight}::HUGEINT * {value}) FILTER (WHERE {when}), 0)::HUGEINT AS {name}_wx, "
        f"{_quantile(value, 50, when)}::BIGINT AS {name}_p50, {_quantile(value, 95, when)}::BIGINT AS {name}_p95"
    )


def _rates(name: str, more: str) -> str:
    tok, us = f"{name}_tok", f"{name}_us"
    when = f"kind = 'speed' AND {tok} IS NOT NULL AND {us} > 0"
    free = _FREE.format(us=us)
    rate = f"({tok} * {1000 * UNIT} // nullif({us}, 0))"
    return (
        f"count(*) FILTER (WHERE {when}) AS {name}_n, "
        f"coalesce(sum(w) FILTER (WHERE {when}), 0)::HUGEINT AS {name}_w, "
        f"coalesce(sum(w::HUGEINT * {tok}) FILTER (WHERE {when}), 0)::HUGEINT AS {name}_wtok, "
        f"coalesce(sum(w::HUGEINT * {us}) FILTER (WHERE {when}), 0)::HUGEINT AS {name}_wus, "
        f"coalesce(sum(w::HUGEINT * {free}) FILTER (WHERE {when}), 0)::HUGEINT AS {name}_wfree_us, "
        f"coalesce(sum(w::HUGEINT * {tok} * {more}) FILTER (WHERE {when}), 0)::HUGEINT AS {name}_wtok_more, "
        f"coalesce(sum(w) FILTER (WHERE {when} AND others_u IS NOT NULL), 0)::HUGEINT AS {name}_w_told, "
        f"{_quantile(rate, 50, when)}::BIGINT AS {name}_p50, {_quantile(rate, 95, when)}::BIGINT AS {name}_p95"
    )


def _circumstance() -> str:
    """``schemas.cells._circumstance``."""
    quiet = f"coalesce(others_u, 0) < {BUSY_LEAST_U}"
    return (
        f"CASE WHEN kind <> 'speed' OR coalesce(decode_us, 0) <= 0 OR coalesce(decode_tok, 0) < {DRIFT_TOKENS_LEAST} THEN NULL "
        f"WHEN {quiet} THEN if({_MORE} > 0, 'shared', 'alone') WHEN {_MORE} = 0 THEN 'busy' END"
    )


def _group(name: str) -> str:
    """``schemas.cells._group``."""
    free = _FREE.format(us="decode_us")
    excess = {"alone": "0", "shared": f"decode_tok * {_MORE}", "busy": f"(decode_us - {free})"}[name]
    when = f"circumstance = '{name}'"
    sums = {
        "w": "gw",
        "wtok": "gw::HUGEINT * decode_tok",
        "wus": "gw::HUGEINT * decode_us",
        "wx": f"gw::HUGEINT * {excess}",
    }
    added = (f"coalesce(sum({x}) FILTER (WHERE {when}), 0)::HUGEINT AS {name}_{key}" for key, x in sums.items())
    return f"count(*) FILTER (WHERE {when}) AS {name}_n, {', '.join(added)}"


def _weigh(step: str) -> str:
    """``schemas.weights.weight``."""
    fractions = f"[{', '.join(map(str, FRACTIONS))}]::BIGINT[]"
    known = f"list_extract({fractions}, {step} % {STEPS} + 1) >> ({step} // {STEPS})"
    return f"CASE WHEN {step} < {WEIGHT_BITS * STEPS} THEN {known} ELSE 0 END"


def cells_select(where: str = "true") -> str:
    """One row per cell. ``where`` chooses cells by ``k.cell``; the same text makes a live refresh and a whole rebuild."""
    sums = {
        "queue": "queue_us",
        "load": "(CASE WHEN resident = false THEN load_us END)",
        "first_token": "first_token_us",
        "total": "total_us",
        "output": "(CASE WHEN task_kind IS DISTINCT FROM 'bench' THEN output_tok END)",
    }
    columns = [_sums(name, value, "kind = 'speed'") for name, value in sums.items()]
    columns += [_rates("prefill", "0"), _rates("decode", _MORE), *map(_group, GROUPS)]
    columns.append(_sums("quality", "quality_u", "kind = 'quality' AND quality_w_u > 0", "(w * quality_w_u)"))
    return f"""
WITH picked AS (
    SELECT s.*, k.cell, k.model, k.domain, k.worker, k.digest, k.model_bytes, k.task_kind
    FROM samples s JOIN cell_key k USING (cid) WHERE {where}
), deciding AS (
    SELECT cell, max(kind) FILTER (WHERE kind IN ('speed', 'quality')) AS kind
    FROM picked WHERE digest IS NOT NULL GROUP BY cell
), digests AS (
    SELECT p.cell, d.kind, arg_max(p.digest, p.seq) AS digest
    FROM picked p JOIN deciding d ON p.cell = d.cell AND p.kind = d.kind WHERE p.digest IS NOT NULL GROUP BY ALL
), restarts AS (
    SELECT p.cell, max(p.seq) AS seq
    FROM picked p JOIN digests d ON p.cell = d.cell AND p.kind = d.kind WHERE p.digest <> d.digest GROUP BY ALL
), latest AS (
    SELECT p.*, d.digest AS now_digest
    FROM picked p LEFT JOIN digests d ON p.cell = d.cell LEFT JOIN restarts r ON p.cell = r.cell
    WHERE p.seq > coalesce(r.seq, 0) AND (p.digest IS NULL OR d.digest IS NULL OR p.digest = d.digest)
), rates AS (
    SELECT cell, seq, decode_tok * {1000 * UNIT} // nullif({_FREE.format(us="decode_us")}, 0) AS rate
    FROM latest
    WHERE kind = 'speed' AND decode_us > 3 AND decode_tok >= {DRIFT_TOKENS_LEAST} AND coalesce(concurrency, 1) = 1
), runs AS (
    SELECT cell, lag(seq, {DRIFT_RUN - 1}) OVER (PARTITION BY cell ORDER BY seq) AS first_seq,
        min(rate) OVER run AS slowest, max(rate) OVER run AS fastest,
        quantile_disc(rate, 0.5) OVER before AS median, count(*) OVER before AS n
    FROM rates
    WINDOW run AS (PARTITION BY cell ORDER BY seq ROWS BETWEEN {DRIFT_RUN - 1} PRECEDING AND CURRENT ROW),
        before AS (PARTITION BY cell ORDER BY seq
            ROWS BETWEEN {DRIFT_BEFORE + DRIFT_RUN - 1} PRECEDING AND {DRIFT_RUN} PRECEDING)
), drifts AS (
    SELECT cell, max(first_seq) AS seq FROM runs
    WHERE n >= {DRIFT_BEFORE_LEAST}
        AND (10 * slowest::HUGEINT > {DRIFT_TENTHS} * median::HUGEINT OR {DRIFT_TENTHS} * fastest::HUGEINT < 10 * median::HUGEINT)
    GROUP BY cell
), steady AS (
    SELECT l.* FROM latest l LEFT JOIN drifts d ON l.cell = d.cell WHERE l.kind <> 'speed' OR l.seq >= coalesce(d.seq, 0)
), told AS (
    SELECT *, {_circumstance()} AS circumstance FROM steady
), aged AS (
    SELECT *,
        (max(at_us) OVER (PARTITION BY cell, kind) - at_us) * {STEPS} // {HALF_LIFE_US} AS faded,
        (row_number() OVER (PARTITION BY cell, kind ORDER BY seq DESC) - 1) * {STEPS} // {HALF_LIFE_SAMPLES} AS step,
        (row_number() OVER (PARTITION BY cell, circumstance ORDER BY seq DESC) - 1) * {STEPS} // {HALF_LIFE_SAMPLES} AS gstep
    FROM told
), weighed AS (
    SELECT *, {_weigh("(faded + step)")} AS w, {_weigh("(faded + gstep)")} AS gw FROM aged
), seen AS (
    SELECT cell, max(seq) AS last_seq FROM picked GROUP BY cell
)
SELECT
    a.cell, any_value(a.model) AS model, any_value(a.domain) AS domain, any_value(a.worker) AS worker,
    any_value(a.now_digest) AS digest,
    arg_max(a.model_bytes, a.seq) FILTER (WHERE kind = 'speed' AND a.model_bytes IS NOT NULL) AS model_bytes,
    {", ".join(columns)},
    count(*) FILTER (WHERE ok = true) AS ok_n, count(*) FILTER (WHERE ok = false) AS fail_n,
    any_value(seen.last_seq) AS last_seq,
    max(at_us) FILTER (WHERE kind = 'speed') AS speed_at_us, max(at_us) FILTER (WHERE kind = 'quality') AS quality_at_us
FROM weighed a JOIN seen ON a.cell = seen.cell GROUP BY a.cell"""


REFRESH = f"INSERT INTO cells {cells_select('k.cell IN (SELECT unnest($1::INTEGER[]))')}"
REBUILD = f"CREATE OR REPLACE TABLE cells AS {cells_select()}"
FORGET = "DELETE FROM cells WHERE cell IN (SELECT unnest($1::INTEGER[]))"


def cell_of(row: Sequence[Any]) -> Cell:
    """A row of ``cells`` (without its number) as the value that travels in KV ``stats``."""
    values = iter(row)
    model, domain, worker, digest, model_bytes = (next(values) for _ in range(5))
    fields: dict[str, Any] = {name: _read_sums(values) for name in SUMS}
    fields |= {name: _read_rates(values) for name in RATES}
    fields |= {name: _read_group(values) for name in GROUPS}
    fields["quality"] = _read_sums(values)
    ok_n, fail_n, last_seq, speed_at_us, quality_at_us = values
    return Cell(
        model=model,
        domain=domain,
        worker=worker,
        digest=digest,
        model_bytes=model_bytes,
        **fields,
        ok_n=ok_n,
        fail_n=fail_n,
        last_seq=last_seq,
        speed_at_us=speed_at_us,
        quality_at_us=quality_at_us,
    )


def _read_sums(values: Iterator[Any]) -> Sums:
    n, w, wx, p50, p95 = (next(values) for _ in range(5))
    return Sums(n=n, w=w, wx=wx, p50=p50, p95=p95)


def _read_rates(values: Iterator[Any]) -> Rates:
    n, w, wtok, wus, wfree_us, wtok_more, w_told, p50, p95 = (next(values) for _ in range(9))
    return Rates(n=n, w=w, wtok=wtok, wus=wus, wfree_us=wfree_us, wtok_more=wtok_more, w_told=w_told, p50=p50, p95=p95)


def _read_group(values: Iterator[Any]) -> Group:
    n, w, wtok, wus, wx = (next(values) for _ in range(5))
    return Group(n=n, w=w, wtok=wtok, wus=wus, wx=wx)
