"""Every subject and message id, in one place, built and parsed.

Answers "where does this go, and what is it called?". See PROTOCOL.md, "Subjects".
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from schemas.errors import InvalidToken
from schemas.tokens import decode_token, encode_token

ANY_LANE = "any"
EVENTS_ALL = "ev.>"
HEARTBEATS_ALL = "hb.*"
CREDITS_ALL = "credit.*"
ROUTER_CANCEL = "rpc.router.cancel"
PROJECTOR_TASK = "rpc.projector.task"
PROJECTOR_STATUS = "rpc.projector.status"
PROJECTOR_AS_OF = "rpc.projector.as_of"
PROJECTOR_JUDGES = "rpc.projector.judges"
BENCH_RUN = "rpc.benchmarker.run"
BENCH_SHOW = "rpc.benchmarker.show"
BENCH_CANCEL = "rpc.benchmarker.cancel"
BENCH_OWED = "rpc.benchmarker.owed"
STATS_BUCKET = "stats"
ROUTER_BUCKET = "router"
SNAPSHOT_KEY = "snapshot"
DISPATCHER_KEY = "dispatcher"
BENCHMARKER_KEY = "benchmarker"
STATS_KEYSET = "mdw"
STATS_POSITION_KEY = "position"
"""Written after each batch of cells: the position that all of them together reach (``schemas.census``)."""


class ItemSubject(NamedTuple):
    """A work item's subject, taken apart."""

    capability: str
    model: str
    lane: str
    task: str
    attempt: int


def worker_token(worker: str) -> str:
    """The token of a worker's id. ``any`` raises InvalidToken: its lane would be every group's."""
    if worker == ANY_LANE:
        raise InvalidToken(
            f"a worker cannot be called {ANY_LANE!r}: that is the lane of every group; choose another id"
        )
    return encode_token(worker)


def event_subject(event_type: str, by: str) -> str:
    """``task.submitted`` said by ``router-1`` -> ``ev.task.submitted.router-1``."""
    return f"ev.{event_type}.{encode_token(by)}"


def heartbeat_subject(worker: str) -> str:
    return f"hb.{worker_token(worker)}"


def body_subject(client: str, task: str) -> str:
    return f"task.in.{encode_token(client)}.{encode_token(task)}"


def answer_subject(client: str, task: str, attempt: int) -> str:
    return f"task.out.{encode_token(client)}.{encode_token(task)}.{attempt}"


def item_subject(capability: str, model: str, lane: str, task: str, attempt: int) -> str:
    return ".".join(
        ("task.q", *(encode_token(part) for part in (capability, model, lane, task)), str(attempt)),
    )


def parse_item_subject(subject: str) -> ItemSubject:
    """Raises InvalidToken for a subject that is not a work item's."""
    parts = subject.split(".")
    if len(parts) != 7 or parts[:2] != ["task", "q"] or not (parts[6].isascii() and parts[6].isdigit()):
        raise InvalidToken(
            f"{subject!r} is not a work item; expected task.q.<capability>.<model>.<lane>.<task>.<attempt>"
        )
    capability, model, lane, task = (decode_token(part) for part in parts[2:6])
    return ItemSubject(capability, model, lane, task, int(parts[6]))


def token_subject(worker: str, task: str) -> str:
    return f"tok.{worker_token(worker)}.{encode_token(task)}"


def credit_subject(worker: str) -> str:
    return f"credit.{worker_token(worker)}"


def control_subject(worker: str) -> str:
    return f"ctl.{worker_token(worker)}"


def pull_subject(worker: str, pull: str) -> str:
    """How far a download of a model is."""
    return f"pull.{worker_token(worker)}.{encode_token(pull)}"


def pulse_subject(router: str) -> str:
    """The router's own heartbeat, which it hears back through the server: its only measure of silence."""
    return f"pulse.{encode_token(router)}"


def group_filter(capability: str, model: str) -> str:
    return f"task.q.{encode_token(capability)}.{encode_token(model)}.{ANY_LANE}.>"


def lane_filter(worker: str) -> str:
    return f"task.q.*.*.{worker_token(worker)}.>"


def group_durable(capability: str, model: str) -> str:
    """The durable name of a consumer group; ``~`` separates because a token never contains it.

    Above 200 bytes (the server's limit is 255) the names become a hash; the consumer's metadata keep the real ones.
    """
    return _durable(f"g~{encode_token(capability)}~{encode_token(model)}")


def lane_durable(worker: str) -> str:
    return _durable(f"l~{worker_token(worker)}")


def _durable(name: str) -> str:
    return name if len(name) <= 200 else f"{name[:2]}~{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def stats_key(model: str, domain: str, worker: str | None, keyset: str = STATS_KEYSET) -> str:
    """KV key of a finest cell. An unknown worker is the token ``=``, which no name encodes to."""
    last = encode_token(worker) if worker is not None else "="
    return f"{keyset}.{encode_token(model)}.{encode_token(domain)}.{last}"


def is_stats_position(subject: str) -> bool:
    """Whether a message of the bucket is the marker of a batch, not a cell."""
    return subject == f"$KV.{STATS_BUCKET}.{STATS_POSITION_KEY}"


def submit_id(task: str) -> str:
    return task


def routed_id(task: str) -> str:
    return f"{task}.routed"


def release_id(task: str, attempt: int) -> str:
    return f"{task}.{attempt}.rel"


def item_id(task: str, attempt: int) -> str:
    return f"{task}.{attempt}"


def start_id(task: str, attempt: int) -> str:
    """The claim's id: whoever stores first under it decides whether the attempt ever runs."""
    return f"{task}.{attempt}.start"


def fail_id(task: str, attempt: int, epoch: int | None = None) -> str:
    """A worker's failure, or, with an epoch, a router's word that the attempt is lost."""
    return f"{task}.{attempt}.fail" if epoch is None else f"{task}.{attempt}.fail.{epoch}"


def resume_id(worker: str, until_us: int) -> str:
    """The end of one pause, whoever notices it first."""
    return f"{worker}.resume.{until_us}"


def thumb_id(task: str, client: str, said: str, other: str = "") -> str:
    """One client's word about one answer, or about it beside ``other``: the same word, said twice, is stored once."""
    digest = hashlib.sha256("\0".join((said, other)).encode()).hexdigest()[:16]
    return f"{task}.thumb.{encode_token(client)}.{digest}"


def signal_id(task: str, signal: str) -> str:
    """Weak evidence against an answer: each kind once, whoever notices it."""
    return f"{task}.signal.{signal}"


def end_id(task: str) -> str:
    """The terminal fact's id: one per task."""
    return f"{task}.end"


def bench_id(task: str) -> str:
    """A suite prompt's verdict: one per task."""
    return f"{task}.bench"


def check_id(task: str) -> str:
    """The judgement that a check made of a task's answer."""
    return f"{task}.check"
