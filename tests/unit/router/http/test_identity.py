from __future__ import annotations

import pytest

from services.router.http.identity import NAME_CHARS_MAX, client_of, session_of
from services.router.http.reading import BadRequest


def test_a_token_is_known_by_its_hash_and_never_by_itself() -> None:
    client = client_of({"authorization": "Bearer secret"})
    assert client == client_of({"authorization": "bearer  secret"})
    assert client.startswith("key-")
    assert "secret" not in client
    assert client != client_of({"authorization": "Bearer other"})


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer ", "Basic YTpi"])
def test_without_a_token_a_client_is_local(authorization: str) -> None:
    assert client_of({"authorization": authorization}) == "local"


def test_a_name_too_long_for_a_subject_is_refused() -> None:
    assert len(client_of({}, "a" * NAME_CHARS_MAX)) == NAME_CHARS_MAX
    with pytest.raises(BadRequest, match="client has 129"):
        client_of({"x-headrace-client": "a" * 129})
    with pytest.raises(BadRequest, match="session has 129"):
        session_of({}, named="a" * 129)


CHAIN = {"session-id": "s", "x-client-request-id": "r", "x-openwebui-chat-id": "o"}


def test_the_session_is_the_first_of_the_chain_that_is_there() -> None:
    rest = dict(CHAIN)
    for header in ("session-id", "x-client-request-id"):
        assert session_of(rest, "/v1/messages", cache_key="k") == CHAIN[header]
        del rest[header]
    assert session_of(rest, "/v1/messages", cache_key="k") == "k"
    assert session_of(rest, "/v1/messages") == "o"
    assert session_of({}, "/v1/messages") is None
    assert session_of(CHAIN, named="mine") == "mine"


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages", "/responses/", "/messages"])
def test_the_body_names_a_session_where_its_path_means_one_by_that(path: str) -> None:
    assert session_of({}, path, cache_key="k") == "k"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "", "/route"])
def test_elsewhere_the_body_key_is_no_conversation(path: str) -> None:
    assert session_of({}, path, cache_key="k") is None
