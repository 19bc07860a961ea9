"""The user whom Open WebUI signs for, and whoever only says so."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest

from services.router.http.user_token import LEEWAY_S, NotSigned, user_of_token

SECRET, NOW = "no secret of anybody, 32 bytes long", 1_764_460_800.0
USER = "5f0c1a52-6a5e-4a07-9a3c-0d9c7c0a4b11"
MADE_BY_0_12_4 = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
    "eyJzdWIiOiI1ZjBjMWE1Mi02YTVlLTRhMDctOWEzYy0wZDljN2MwYTRiMTEiLCJlbWFpbCI6ImFuYUBleGFtcGxlLm9yZyIsIm5hbWUiOiJBbmEiLCJyb2xl"
    "IjoidXNlciIsImlzcyI6Im9wZW4td2VidWkiLCJpYXQiOjE3NjQ0NjA4MDAsImV4cCI6MTc2NDQ2MTEwMH0."
    "nzYBnFNcduYVxcI83kjW27pLZxhi6Fu7vnocOZ8zuEs"
)
"""By its own _mint_forward_user_jwt and PyJWT 2.13, at NOW."""


def encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


def token(head: Any = None, secret: str = SECRET, **claims: Any) -> str:
    claims = {"sub": USER, "iss": "open-webui", "exp": NOW + 300, **claims}
    signed = f"{encoded(json.dumps(head or {'alg': 'HS256'}).encode())}.{encoded(json.dumps(claims).encode())}"
    return f"{signed}.{encoded(hmac.digest(secret.encode(), signed.encode(), hashlib.sha256))}"


def test_what_open_webui_makes_names_its_user() -> None:
    assert user_of_token(MADE_BY_0_12_4, SECRET, NOW) == USER
    assert user_of_token(MADE_BY_0_12_4, f" {SECRET}\n", NOW + 300 + LEEWAY_S) == USER
    assert user_of_token(token(), SECRET, NOW) == USER


@pytest.mark.parametrize(
    ("forged", "why"),
    [
        (token(secret="guessed"), "not signed"),
        (token(secret=""), "not signed"),
        (MADE_BY_0_12_4.replace("nzYB", "nzYC"), "not signed"),
        (MADE_BY_0_12_4.rpartition(".")[0] + ".", "not signed"),
        (MADE_BY_0_12_4.rpartition(".")[0], "not signed"),
        (token({"alg": "none"}), "HS256"),
        (token({"alg": "RS256"}), "HS256"),
        (token(exp=NOW - LEEWAY_S - 2), "ran out 62 s ago"),
        (token(exp="never"), "cannot be read"),
        (token(exp=None), "cannot be read"),
        (token(iss="somebody"), "not by open-webui"),
        (token(sub=" "), "names no user"),
        (token(sub=7), "cannot be read"),
        (token(more="x" * 9000), "HS256"),
        ("", "cannot be read"),
        ("a.b.c", "cannot be read"),
        ("é.é.é", "cannot be read"),
        (encoded(b'{"x":' + b"[" * 5000) + ".x.x", "cannot be read"),
        (token() + ".more", "cannot be read"),
    ],
)
def test_whatever_else_counts_for_nothing_and_says_why(forged: str, why: str) -> None:
    with pytest.raises(NotSigned, match=why) as refused:
        user_of_token(forged, SECRET, NOW)
    assert USER not in str(refused.value)
