"""How does ``/openapi.json`` come to be? FastAPI's list of paths, filled from the rows with schemas made of our own types.

Routes read their bodies themselves (``reading``), since every fault is to be named in its surface's form; so FastAPI knows
nothing of them. A path without a row is shown with its name alone.
"""

from __future__ import annotations

import warnings
from typing import Any

import msgspec
from fastapi import FastAPI

from services.router.http.openapi_rows import ERRORS, JSON, NDJSON, ROWS, SSE, WORDS, Row
from services.router.port import Readiness

REFS = "#/components/schemas/"
TEXT = {"type": "string"}
PLAIN: dict[str, dict[str, Any]] = {
    SSE: {"description": "each event", "type": "object", "properties": {"event": TEXT, "data": TEXT}},
    NDJSON: {"description": "each line", "type": "object"},
}
"""What is no single JSON value."""


def describe(app: FastAPI) -> None:
    """Let the application's ``/openapi.json`` be FastAPI's list of paths with what the table says of each."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of two methods with one name; each gets its own below
                app.openapi_schema = _described(plain())
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _described(document: dict[str, Any]) -> dict[str, Any]:
    schemas = _Schemas()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            operation["operationId"] = f"{method} {path}"
            if (row := ROWS.get((method, path))) is not None:
                _fill(operation, path, row, schemas)
            operation["responses"].pop("422", None)  # nobody here answers that
    document["components"] = {"schemas": schemas.found}
    return document


def _fill(operation: dict[str, Any], path: str, row: Row, schemas: _Schemas) -> None:
    if row.body is not None:
        content = {JSON: {"schema": schemas.of(row.body)}}
        operation["requestBody"] = {"required": not row.may_be_empty, "content": content}
    if row.query is not None:
        operation.setdefault("parameters", []).extend(schemas.query(row.query))
    answers = {
        media: {"schema": schemas.of(kind) if kind else PLAIN.get(media, TEXT)} for media, kind in row.answers.items()
    }
    said: dict[str, Any] = {"description": "as asked"} | ({"content": answers} if answers else {})
    operation["responses"] = {str(row.status): said}
    error = schemas.of(next(kind for beginning, kind in ERRORS if path.startswith(beginning)))
    for status in sorted(set(row.errors)):
        content = {JSON: {"schema": schemas.of(Readiness) if path == "/readyz" and status == 503 else error}}
        operation["responses"][str(status)] = {"description": WORDS[status], "content": content}


class _Schemas:
    """``found`` are all that were named."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    def of(self, kind: Any) -> dict[str, Any]:
        (schema,), components = msgspec.json.schema_components([kind], ref_template=REFS + "{name}")
        self.found |= components
        return schema

    def query(self, kind: Any) -> list[dict[str, Any]]:
        """A query string has no null; what is left out is unsaid."""
        fields = msgspec.json.schema_components([kind], ref_template=REFS + "{name}")[1][kind.__name__]
        return [
            {"name": name, "in": "query", "required": name in fields["required"], "schema": _not_null(schema)}
            for name, schema in fields["properties"].items()
        ]


def _not_null(schema: dict[str, Any]) -> dict[str, Any]:
    kept = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    return (
        kept[0] if len(kept) == 1 else {"anyOf": kept} if kept else {k: v for k, v in schema.items() if k != "default"}
    )
