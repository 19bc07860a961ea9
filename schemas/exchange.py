"""One stored event as a line of text, and back into any stream.

Answers "what must travel with an event so that folds elsewhere come out the same?": its bytes as they were stored, its
subject, its message id (or a second terminal fact could appear), its original time and its original sequence. It never
interprets an event: what this program does not know travels just as well.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from schemas.errors import InvalidEvent

ID_HEADER = "Nats-Msg-Id"
TIME_HEADER = "Headrace-At"
"""Original time of storage in microseconds since 1970. Folds take ages from it where it is there."""
SEQUENCE_HEADER = "Headrace-Seq"
"""Original sequence: what a decision's ``position`` counts in. Order is always the stream's own sequence."""


class Exported(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line. ``raw`` holds, in base64, what is not one line of JSON; then ``event`` is empty."""

    seq: int
    at_us: int
    subject: str
    msg_id: str | None = None
    event: msgspec.Raw = msgspec.Raw(b"null")
    raw: bytes | None = None

    @property
    def data(self) -> bytes:
        """The event's bytes, exactly as they were stored."""
        return bytes(self.event) if self.raw is None else self.raw

    def headers(self) -> dict[str, str]:
        """The headers to publish it with, the message id apart."""
        return {TIME_HEADER: str(self.at_us), SEQUENCE_HEADER: str(self.seq)}


def origin(seq: int, at_us: int, headers: Mapping[str, str] | None) -> tuple[int, int]:
    """(sequence, time) that a stored message had first; its present ones unless it was imported."""
    if headers is None or TIME_HEADER not in headers:
        return seq, at_us
    try:
        return int(headers.get(SEQUENCE_HEADER, seq)), int(headers[TIME_HEADER])
    except ValueError as error:
        raise InvalidEvent(
            f"message {seq} has an impossible {TIME_HEADER} or {SEQUENCE_HEADER} header: {error}"
        ) from None


def export_line(seq: int, at_us: int, subject: str, data: bytes, headers: Mapping[str, str] | None) -> bytes:
    """One line of an export, newline included. An imported event keeps the time and sequence that it had first."""
    first_seq, first_us = origin(seq, at_us, headers)
    event, raw = (msgspec.Raw(data), None) if _is_one_json_line(data) else (msgspec.Raw(b"null"), data)
    line = Exported(
        seq=first_seq, at_us=first_us, subject=subject, msg_id=(headers or {}).get(ID_HEADER), event=event, raw=raw
    )
    return msgspec.json.encode(line) + b"\n"


def parse_line(line: bytes) -> Exported:
    """Raises InvalidEvent for a line that no export has written."""
    try:
        return msgspec.json.decode(line, type=Exported)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidEvent(f"not a line of an export: {error}; it begins with {line[:60]!r}") from error


def _is_one_json_line(data: bytes) -> bool:
    if b"\n" in data or b"\r" in data or data != data.strip():
        return False
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
