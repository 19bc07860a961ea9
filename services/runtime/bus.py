"""What a process stores in JetStream and reads from it.

Answers "store this" and "what is stored there?". Publishing is pipelined: any number may be in flight [65,000/s, against 5,300/s
one by one]. Every stored message carries an id and is repeated under it until the server has answered, over reconnects and
restarts. It never uses nats-py's JetStream client, ``fetch`` or watchers.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import msgspec

from schemas.codec import encode
from schemas.errors import BusError
from schemas.events import Event, type_of
from schemas.subjects import event_subject
from services.runtime.answers import Answer
from services.runtime.connection import ANSWER_S, Connection, Listening
from services.runtime.ids import new_id
from services.runtime.nats_address import public_url
from services.runtime.stored import Headers, StoredMessage, parse_direct
from services.runtime.wire import Arrived

DEADLINE_S = 30.0
"""How long a publish is repeated before its caller hears of it: longer than a server's restart or a pause of 10 s."""
ASK_S = 10.0
CONSUMER_NOT_FOUND = 10014
DELETE_FAILED = 10057
STREAM_NOT_FOUND = 10059
WRONG_LAST_SEQUENCE = 10071

__all__ = ["Ack", "Bus", "Listening", "public_url"]


class Ack(NamedTuple):
    """``duplicate``: something is already stored under this message id, at ``seq``; read it before believing it is another's."""

    seq: int
    duplicate: bool


class _ApiError(msgspec.Struct):
    code: int = 0
    err_code: int = 0
    description: str = ""


class _PubAck(msgspec.Struct):
    seq: int = 0
    duplicate: bool = False
    error: _ApiError | None = None


def ack_of(subject: str, message: Arrived) -> Ack:
    """What the server said to a publish. Raises BusError where it refused it."""
    try:
        ack = msgspec.json.decode(message.data, type=_PubAck)
    except msgspec.DecodeError as error:
        raise BusError(f"{subject}: not a publish ack: {message.data[:80]!r}; is it a stream's subject?") from error
    if ack.error is not None:
        raise BusError(f"{subject}: {ack.error.description} ({ack.error.err_code})", ack.error.err_code)
    return Ack(ack.seq, ack.duplicate)


