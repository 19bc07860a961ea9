"""A request that another site's page made a browser send is known by its Origin, or by the name it asks for."""

from __future__ import annotations

import pytest

from services.router.http.same_site import is_foreign, is_ours


@pytest.mark.parametrize(
    "host",
    [
        "", "127.0.0.1:8420", "192.168.1.7:8420", "[::1]:8420", "localhost:8420", "router", "router:8420", "desk.local",
        "router.lan:8420", "host.docker.internal:8420", "desk.home.arpa", "LLM.example.org.:8420",
    ],
)  # fmt: skip
def test_addresses_and_names_that_nobody_can_buy_are_ours(host: str) -> None:
    assert is_ours(host, ("llm.example.org",))


@pytest.mark.parametrize(
    "host",
    ["evil.example:8420", "127.0.0.1.evil.example", "localhost.evil.example", "llm.example.org.evil.net", "[::1"],
)
def test_a_strangers_name_that_leads_here_is_not(host: str) -> None:
    assert not is_ours(host, ("llm.example.org",))


@pytest.mark.parametrize(
    ("method", "origin", "foreign"),
    [
        ("POST", "http://127.0.0.1:8420", False),
        ("POST", "HTTP://127.0.0.1:8420", False),
        ("POST", None, False),
        ("POST", "vscode-webview://abc", False),
        ("GET", "https://evil.example", False),
        ("POST", "https://evil.example", True),
        ("DELETE", "http://127.0.0.1:3000", True),
        ("POST", "null", True),
    ],
)
def test_a_change_is_foreign_where_a_page_of_another_origin_asks_for_it(
    method: str, origin: str | None, foreign: bool
) -> None:
    headers = {"host": "127.0.0.1:8420"} | ({"origin": origin} if origin is not None else {})
    assert is_foreign(method, headers) is foreign
