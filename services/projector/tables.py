"""Every table and view of the projection, as SQL text.

Answers "what is stored, and how is it computed?". docs/sql.md describes it for people; names are public. Tables are append-only
but for ``cells`` and ``meta``. ``cells_select`` is ``schemas.cells.fold`` in SQL: integers only, no floats, no present time, so
that any batching, order or machine gives the same bits. Views use nothing that DuckDB 1.5 lacks: its CLI reads snapshots.
"""

from __future__ import annotations

import json

from schemas.cells import (
    DRIFT_BEFORE,
    DRIFT_BEFORE_LEAST,
    DRIFT_RUN,
    DRIFT_TENTHS,
    DRIFT_TOKENS_LEAST,
    FRACTIONS,
    FREE_LEAST_U,
    HALF_LIFE_SAMPLES,
    HALF_LIFE_US,
    STEPS,
    WEIGHT_BITS,
)
from schemas.samples import UNIT

LAYOUT = 1
"""Changes with any table here: a file of another layout is set aside and the log replayed."""

MODELS = (
    "STRUCT(name VARCHAR, backend_name VARCHAR, digest VARCHAR, bytes BIGINT, quantisation VARCHAR, context BIGINT)[]"
)

Columns = dict[str, str]

SAMPLES: Columns = {
    "seq": "UBIGINT",
    "at_us": "BIGINT",
    "cid": "INTEGER",
    "kind": "VARCHAR",
    "task": "VARCHAR",
    "attempt": "INTEGER",
    "ok": "BOOLEAN",
    "outcome": "VARCHAR",
    "finish_reason": "VARCHAR",
    "resident": "BOOLEAN",
    **dict.fromkeys(
        (
            "concurrency others_u queue_us load_us prefill_tok prefill_us decode_tok decode_us output_tok prompt_tok "
            "cached_tok thinking_tok prompt_chars first_token_us total_us quality_u quality_w_u"
        ).split(),
        "BIGINT",
    ),
}
FACTS: Columns = {
    "seq": "UBIGINT",
    "at_us": "BIGINT",
    "task": "VARCHAR",
    "type": "VARCHAR",
    "attempt": "INTEGER",
    **dict.fromkeys("client session task_kind urgency domain language route model worker lane".split(), "VARCHAR"),
    "prompt_tokens": "BIGINT",
    "waited_s": "DOUBLE",
    "predicted_s": "DOUBLE",
    "failure": "VARCHAR",
    "reason": "VARCHAR",
    "parent": "VARCHAR",
}
CANDIDATES: Columns = {
    "seq": "UBIGINT",
    "at_us": "BIGINT",
    "task": "VARCHAR",
    "decision": "VARCHAR",
    "rank": "INTEGER",
    "model": "VARCHAR",
    "worker": "VARCHAR",
    "removed": "VARCHAR",
    **dict.fromkeys("cost_s wait_s load_s prefill_s decode_s sharing_s total_s decode_tps".split(), "DOUBLE"),
    "decode_level": "VARCHAR",
    "decode_n": "BIGINT",
    "decode_age_s": "DOUBLE",
    "prefill_tps": "DOUBLE",
    "prefill_level": "VARCHAR",
    "prefill_n": "BIGINT",
    "quality": "DOUBLE",
    "quality_level": "VARCHAR",
    "quality_n": "BIGINT",
    "uncertainty": "DOUBLE",
    "others_use": "DOUBLE",
    "resident": "BOOLEAN",
    "fresh": "BOOLEAN",
}
WORKERS: Columns = {
    "seq": "UBIGINT",
    "at_us": "BIGINT",
    "worker": "VARCHAR",
    "boot": "VARCHAR",
    "left": "BOOLEAN",
    **dict.fromkeys("reason name host backend backend_version gpu".split(), "VARCHAR"),
    "local": "BOOLEAN",
    "slots": "INTEGER",
    "supports": "VARCHAR[]",
    "models": MODELS,
}
DEAD: Columns = {
    "seq": "UBIGINT",
    "at_us": "BIGINT",
    "subject": "VARCHAR",
    "type": "VARCHAR",
    "v": "BIGINT",
    "reason": "VARCHAR",
    "data": "VARCHAR",
}
HEARTBEATS: Columns = {
    "minute_us": "BIGINT",
    "worker": "VARCHAR",
    **dict.fromkeys(
        (
            "beats cpu_n cpu_u cpu_u_max pressure_n pressure_u others_n others_u others_u_max gpu_n gpu_u gpu_u_max "
            "vram_used_bytes_max ram_available_bytes_min running_n running running_max backend_n backend_down"
        ).split(),
        "BIGINT",
    ),
}
CELL_KEY: Columns = {
    "cid": "INTEGER",
    "cell": "INTEGER",
    **dict.fromkeys("model domain worker digest quantisation".split(), "VARCHAR"),
    "model_bytes": "BIGINT",
    **dict.fromkeys("language task_kind client lane".split(), "VARCHAR"),
    "context": "BIGINT",
    **dict.fromkeys("capability backend gpu".split(), "VARCHAR"),
}
META: Columns = {"k": "VARCHAR", "seq": "UBIGINT"}

