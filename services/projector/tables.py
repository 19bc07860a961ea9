"""Every table of the projection: its columns, how it is made and appended to.

Answers "what is stored?". docs/sql.md describes it for people; names are public. All tables are append-only but for ``cells``
(``cells_sql``) and ``meta``; what people read is mostly ``views``.
"""

from __future__ import annotations

import json

from services.projector.cells_sql import REBUILD
from services.projector.views import VIEWS

LAYOUT = 5
"""Changes with any table here and with the fold: a file of another layout is set aside and the log replayed."""

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
    **dict.fromkeys("source judge peer topic".split(), "VARCHAR"),
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
    "message": "VARCHAR",
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
    **dict.fromkeys("others_use others_weight slowdown others_s".split(), "DOUBLE"),
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
JUDGEMENTS: Columns = {
    "seq": "UBIGINT",
    "at_us": "BIGINT",
    **dict.fromkeys("kind pair judge judge_digest model peer domain".split(), "VARCHAR"),
    "value": "DOUBLE",
    "weight": "DOUBLE",
    "picks": "VARCHAR[]",
    "chars": "BIGINT[]",
    "kin": "BOOLEAN",
    "tasks": "VARCHAR[]",
    "client": "VARCHAR",
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
    "judgements": JUDGEMENTS,
    "dead": DEAD,
    "heartbeats": HEARTBEATS,
}


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


def create() -> list[str]:
    """The statements that make an empty projection."""
    tables = {**APPENDED, "cell_key": CELL_KEY, "meta": META}
    statements = [f"CREATE TABLE {name} ({_columns(columns)})" for name, columns in tables.items()]
    statements.append(
        f"INSERT INTO meta VALUES ('layout', {LAYOUT}), ('events', 0), ('cells', 0), ('published', 0), ('heartbeats', 0)"
    )
    statements.append(REBUILD)
    return statements + [f"CREATE VIEW {name} AS {text}" for name, text in VIEWS.items()]
