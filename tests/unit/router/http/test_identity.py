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
        session_of({}, "a" * 129)


def test_the_prompt_cache_key_is_the_last_resort() -> None:
    assert session_of({}, fallback="k") == "k"
    assert session_of({"session-id": "s"}, fallback="k") == "s"
    assert session_of({}) is None