APPENDED: dict[str, Columns] = {
    "samples": SAMPLES,
    "task_facts": FACTS,
    "candidates": CANDIDATES,
    "worker_reports": WORKERS,
    "dead": DEAD,
    "heartbeats": HEARTBEATS,
}

SUMS = ("queue", "load", "first_token", "total", "output")
RATES = ("prefill", "decode")


_FREE = f"({{us}} * greatest({UNIT} - coalesce(others_u, 0), {FREE_LEAST_U}) // {UNIT})"
"""``schemas.cells.free_us``."""


def _quote(name: str) -> str:
    return f'"{name}"'


def _columns(columns: Columns) -> str:
    return ", ".join(f"{_quote(name)} {kind}" for name, kind in columns.items())


def short(columns: Columns) -> dict[str, str]:
    """Column name -> its key in the JSON of a row: half the bytes to write and parse."""
    return {name: f"{number:x}" for number, name in enumerate(columns)}


def append(table: str) -> str:
    """Insert a list of JSON objects, one a row, in one statement [4 µs a row, against 700 rows/s by executemany]."""
    columns = APPENDED[table]
    keys = short(columns)
    structure = json.dumps({keys[name]: _json_type(kind) for name, kind in columns.items()})
    return f"INSERT INTO {table} SELECT unnest(from_json(j, '{structure}')) FROM (SELECT unnest($1::VARCHAR[]) AS j)"


def _json_type(kind: str) -> object:
    if kind == MODELS:
        inner = dict(field.split() for field in MODELS.removeprefix("STRUCT(").removesuffix(")[]").split(", "))
        return [inner]
    return [kind.removesuffix("[]")] if kind.endswith("[]") else kind


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


def _rates(name: str) -> str:
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
        f"{_quantile(rate, 50, when)}::BIGINT AS {name}_p50, {_quantile(rate, 95, when)}::BIGINT AS {name}_p95"
    )


