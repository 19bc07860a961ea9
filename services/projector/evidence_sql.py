"""``schemas.evidence`` in SQL: which samples of a cell count, and how much.

Answers "what does the fold add up?". ``weighed`` is a chain of common table expressions whose last, ``weighed``, has one row per
counting sample with ``old`` (from before the restart), ``w`` and ``gw``; ``states`` has one per cell. Integers only.
"""

from __future__ import annotations

from schemas.cells import BUSY_LEAST_U
from schemas.evidence import (
    DRIFT_BEFORE,
    DRIFT_BEFORE_LEAST,
    DRIFT_PRIOR_HALVES,
    DRIFT_RUN,
    DRIFT_TENTHS,
    DRIFT_TOKENS_LEAST,
    FREE_LEAST_U,
    PRIOR_HALVES,
)
from schemas.samples import UNIT
from schemas.weights import FRACTIONS, HALF_LIFE_SAMPLES, HALF_LIFE_US, STEPS, WEIGHT_BITS

MORE = "greatest(coalesce(concurrency, 1) - 1, 0)"
"""``schemas.cells.more_streams``."""


def free(us: str) -> str:
    """``schemas.evidence.free_us``."""
    return f"({us} * greatest({UNIT} - coalesce(others_u, 0), {FREE_LEAST_U}) // {UNIT})"


def _weigh(step: str) -> str:
    """``schemas.weights.weight``."""
    fractions = f"[{', '.join(map(str, FRACTIONS))}]::BIGINT[]"
    known = f"list_extract({fractions}, {step} % {STEPS} + 1) >> ({step} // {STEPS})"
    return f"CASE WHEN {step} < {WEIGHT_BITS * STEPS} THEN {known} ELSE 0 END"


def _younger(step: str) -> str:
    return f"{step} * {STEPS} // {HALF_LIFE_SAMPLES}"


def _older(us: str) -> str:
    return f"{us} * {STEPS} // {HALF_LIFE_US}"


def _circumstance() -> str:
    """``schemas.cells._circumstance``, of the present state only."""
    short = f"coalesce(decode_us, 0) <= 0 OR coalesce(decode_tok, 0) < {DRIFT_TOKENS_LEAST}"
    quiet = f"coalesce(others_u, 0) < {BUSY_LEAST_U}"
    return (
        f"CASE WHEN old OR kind <> 'speed' OR {short} THEN NULL "
        f"WHEN {quiet} THEN if({MORE} > 0, 'shared', 'alone') WHEN {MORE} = 0 THEN 'busy' END"
    )


def _now(attribute: str) -> str:
    """``schemas.evidence._identity``: what ran decides, else what was judged."""
    ran, was_judged = (
        f"arg_max({attribute}, seq) FILTER (WHERE kind = '{kind}' AND {attribute} IS NOT NULL)"
        for kind in ("speed", "quality")
    )
    decides = f"if(bool_or(kind = 'speed' AND {attribute} IS NOT NULL), 'speed', 'quality')"
    return f"coalesce({ran}, {was_judged}) AS {attribute}, {decides} AS {attribute}_by"


def _until(attribute: str) -> str:
    differs = f"p.kind = n.{attribute}_by AND p.{attribute} <> n.{attribute}"
    return f"coalesce(max(p.seq) FILTER (WHERE {differs}), 0) AS {attribute}_until"


def _divided(where: str) -> str:
    """``schemas.evidence.divide``, but for drift."""
    return f"""
picked AS (
    SELECT s.* EXCLUDE (cid, attempt, outcome, finish_reason, prompt_tok, cached_tok, thinking_tok, prompt_chars)
        REPLACE (if(kind = 'quality' AND (quality_u IS NULL OR coalesce(quality_w_u, 0) = 0), 'void', kind) AS kind), k.cell,
        k.model, k.domain, k.worker, k.digest, k.quantisation, k.model_bytes, k.task_kind
    FROM samples s JOIN cell_key k USING (cid) WHERE {where}
), replaced AS (
    SELECT seq FROM picked WHERE source IN ('thumb', 'signal') AND task IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY cell, source, task, judge, peer ORDER BY seq DESC) > 1
    UNION ALL SELECT seq FROM picked WHERE source IN ('check', 'judge') AND topic IS NOT NULL AND kind = 'quality'
    QUALIFY row_number() OVER (
        PARTITION BY cell, source, topic, if(source = 'judge', judge, NULL), peer, digest ORDER BY seq DESC) > 1
), counted AS (
    SELECT * EXCLUDE (model, domain, worker, task, judge, topic) FROM picked ANTI JOIN replaced USING (seq)
), identities AS (
    SELECT cell, {_now("digest")}, {_now("quantisation")} FROM counted GROUP BY cell
), changes AS (
    SELECT p.cell, any_value(n.digest) AS digest, any_value(n.quantisation) AS quantisation,
        {_until("digest")}, {_until("quantisation")}
    FROM counted p JOIN identities n ON p.cell = n.cell GROUP BY p.cell
), divided AS (
    SELECT p.* EXCLUDE (digest, quantisation), p.seq <= greatest(c.digest_until, c.quantisation_until)
        OR coalesce(p.digest <> c.digest, false) OR coalesce(p.quantisation <> c.quantisation, false) AS other
    FROM counted p JOIN changes c ON p.cell = c.cell
)"""


