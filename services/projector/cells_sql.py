"""``schemas.cells.fold`` in SQL, and the way back from a row to a ``Cell``.

Answers "how are the statistics computed inside DuckDB?". Integers only, no floats, no present time: any batching, order or
machine gives the same bits, and the property tests hold them equal to Python's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from schemas.cells import SOURCES, Cell, Group, Rates, Sources, Sums, Tally
from schemas.evidence import Restart
from schemas.samples import UNIT
from services.projector.evidence_sql import MORE, free, weighed

SUMS = ("queue", "load", "first_token", "total", "output")
RATES = ("prefill", "decode")
GROUPS = ("alone", "shared", "busy")

TALLY = "STRUCT(peer VARCHAR, n BIGINT, x HUGEINT, w HUGEINT, wx HUGEINT)"
RESTART = ("why", "seq", "at_us", "n", "rate")


def _quantile(values: str, percent: int, when: str) -> str:
    """The ⌈n · percent / 100⌉th of the observed values, as ``schemas.cells.quantile``; NULL of no values."""
    live = f"FILTER (WHERE {when} AND NOT old AND w > 0)"
    return f"list_extract(list_sort(list({values}) {live}), (count(*) {live} * {percent} + 99) // 100)"


def _sums(name: str, value: str, when: str, weight: str = "w") -> str:
    when = f"{value} IS NOT NULL AND {when}"
    return (
        f"count(*) FILTER (WHERE {when} AND NOT old) AS {name}_n, "
        f"coalesce(sum({weight}) FILTER (WHERE {when}), 0)::HUGEINT AS {name}_w, "
        f"coalesce(sum({weight}::HUGEINT * {value}) FILTER (WHERE {when}), 0)::HUGEINT AS {name}_wx, "
        f"{_quantile(value, 50, when)}::BIGINT AS {name}_p50, {_quantile(value, 95, when)}::BIGINT AS {name}_p95"
    )


def _rates(name: str, more: str) -> str:
    tok, us = f"{name}_tok", f"{name}_us"
    when = f"kind = 'speed' AND {tok} IS NOT NULL AND {us} > 0"
    rate = f"({tok} * {1000 * UNIT} // nullif({us}, 0))"
    return (
        f"count(*) FILTER (WHERE {when} AND NOT old) AS {name}_n, "
        f"coalesce(sum(w) FILTER (WHERE {when}), 0)::HUGEINT AS {name}_w, "
        f"coalesce(sum(w::HUGEINT * {tok}) FILTER (WHERE {when}), 0)::HUGEINT AS {name}_wtok, "
        f"coalesce(sum(w::HUGEINT * {us}) FILTER (WHERE {when}), 0)::HUGEINT AS {name}_wus, "
        f"coalesce(sum(w::HUGEINT * {free(us)}) FILTER (WHERE {when}), 0)::HUGEINT AS {name}_wfree_us, "
        f"coalesce(sum(w::HUGEINT * {tok} * {more}) FILTER (WHERE {when}), 0)::HUGEINT AS {name}_wtok_more, "
        f"coalesce(sum(w) FILTER (WHERE {when} AND others_u IS NOT NULL), 0)::HUGEINT AS {name}_w_told, "
        f"{_quantile(rate, 50, when)}::BIGINT AS {name}_p50, {_quantile(rate, 95, when)}::BIGINT AS {name}_p95"
    )


def _group(name: str) -> str:
    """``schemas.cells._group``."""
    excess = {"alone": "0", "shared": f"decode_tok * {MORE}", "busy": f"(decode_us - {free('decode_us')})"}[name]
    when = f"circumstance = '{name}'"
    sums = {
        "w": "gw",
        "wtok": "gw::HUGEINT * decode_tok",
        "wus": "gw::HUGEINT * decode_us",
        "wx": f"gw::HUGEINT * {excess}",
    }
    added = (f"coalesce(sum({x}) FILTER (WHERE {when}), 0)::HUGEINT AS {name}_{key}" for key, x in sums.items())
    return f"count(*) FILTER (WHERE {when}) AS {name}_n, {', '.join(added)}"


def _restart(states: str) -> str:
    """``schemas.evidence.restart_of``; all of it NULL in a cell that never restarted."""
    first = f"NOT old AND (kind = 'speed' OR kind = 'quality' AND {states}.why <> 'drift')"
    decoded = "last_before AND decode_tok IS NOT NULL AND decode_us > 0"
    columns = {
        "seq": f"min(a.seq) FILTER (WHERE {first})",
        "at_us": f"arg_min(a.at_us, a.seq) FILTER (WHERE {first})",
        "n": "count(*) FILTER (WHERE old)",
        "rate": f"(sum(decode_tok) FILTER (WHERE {decoded}) * {1000 * UNIT} // sum(decode_us) FILTER (WHERE {decoded}))::BIGINT",
    }
    columns = {"why": f"any_value({states}.why)", **columns}
    told = f"{columns['why']} IS NOT NULL AND {columns['seq']} IS NOT NULL"
    return ", ".join(f"CASE WHEN {told} THEN {value} END AS restart_{name}" for name, value in columns.items())


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
    columns += [_rates("prefill", "0"), _rates("decode", MORE), *map(_group, GROUPS)]
    alone = "kind = 'quality' AND peer IS NULL"
    columns.append(_sums("quality", "quality_u", alone, "(w * quality_w_u)"))
    columns += [
        f"count(*) FILTER (WHERE kind = 'quality' AND NOT old AND source = '{source}') AS {source}_n"
        for source in SOURCES
    ]
    return f"""
