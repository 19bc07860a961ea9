"""What somebody thinks of an answer, and which facts say so.

Answers "what does a thumb, or a pick out of a comparison, mean for which model?". The client's latest word about an answer
counts; the same word said twice is one. Pure: it neither finds the task nor stores anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from schemas.errors import HeadraceError
from schemas.events import AnyEvent, QualityJudged, TaskCancelled, TaskCompleted, TaskDead, TaskFailed, Terminal
from schemas.subjects import thumb_id

THUMBS: Mapping[int, float] = {-1: 0.0, 0: 0.5, 1: 1.0}
"""A thumb as a value."""


class Rating(msgspec.Struct, frozen=True, kw_only=True):
    """``client``'s word about the answer of ``task``, or of the task that was submitted as ``message``: ``value`` in [0, 1].
    ``own``: by that name only an answer of the client's own is meant; others' names are easily guessed."""

    client: str
    value: float
    task: str | None = None
    message: str | None = None
    comment: str | None = None
    own: bool = False


class Pick(msgspec.Struct, frozen=True, kw_only=True):
    """``client``'s choice among the answers of one comparison, by its entry's number or its task."""

    client: str
    compare: str
    chosen: int | str
    comment: str | None = None


class Rated(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored. ``before`` says that it already was: the same word, said again. ``supersedes`` is the fact it replaces,
    ``withdrawn`` are those of a former pick that count no more."""

    task: str
    events: tuple[QualityJudged, ...]
    before: bool
    supersedes: str | None = None
    withdrawn: tuple[str, ...] = ()


class NotRated(HeadraceError):
    """There is no answer that could be rated (yet); ``retry_after_s`` where there will be one."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """A fact about to be stored under ``msg_id``, or (``is_stored``) one that already is. ``supersedes`` is the one before."""

    event: QualityJudged
    msg_id: str = ""
    is_stored: bool = False
    supersedes: str | None = None


def end_in(events: Iterable[AnyEvent]) -> Terminal | None:
    """The first terminal fact counts."""
    return next((e for e in events if isinstance(e, TaskCompleted | TaskFailed | TaskCancelled | TaskDead)), None)


def answered(end: Terminal) -> TaskCompleted:
    """Raises NotRated where the end is not an answer."""
    if isinstance(end, TaskCompleted):
        return end
    match end:
        case TaskCancelled():
            how, why = "was cancelled", end.reason
        case TaskDead():
            how, why = "was given up", end.detail
        case _:
            how, why = f"failed ({end.failure})", end.detail
    told = f": {why}" if why else ""
    raise NotRated(f"task {end.task} {how}{told}; there is no answer to rate")


def about(end: TaskCompleted) -> dict[str, Any]:
    """Whose an answer is: a judgement's model, file, domain, machine and task."""
    return {
        "model": end.model, "digest": end.digest, "quantisation": end.quantisation, "domain": end.domain,
        "worker": end.worker, "tasks": (end.task,),
    }  # fmt: skip


def thumb(rating: Rating, end: TaskCompleted, events: Iterable[AnyEvent], envelope: Mapping[str, Any]) -> Word:
    """What to store of a rating. ``events`` are the facts of its task, in order."""
    before = latest(events, end.task, rating.client)
    event = QualityJudged(
        **envelope, cause=end.id, **_whose(end), source="thumb", value=rating.value, client=rating.client,
        comment=rating.comment,
    )  # fmt: skip
    return _word(event, before)


def preference(
    pick: Pick, own: TaskCompleted, peer: TaskCompleted, value: float, events: Iterable[AnyEvent],
    envelope: Mapping[str, Any],
) -> Word:  # fmt: skip
    """One side of a pair that somebody chose from. ``events`` are the facts of its own task."""
    before = latest(events, own.task, pick.client, peer.task)
    event = QualityJudged(
        **envelope, cause=own.id, **{**_whose(own), "tasks": (own.task, peer.task)}, source="thumb", value=value,
        client=pick.client, comment=pick.comment, peer=peer.model, peer_digest=peer.digest,
        pair=f"{pick.compare}.{'.'.join(sorted((own.task, peer.task)))}",
    )  # fmt: skip
    return _word(event, before, peer.task)


def preferences(events: Iterable[AnyEvent], task: str, client: str) -> list[QualityJudged]:
    """The client's last words about this answer beside others, as far as they count."""
    found: dict[tuple[str, ...], QualityJudged] = {}
    for event in events:
        match event:
            case QualityJudged(source="thumb", tasks=(own, _)) if (own, event.client) == (task, client):
                found[event.tasks] = event
    return [said for said in found.values() if said.weight]


def withdrawal(said: QualityJudged, events: Iterable[AnyEvent], envelope: Mapping[str, Any]) -> Word:
    """Instead of what was ``said`` of a pair: no preference, and no weight. ``events`` are the facts of its own task."""
    before = latest(events, said.tasks[0], said.client or "", said.tasks[1]) or said
    return _word(msgspec.structs.replace(said, **envelope, value=0.5, weight=0.0, comment=None), before, said.tasks[1])


def latest(events: Iterable[AnyEvent], task: str, client: str, peer: str | None = None) -> QualityJudged | None:
    """The client's last word about this answer, alone or beside ``peer``'s."""
    about_it = (task,) if peer is None else (task, peer)
    found = None
    for event in events:
        if isinstance(event, QualityJudged) and event.source == "thumb":
            found = event if (event.tasks, event.client) == (about_it, client) else found
    return found


def _whose(end: TaskCompleted) -> dict[str, Any]:
    """Where another model answered than was asked for, it is that one's answer, and nobody knows from which file."""
    if end.outcome != "substituted" or end.backend_model is None:
        return about(end)
    return {**about(end), "model": end.backend_model, "digest": None, "quantisation": None}


def _word(event: QualityJudged, before: QualityJudged | None, peer: str = "") -> Word:
    if before is not None and (before.value, before.comment) == (event.value, event.comment):
        return Word(event=before, is_stored=True)
    replaced = before.id if before is not None else None  # in the id: whoever goes back to a former word says it anew
    said = f"{event.value!r}\0{event.comment or ''}\0{replaced or ''}"
    return Word(event=event, msg_id=thumb_id(event.tasks[0], event.client or "", said, peer), supersedes=replaced)
