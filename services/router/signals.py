"""Weak evidence that nobody gave on purpose: an answer that is empty, cut off, in the wrong language, by another model, or asked
again at once.

Answers "does this end, or this question, speak against an answer?". Each is called what it is, weak, and counts once for each
answer. A text is remembered as a salted digest, in memory alone: neither it nor its digest ever goes into the log. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from schemas.events import Outcome, QualityJudged, TaskCompleted
from services.router.port import NewTask
from services.router.rating import about

OUTCOMES: Mapping[Outcome, str] = {
    "empty": "empty",
    "truncated": "cut_off",
    "wrong_language": "wrong_language",
    "substituted": "other_model",
}
"""Stopping at the client's own max_tokens, or at the machine's, is no outcome of its own: it is what was asked for."""
ROOM_TOKENS = 16
"""What a full window may leave: llama.cpp and vLLM leave nothing, Ollama what an image's tokens need together."""
ASKED_AGAIN = "asked_again"
WORDS: Mapping[str, str] = {
    "empty": "the answer was empty",
    "cut_off": "the answer was cut off",
    "wrong_language": "the answer was in another language than the question",
    "other_model": "another model answered than was asked for",
    ASKED_AGAIN: "asked again at once",
}
AGAIN_S = 60.0
"""After a minute one asks the same for other reasons than the answer."""
AGAIN_MOST = 2
"""Who asks the same a fourth time within that time is a program, and its answers are not worse for it."""
REMEMBERED = 5_000
"""Two digests and an id each: about a megabyte."""


def words_of(signal: str | None) -> str:
    """``asked again at once: weak evidence against it``."""
    return f"{WORDS.get(signal or '', signal or 'a signal')}: weak evidence against it"


def signal_of(end: TaskCompleted) -> str | None:
    """What the answer itself says against it. Bench work has its checks and judges, which say more. A cut by the window says
    how long the window is."""
    if end.kind in ("bench", "embedding") or (end.outcome == "truncated" and not _had_room(end)):
        return None
    return OUTCOMES.get(end.outcome)


def _had_room(end: TaskCompleted) -> bool:
    """Prompt and answer are known to have left a part of the window: the server cut it for a reason of its own."""
    window, prompt, output = end.context, end.tokens.prompt, end.tokens.output
    if window is None or prompt is None or output is None:
        return False
    return prompt + output + ROOM_TOKENS < window


def signal_event(end: TaskCompleted, signal: str, *, cause: str, envelope: Mapping[str, Any]) -> QualityJudged:
    """The fact, against the answer that ended so."""
    return QualityJudged(**envelope, cause=cause, **about(end), source="signal", value=0.0, signal=signal)


class Asked(msgspec.Struct, kw_only=True):
    """A question that may come again. ``ended_s`` is when its answer was whole, ``times`` how often it had been asked before."""

    task: str
    times: int
    ended_s: float | None = None


class Repeats:
    """The latest questions. ``salt`` is this process's own, so that nobody can look a text up by its digest."""

    def __init__(self, salt: bytes) -> None:
        self._salt = salt
        self._asked: dict[bytes, Asked] = {}
        self._digests: dict[str, bytes] = {}

    def digest(self, new: NewTask) -> bytes | None:
        """Of who asks what of whom; None for what is no person's question: a script's, a comparison's, a part of something."""
        if new.kind not in ("chat", "completion") or new.urgency != "interactive" or new.parent is not None:
            return None
        body, wants = new.body, new.wants
        asked = (new.client, body.messages, body.prompt, wants.model, wants.route, wants.worker, new.options.max_tokens)
        return hashlib.blake2b(msgspec.json.encode(asked), key=self._salt, digest_size=16).digest()

    def earlier(self, digest: bytes, now: float) -> str | None:
        """The task whose answer this question speaks against: complete, and not older than ``AGAIN_S``."""
        found = self._asked.get(digest)
        if found is None or found.times >= AGAIN_MOST or not _is_recent(found, now):
            return None
        return found.task

    def remember(self, digest: bytes, task: str, now: float) -> None:
        before = self._asked.pop(digest, None)
        if before is not None:
            self._digests.pop(before.task, None)
        times = before.times + 1 if before is not None and _is_recent(before, now) else 0
        self._asked[digest] = Asked(task=task, times=times)
        self._digests[task] = digest
        while len(self._asked) > REMEMBERED:
            oldest = self._asked.pop(next(iter(self._asked)))
            self._digests.pop(oldest.task, None)

    def completed(self, task: str, now: float) -> None:
        digest = self._digests.get(task)
        if digest is not None:
            self._asked[digest].ended_s = now

    def forget(self, tasks: Iterable[str]) -> None:
        """What failed or was cancelled is asked again for want of an answer."""
        for task in tasks:
            digest = self._digests.pop(task, None)
            if digest is not None:
                del self._asked[digest]


def _is_recent(asked: Asked, now: float) -> bool:
    return asked.ended_s is not None and now - asked.ended_s <= AGAIN_S