WITH {weighed(where)}, tallies AS (
    SELECT cell, peer, count(*) FILTER (WHERE NOT old) AS n, coalesce(sum(quality_u) FILTER (WHERE NOT old), 0)::HUGEINT AS x,
        sum(w::HUGEINT * quality_w_u)::HUGEINT AS w, sum(w::HUGEINT * quality_w_u * quality_u)::HUGEINT AS wx
    FROM weighed a WHERE kind = 'quality' AND peer IS NOT NULL GROUP BY cell, peer
), pairs AS (
    SELECT cell, list({{peer: peer, n: n, x: x, w: w, wx: wx}} ORDER BY peer) FILTER (WHERE n > 0 OR w > 0)::{TALLY}[] AS pairs
    FROM tallies GROUP BY cell
), seen AS (
    SELECT cell, any_value(model) AS model, any_value(domain) AS domain, any_value(worker) AS worker, max(seq) AS last_seq
    FROM picked GROUP BY cell
)
SELECT
    a.cell, any_value(seen.model) AS model, any_value(seen.domain) AS domain, any_value(seen.worker) AS worker,
    any_value(states.digest) AS digest, any_value(states.quantisation) AS quantisation,
    arg_max(a.model_bytes, a.seq) FILTER (WHERE kind = 'speed' AND NOT old AND a.model_bytes IS NOT NULL) AS model_bytes,
    {", ".join(columns)},
    count(*) FILTER (WHERE kind = 'void' AND source = 'judge') AS void_n,
    any_value(pairs.pairs) AS pairs,
    {_restart("states")},
    count(*) FILTER (WHERE ok = true AND NOT old) AS ok_n, count(*) FILTER (WHERE ok = false AND NOT old) AS fail_n,
    any_value(seen.last_seq) AS last_seq,
    max(at_us) FILTER (WHERE kind = 'speed' AND NOT old) AS speed_at_us,
    max(at_us) FILTER (WHERE kind = 'quality' AND NOT old) AS quality_at_us
FROM weighed a JOIN states ON a.cell = states.cell JOIN seen ON a.cell = seen.cell LEFT JOIN pairs ON a.cell = pairs.cell
GROUP BY a.cell"""


REFRESH = f"INSERT INTO cells {cells_select('k.cell IN (SELECT unnest($1::INTEGER[]))')}"
REBUILD = f"CREATE OR REPLACE TABLE cells AS {cells_select()}"
FORGET = "DELETE FROM cells WHERE cell IN (SELECT unnest($1::INTEGER[]))"


def cell_of(row: Sequence[Any]) -> Cell:
    """A row of ``cells`` (without its number) as the value that travels in KV ``stats``."""
    values = iter(row)
    model, domain, worker, digest, quantisation, model_bytes = (next(values) for _ in range(6))
    fields: dict[str, Any] = {name: _read_sums(values) for name in SUMS}
    fields |= {name: _read_rates(values) for name in RATES}
    fields |= {name: _read_group(values) for name in GROUPS}
    fields["quality"] = _read_sums(values)
    fields["sources"] = Sources(**{source: next(values) for source in (*SOURCES, "void")})
    fields["pairs"] = tuple(Tally(**tally) for tally in next(values) or ())
    restart = {name: next(values) for name in RESTART}
    ok_n, fail_n, last_seq, speed_at_us, quality_at_us = values
    return Cell(
        model=model,
        domain=domain,
        worker=worker,
        digest=digest,
        quantisation=quantisation,
        model_bytes=model_bytes,
        **fields,
        restarted=Restart(**restart) if restart["why"] is not None else None,
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