class Bus(Connection):
    """Made by ``await Bus.connect(…)``; an async context manager that closes it."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        super().__init__(url, options)
        self._again: set[asyncio.Task[Ack]] = set()

    async def publish_event(self, event: Event, msg_id: str, *, deadline_s: float = DEADLINE_S) -> Ack:
        """Store a fact under ``ev.<type>.<by>``."""
        return await self.publish_stored(
            event_subject(type_of(event), event.by), encode(event), msg_id, deadline_s=deadline_s
        )

    async def publish_stored(
        self,
        subject: str,
        data: bytes,
        msg_id: str,
        headers: Headers | None = None,
        *,
        deadline_s: float = DEADLINE_S,
    ) -> Ack:
        """Returns when the server has stored it. Repeated under the same id over reconnects, so that it is stored once;
        raises BusError on a refusal at once, and after ``deadline_s`` without an answer (it may be stored then)."""
        message = await self.call(subject, data, {**(headers or {}), "Nats-Msg-Id": msg_id}, deadline_s)
        return ack_of(subject, message)

    def try_stored(self, subject: str, data: bytes, msg_id: str, *, timeout_s: float) -> Answer | None:
        """One try, sent before this returns and without a task to wait for it. The answer is for ``ack_of``; None in it: none
        came, or the connection was lost, and it may be stored or not. None instead of it: nothing was sent."""
        return self.try_call(subject, data, {"Nats-Msg-Id": msg_id}, timeout_s)

    def storing(self, subject: str, data: bytes, msg_id: str) -> asyncio.Future[Ack]:
        """As ``publish_stored``, sent before this returns where it can be; only what does not go smoothly gets a task."""
        answer = self.try_stored(subject, data, msg_id, timeout_s=ANSWER_S)
        if answer is None:
            return asyncio.create_task(self.publish_stored(subject, data, msg_id))
        found: asyncio.Future[Ack] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(lambda answer: self._first_try(answer, found, subject, data, msg_id))
        return found

    def _first_try(self, answer: Answer, found: asyncio.Future[Ack], subject: str, data: bytes, msg_id: str) -> None:
        if found.done():
            return
        try:
            message = answer.result()
            if message is not None and not message.is_nobody:
                found.set_result(ack_of(subject, message))
                return
        except BusError as error:
            found.set_exception(error)
            return
        again = asyncio.create_task(self.publish_stored(subject, data, msg_id))
        self._again.add(again)
        again.add_done_callback(lambda again: self._tried_again(again, found))

    def _tried_again(self, again: asyncio.Task[Ack], found: asyncio.Future[Ack]) -> None:
        self._again.discard(again)
        if found.done() or again.cancelled():
            found.cancel()
        elif (error := again.exception()) is not None:
            found.set_exception(error)
        else:
            found.set_result(again.result())

    # -- reading -----------------------------------------------------------------------------------------------------------

    async def api(
        self, subject: str, payload: dict[str, Any] | None = None, *, deadline_s: float = ASK_S
    ) -> dict[str, Any]:
        """``$JS.API.<subject>``; raises BusError with the server's error code. Repeated over reconnects: ask only for what
        may be done twice."""
        data = msgspec.json.encode(payload) if payload is not None else b""
        message = await self.call(f"$JS.API.{subject}", data, None, deadline_s)
        answer: dict[str, Any] = msgspec.json.decode(message.data)
        if error := answer.get("error"):
            code = error.get("err_code")
            raise BusError(f"{subject}: {error.get('description')} ({code})", code)
        return answer

    async def stored(self, stream: str, seq: int) -> StoredMessage | None:
        return await self._direct(stream, {"seq": seq})

    async def last_for(self, stream: str, subject: str, asked: Answer | None = None) -> StoredMessage | None:
        """The last message on ``subject``, which may hold wildcards; by the answer to what was ``asked`` before, if one came."""
        return await self._direct(stream, {"last_by_subj": subject}, asked)

    def asking_last_for(self, stream: str, subject: str) -> Answer | None:
        """The question of ``last_for`` leaves now, and is waited for later, or never."""
        data = msgspec.json.encode({"last_by_subj": subject})
        return self.try_call(f"$JS.API.DIRECT.GET.{stream}", data, None, ANSWER_S)

    async def last_seq(self, stream: str) -> int:
        """The sequence of the stream's last message; 0 before the first."""
        info = await self.api(f"STREAM.INFO.{stream}")
        return int(info["state"]["last_seq"])

    async def delete_message(self, stream: str, seq: int, *, erase: bool = False) -> bool:
        """Frees a delivered item's place at once, which a purge does not [31 s]. False if it was gone already. ``erase``
        overwrites it on the disk, which costs a rewrite of its block."""
        try:
            await self.api(f"STREAM.MSG.DELETE.{stream}", {"seq": seq, "no_erase": not erase})
        except BusError as error:
            if error.code != DELETE_FAILED or "not permitted" in str(error):
                raise
            return False
        return True

    async def _direct(self, stream: str, query: dict[str, Any], asked: Answer | None = None) -> StoredMessage | None:
        message = await asked if asked is not None else None
        if message is None or message.is_nobody:
            message = await self.call(f"$JS.API.DIRECT.GET.{stream}", msgspec.json.encode(query), None, ASK_S)
        headers = message.headers
        status = "no headers" if headers is None else headers.status
        if status == "404":
            return None
        if headers is None or status is not None:
            raise BusError(f"direct get {query} from {stream}: {message.header!r}")
        return parse_direct(headers, message.data)

    # -- keys and values ---------------------------------------------------------------------------------------------------

    async def kv_put(self, bucket: str, key: str, data: bytes) -> int:
        """The new revision."""
        return (await self.publish_stored(f"$KV.{bucket}.{key}", data, new_id())).seq

    async def kv_get(self, bucket: str, key: str) -> StoredMessage | None:
        """``seq`` is the revision. A deleted key is None."""
        found = await self.last_for(f"KV_{bucket}", f"$KV.{bucket}.{key}")
        return None if found is None or "KV-Operation" in (found.headers or {}) else found

    async def kv_update(self, bucket: str, key: str, data: bytes, revision: int) -> int:
        """Compare and set; ``revision`` 0 creates. Raises BusError with WRONG_LAST_SEQUENCE where another was faster."""
        expected = {"Nats-Expected-Last-Subject-Sequence": str(revision)}
        return (await self.publish_stored(f"$KV.{bucket}.{key}", data, new_id(), expected)).seq
