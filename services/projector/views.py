"""Every view of the projection: what people and ``headrace`` read.

Answers "how do sums, facts and reports become answers?". Described in docs/sql.md; names are public. They use nothing that
DuckDB 1.5 lacks, because its command line reads snapshots. What no sample measured is NULL, never 0.
"""

from __future__ import annotations

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
    shared_n, greatest(least(
        (shared_wus::DOUBLE * alone_wtok - shared_wtok::DOUBLE * alone_wus)
        / nullif(shared_wx::DOUBLE * alone_wus, 0), 1.5), 0) AS slowdown,
    busy_n, greatest(least(
        (busy_wus::DOUBLE * alone_wtok - busy_wtok::DOUBLE * alone_wus)
        / nullif(busy_wx::DOUBLE * alone_wtok, 0), 2), 0) AS others_weight,
    ok_n, fail_n, last_seq, make_timestamp(speed_at_us) AS last_at
FROM cells WHERE speed_at_us IS NOT NULL OR fail_n > 0""",
    "quality": """
SELECT model, domain, worker, digest, quality_n AS n, quality_wx / 1e6 / nullif(quality_w, 0) AS quality,
    quality_p50 / 1e6 AS quality_p50, quality_w / 1e6 / 1073741824 AS n_effective, judge_n, check_n, thumb_n, signal_n, void_n,
    (SELECT coalesce(sum(tally.n), 0)::BIGINT FROM unnest(pairs) AS held(tally)) AS pairs_n, last_seq,
    make_timestamp(quality_at_us) AS last_at
FROM cells WHERE judge_n + check_n + thumb_n + signal_n + void_n > 0""",
    "pairs": """
SELECT domain, model, tally.peer AS peer, sum(tally.n)::BIGINT AS n, sum(tally.x) / 1e6 AS wins,
    sum(tally.w) / 1e6 / 1073741824 AS n_effective, sum(tally.wx) / nullif(sum(tally.w), 0) / 1e6 AS share
FROM (SELECT domain, model, unnest(pairs) AS tally FROM cells) GROUP BY ALL""",
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