def cells_select(where: str = "true") -> str:
    """One row per cell. ``where`` chooses cells by ``k.cell``; the same text makes a live refresh and a whole rebuild."""
    weigh = (
        f"CASE WHEN step < {WEIGHT_BITS * STEPS} "
        f"THEN list_extract([{', '.join(map(str, FRACTIONS))}]::BIGINT[], step % {STEPS} + 1) >> (step // {STEPS}) ELSE 0 END"
    )
    sums = {
        "queue": "queue_us",
        "load": "(CASE WHEN resident = false THEN load_us END)",
        "first_token": "first_token_us",
        "total": "total_us",
        "output": "(CASE WHEN task_kind IS DISTINCT FROM 'bench' THEN output_tok END)",
    }
    columns = [_sums(name, value, "kind = 'speed'") for name, value in sums.items()]
    columns += [_rates(name) for name in RATES]
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
), aged AS (
    SELECT *,
        (row_number() OVER (PARTITION BY cell, kind ORDER BY seq DESC) - 1) * {STEPS} // {HALF_LIFE_SAMPLES}
        + (max(at_us) OVER (PARTITION BY cell, kind) - at_us) * {STEPS} // {HALF_LIFE_US} AS step
    FROM steady
), weighed AS (
    SELECT *, {weigh} AS w FROM aged
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

_TIME = "make_timestamp({})"

VIEWS: dict[str, str] = {
    "speed": """
SELECT model, domain, worker, digest, model_bytes,
    decode_n, decode_wtok * 1e6 / nullif(decode_wus, 0) AS decode_tps, decode_p50 / 1e3 AS decode_tps_p50,
    decode_p95 / 1e3 AS decode_tps_p95,
    prefill_n, prefill_wtok * 1e6 / nullif(prefill_wus, 0) AS prefill_tps, prefill_p50 / 1e3 AS prefill_tps_p50,
    load_n, load_wx / 1e6 / nullif(load_w, 0) AS load_s, load_p50 / 1e6 AS load_s_p50,
    queue_n, queue_wx / 1e6 / nullif(queue_w, 0) AS queue_s, queue_p50 / 1e6 AS queue_s_p50, queue_p95 / 1e6 AS queue_s_p95,
    first_token_n, first_token_wx / 1e6 / nullif(first_token_w, 0) AS first_token_s,
    first_token_p50 / 1e6 AS first_token_s_p50, first_token_p95 / 1e6 AS first_token_s_p95,
    total_n, total_wx / 1e6 / nullif(total_w, 0) AS total_s, total_p50 / 1e6 AS total_s_p50, total_p95 / 1e6 AS total_s_p95,
    output_n, output_wx * 1.0 / nullif(output_w, 0) AS output_tokens,
    ok_n, fail_n, last_seq, make_timestamp(speed_at_us) AS last_at
FROM cells WHERE speed_at_us IS NOT NULL OR fail_n > 0""",
    "quality": """
SELECT model, domain, worker, digest, quality_n AS n, quality_wx / 1e6 / nullif(quality_w, 0) AS quality,
    quality_p50 / 1e6 AS quality_p50, quality_w / 1e6 / 1073741824 AS n_effective, last_seq,
    make_timestamp(quality_at_us) AS last_at
FROM cells WHERE quality_n > 0""",
    "task_events": """
SELECT seq, at_us, task, type, attempt, client, session, task_kind, urgency, domain, language, route, model, worker, lane,
    prompt_tokens, waited_s, predicted_s, failure, reason, parent, NULL::VARCHAR AS outcome, NULL::VARCHAR AS finish_reason
FROM task_facts
UNION ALL
SELECT s.seq, s.at_us, s.task, 'task.completed', s.attempt, k.client, NULL, k.task_kind, NULL, k.domain, k.language, NULL,
    k.model, k.worker, k.lane, s.prompt_tok, NULL, NULL, NULL, NULL, NULL, s.outcome, s.finish_reason
FROM samples s JOIN cell_key k USING (cid) WHERE s.kind = 'speed'""",
    "tasks": """
WITH folded AS (
    SELECT task, min(at_us) AS first_at_us,
        any_value(client) AS client, any_value(session) AS session, any_value(task_kind) AS task_kind,
        any_value(urgency) AS urgency, any_value(domain) AS domain, any_value(language) AS language,
        any_value(route) AS route, any_value(parent) AS parent,
        min(prompt_tokens) FILTER (WHERE type = 'task.submitted') AS prompt_tokens,
        min(at_us) FILTER (WHERE type = 'task.submitted') AS submitted_us,
        max(seq) FILTER (WHERE type = 'task.routed') AS routed_seq,
        arg_max({model: model, worker: worker, predicted_s: predicted_s, waited_s: waited_s, attempt: attempt,
            reason: reason}, seq) FILTER (WHERE type = 'task.released') AS released,
        arg_max({model: model, worker: worker, attempt: attempt, at_us: at_us}, seq)
            FILTER (WHERE type = 'task.started') AS started,
        arg_max({failure: failure, reason: reason, attempt: attempt}, seq) FILTER (WHERE type = 'attempt.failed') AS failed,
        arg_min({type: type, model: model, worker: worker, attempt: attempt, failure: failure, reason: reason,
            outcome: outcome, finish_reason: finish_reason, at_us: at_us, seq: seq}, seq)
            FILTER (WHERE type IN ('task.completed', 'task.failed', 'task.cancelled', 'task.dead')) AS ended,
        count(*) FILTER (WHERE type = 'task.started') AS starts, count(*) AS events, min(seq) AS first_seq, max(seq) AS last_seq
    FROM task_events GROUP BY task
)
SELECT task,
    CASE WHEN ended IS NOT NULL THEN replace(ended.type, 'task.', '')
        WHEN started IS NOT NULL AND (failed IS NULL OR failed.attempt < started.attempt) THEN 'running'
        WHEN released IS NOT NULL AND (failed IS NULL OR failed.attempt < released.attempt) THEN 'released'
        ELSE 'waiting' END AS state,
    client, session, task_kind, urgency, domain, language, route, parent,
    coalesce(ended.model, started.model, released.model) AS model, coalesce(ended.worker, started.worker) AS worker,
    released.worker AS expected_worker, coalesce(ended.attempt, started.attempt, released.attempt) AS attempt, starts,
    ended.outcome AS outcome, ended.finish_reason AS finish_reason, coalesce(ended.failure, failed.failure) AS failure,
    coalesce(ended.reason, failed.reason) AS reason, prompt_tokens, released.predicted_s AS predicted_s,
    released.waited_s AS waited_s, make_timestamp(submitted_us) AS submitted_at,
    make_timestamp(started.at_us) AS started_at, make_timestamp(ended.at_us) AS ended_at,
    (ended.at_us - submitted_us) / 1e6 AS total_s, events, first_seq, routed_seq, ended.seq AS ended_seq, last_seq
FROM folded""",
    "workers": """
WITH latest AS (
    SELECT worker, arg_max({boot: boot, "left": "left", at_us: at_us, reason: reason}, seq) AS word,
        arg_max({name: name, host: host, backend: backend, backend_version: backend_version, gpu: gpu, "local": "local",
            slots: slots, supports: supports, models: models}, seq) FILTER (WHERE NOT "left") AS report
    FROM worker_reports GROUP BY worker
)
SELECT worker, report.name AS name, word.boot AS boot, word."left" AS "left", word.reason AS reason, report.host AS host,
    report.backend AS backend, report.backend_version AS backend_version, report.gpu AS gpu, report."local" AS "local",
    report.slots AS slots, report.supports AS supports, report.models AS models, make_timestamp(word.at_us) AS at
FROM latest""",
    "heartbeats_1m": """
SELECT make_timestamp(minute_us) AS minute, worker, sum(beats) AS beats,
    sum(cpu_u) / 1e6 / nullif(sum(cpu_n), 0) AS cpu_use, max(cpu_u_max) / 1e6 AS cpu_use_max,
    sum(pressure_u) / 1e6 / nullif(sum(pressure_n), 0) AS cpu_pressure,
    sum(others_u) / 1e6 / nullif(sum(others_n), 0) AS others_use, max(others_u_max) / 1e6 AS others_use_max,
    sum(gpu_u) / 1e6 / nullif(sum(gpu_n), 0) AS gpu_use, max(gpu_u_max) / 1e6 AS gpu_use_max,
    max(vram_used_bytes_max) AS vram_used_bytes_max, min(ram_available_bytes_min) AS ram_available_bytes_min,
    sum(running) * 1.0 / nullif(sum(running_n), 0) AS running, max(running_max) AS running_max,
    sum(backend_down) * 1.0 / nullif(sum(backend_n), 0) AS backend_down
FROM heartbeats GROUP BY minute_us, worker""",
}


def create() -> list[str]:
    """The statements that make an empty projection."""
    tables = {**APPENDED, "cell_key": CELL_KEY, "meta": META}
    statements = [f"CREATE TABLE {name} ({_columns(columns)})" for name, columns in tables.items()]
    statements.append(
        f"INSERT INTO meta VALUES ('layout', {LAYOUT}), ('events', 0), ('cells', 0), ('published', 0), ('heartbeats', 0)"
    )
    statements.append(REBUILD)
    return statements + [f"CREATE VIEW {name} AS {text}" for name, text in VIEWS.items()]
