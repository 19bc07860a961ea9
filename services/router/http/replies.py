"""A value as JSON. FastAPI's own encoder neither knows msgspec's structs nor is fast (field notes on DuckDB, section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

_encoder = msgspec.json.Encoder()


class Json(Response):
    """``Json(value)``: dictionaries, structs and events alike."""

    media_type = "application/json"

    def __init__(self, value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(_encoder.encode(value), status, headers)
