"""What a decision reads of a request, from the log."""

from __future__ import annotations

import msgspec

from schemas.events import Options, TaskSubmitted
from services.router.policy.request import request_of
from support.builders import build


def test_a_requests_limit_is_its_own_and_an_embeddings_none_at_all() -> None:
    chat = build(TaskSubmitted, options=Options(max_tokens=50))
    assert request_of(chat).max_tokens == 50
    assert request_of(msgspec.structs.replace(chat, kind="embedding")).max_tokens == 0