def _drifted() -> str:
    """``schemas.evidence._drifted``."""
    faster = f"10 * slowest::HUGEINT > {DRIFT_TENTHS} * median::HUGEINT"
    slower = f"{DRIFT_TENTHS} * fastest::HUGEINT < 10 * median::HUGEINT"
    return f"""
rates AS (
    SELECT cell, seq, decode_tok * {1000 * UNIT} // nullif({free("decode_us")}, 0) AS rate
    FROM divided
    WHERE NOT other AND kind = 'speed' AND decode_us > 3 AND decode_tok >= {DRIFT_TOKENS_LEAST} AND coalesce(concurrency, 1) = 1
), runs AS (
    SELECT cell, seq, lag(seq, {DRIFT_RUN - 1}) OVER (PARTITION BY cell ORDER BY seq) AS first_seq,
        min(rate) OVER run AS slowest, max(rate) OVER run AS fastest,
        quantile_disc(rate, 0.5) OVER before AS median, count(*) OVER before AS n
    FROM rates
    WINDOW run AS (PARTITION BY cell ORDER BY seq ROWS BETWEEN {DRIFT_RUN - 1} PRECEDING AND CURRENT ROW),
        before AS (PARTITION BY cell ORDER BY seq
            ROWS BETWEEN {DRIFT_BEFORE + DRIFT_RUN - 1} PRECEDING AND {DRIFT_RUN} PRECEDING)
), told AS (
    SELECT cell, seq, first_seq, coalesce(n >= {DRIFT_BEFORE_LEAST} AND ({faster} OR {slower}), false) AS off FROM runs
), begun AS (
    SELECT cell, first_seq FROM told QUALIFY off AND NOT lag(off, 1, false) OVER (PARTITION BY cell ORDER BY seq)
), states AS (
    SELECT c.*, coalesce(d.seq, 0) AS drifted, CASE WHEN d.seq IS NOT NULL THEN 'drift'
        WHEN greatest(digest_until, quantisation_until) = 0 THEN NULL
        WHEN digest_until >= quantisation_until THEN 'digest' ELSE 'quantisation' END AS why
    FROM changes c LEFT JOIN (SELECT cell, max(first_seq) AS seq FROM begun GROUP BY cell) d ON c.cell = d.cell
)"""


def weighed(where: str) -> str:
    """``schemas.evidence.weighed``. ``where`` chooses cells by ``k.cell``.

    Each step takes along what a later one needs and nothing else: whole rows cost a third more."""
    return f"""{_divided(where)}, {_drifted()}, parted AS (
    SELECT p.* EXCLUDE (other), other OR (p.kind = 'speed' AND p.seq < s.drifted) AS old
    FROM divided p JOIN states s ON p.cell = s.cell WHERE NOT (other AND p.kind IN ('failure', 'void'))
), grouped AS (
    SELECT *, {_circumstance()} AS circumstance FROM parted
), aged AS (
    SELECT *,
        {_older("(max(at_us) OVER (PARTITION BY cell, kind) - at_us)")} AS faded,
        row_number() OVER (PARTITION BY cell, kind, peer ORDER BY old, seq DESC) - 1 AS younger,
        {_younger("(row_number() OVER (PARTITION BY cell, circumstance ORDER BY seq DESC) - 1)")} AS gstep
    FROM grouped
), fresh AS (
    SELECT *, {_weigh(f"(faded + {_younger('younger')})")} AS w, {_weigh("(faded + gstep)")} AS gw FROM aged
), past AS (
    SELECT cell, kind, sum(w) FILTER (WHERE old)::BIGINT AS total, count(*) FILTER (WHERE NOT old) AS now_n,
        {_younger("count(*) FILTER (WHERE NOT old)")} + {_older("(max(at_us) - max(at_us) FILTER (WHERE old))")} AS step
    FROM fresh GROUP BY cell, kind HAVING bool_or(old)
), priors AS (
    SELECT p.*, least(total, if(kind = 'speed' AND why = 'drift', {DRIFT_PRIOR_HALVES}, {PRIOR_HALVES}) * ({_weigh("step")}) // 2)
        AS most FROM past p JOIN states s ON p.cell = s.cell
), weighed AS (
    SELECT f.* REPLACE (CASE WHEN f.old THEN coalesce(f.w * p.most // nullif(p.total, 0), 0) ELSE f.w END AS w),
        f.old AND f.kind = 'speed' AND f.younger - p.now_n < {DRIFT_BEFORE} AS last_before
    FROM fresh f LEFT JOIN priors p ON f.cell = p.cell AND f.kind = p.kind
)"""
