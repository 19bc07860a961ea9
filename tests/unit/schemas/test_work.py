from __future__ import annotations

from typing import Any

import msgspec
import pytest

from schemas import work
from schemas.errors import InvalidEvent
from schemas.events import Options, Tokens

ITEM = work.WorkItem(
    task="t1",
    attempt=1,
    epoch=3,
    model="qwen3:8b",
    capability="cpu_inference",
    lane="any",
    domain="code",
    client="me",
    body="task.in.me.t1",
    options=Options(max_tokens=64),
)
MESSAGES: list[work.Wire] = [
    work.Body(messages=({"role": "user", "content": "こんにちは 🧭"},), extra={"stop": ["\n"], "think": False}),
    work.Body(inputs=("a", "b")),
    ITEM,
    work.Answer(task="t1", attempt=1, model="m", worker="w", text="はい", tokens=Tokens(prompt=3, output=None)),
    work.TokenChunk(task="t1", attempt=1, index=0, text="は", tool_calls=({"index": 0, "id": "c"},)),
    work.Control(command="hello", router="r1", epoch=3, armable=("g~cpu~m",), want_report=True),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_comes_back_as_it_was_sent(message: work.Wire) -> None:
    assert work.decode_wire(work.encode_wire(message), type(message)) == message


def test_a_client_s_own_fields_pass_unread() -> None:
    raw = b'{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:x"}}]}],"extra":{"n":[1,null]}}'
    assert work.encode_wire(work.decode_wire(raw, work.Body)).startswith(raw[:60])
    assert work.decode_wire(raw, work.Body).extra == {"n": [1, None]}


def test_a_newer_sender_is_understood() -> None:
    fields = msgspec.json.decode(work.encode_wire(ITEM)) | {"colour": "green"}
    assert work.decode_wire(msgspec.json.encode(fields), work.WorkItem) == ITEM


def test_an_older_sender_is_understood() -> None:
    fields: dict[str, Any] = msgspec.json.decode(work.encode_wire(ITEM))
    for later in ("holders", "language", "timeout_s"):
        del fields[later]
    assert work.decode_wire(msgspec.json.encode(fields), work.WorkItem) == ITEM


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", work.Body),
        (b"{}", work.WorkItem),
        (b'{"command":"explode"}', work.Control),
        (b'{"extra":{"x":' + b"[" * 99_999, work.Body),
        (b"\xff", work.TokenChunk),
    ],
    ids=["nothing", "no fields", "unknown command", "depth", "no text"],
)
def test_bad_bytes_are_named_by_what_they_should_have_been(data: bytes, kind: type[work.Wire]) -> None:
    with pytest.raises(InvalidEvent, match=f"not a {kind.__name__}"):
        work.decode_wire(data, kind)
