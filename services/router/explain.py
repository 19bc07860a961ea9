"""A task's story in words: asked, decided, waited, released, run, ended.

Answers "what happened to my task, and why?" from its events and its status. It tells only what they say; where another machine
served than was expected, or an attempt failed, it says so. ``decision_words`` has the decision, ``comparison`` two of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from schemas.events import (
    AnyEvent,
    AttemptFailed,
    QualityJudged,
    TaskCancelled,
    TaskCompleted,
    TaskDead,
    TaskFailed,
    TaskReleased,
    TaskRouted,
    TaskStarted,
    TaskSubmitted,
)
from services.router.asked_words import asked_words
from services.router.comparison import compare
from services.router.decision_words import Names, decision_words, seconds
from services.router.judgement_words import judgement_words, replaced
from services.router.port import TaskStatus

__all__ = ["compare", "decision_words", "explain_words", "hold_words"]

_FAILURES = {
    "busy": "the backend was busy",
    "stall": "the stream stood still",
    "disconnect": "the connection broke",
    "oom": "it ran out of memory",
    "protocol": "the backend broke its protocol",
    "refused": "the worker may not serve it",
    "timeout": "it took too long",
    "rejected": "the backend refused the request",
    "not_started": "it did not start in time",
    "lost": "the machine fell silent",
    "fenced": "another attempt had already answered",
}
_HOLDS = {
    "waiting_for_faster": "a faster machine is worth waiting for",
    "model_full": "as many tasks of this model run as may",
    "client_full": "as many tasks of this client run as may",
    "backend_full": "as many tasks run on this backend as may",
    "busy": "every machine that could answer is busy",
    "no_worker": "no machine that holds the model is there",
    "silent": "no machine that could answer was heard lately",
    "no_capability": "no machine has what the task needs",
    "no_model": "no machine can answer this yet",
    "routing": "the model is being chosen",
    "backoff": "the last attempt failed; the backend gets a pause",
}
# A shorter part of an answer's time explains nothing.
_TOLD_TIME_S = 0.005
# A shorter hold is the time that a release takes anyway.
_TOLD_HOLD_S = 0.1
_OUTCOMES = {
    "ok": "",
    "empty": " The answer was empty, which counts as no success.",
    "truncated": " The answer was cut off.",
    "substituted": " Another model answered than was asked for.",
    "wrong_language": " The answer is in another language than the question.",
}


def explain_words(
    status: TaskStatus, routed: TaskRouted | None, events: Iterable[AnyEvent], names: Names | None = None
) -> list[str]:
    """Sentences in the order of the log. ``names`` maps workers' ids to their names; without it ids are shown."""
    names = names or {}
    known = list(events)
    words: list[str] = []
    if routed is None or not any(isinstance(event, TaskRouted) for event in known):
        words = [
            *(asked_words(e, names) for e in known if isinstance(e, TaskSubmitted)),
            *_decided(status, routed, names),
        ]
        known = [event for event in known if not isinstance(event, TaskSubmitted)]
    expected: dict[int, TaskReleased] = {}
    started: dict[int, TaskStarted] = {}
    taken_back = replaced(known)
    for event in known:
        if isinstance(event, TaskReleased):
            expected[event.attempt] = event
        if isinstance(event, TaskStarted):
            started[event.attempt] = event
        told = _event_words(event, routed, expected, names)
        words += [f"{line[:-1]} (replaced by a later word)." for line in told] if event.id in taken_back else told
    return words + _now(status, names)


def story_words(
    status: TaskStatus, routed: TaskRouted | None, events: Iterable[AnyEvent], names: Names | None = None
) -> list[str]:
    """The same without the decision, which has a picture of its own: what was asked, and what happened after the choice."""
    names = names or {}
    told = explain_words(status, routed, [e for e in events if not isinstance(e, TaskRouted)], names)
    decision = set(_decided(status, routed, names)) if routed is not None else set()
    return [line for line in told if line not in decision]


def hold_words(reason: str) -> str:
    """``busy: all 2 machines with qwen3 are busy`` as a sentence; the code's own meaning where it brings no words."""
    code, _, detail = reason.partition(":")
    meaning = _HOLDS.get(code.strip().partition("(")[0])
    told = detail.strip() or (reason.strip() if meaning is None else "")
    if meaning is None or told.startswith(meaning):
        return f"Waits: {told}."
    return f"Waits: {meaning} ({told})." if told else f"Waits: {meaning}."


def _event_words(
    event: AnyEvent, routed: TaskRouted | None, expected: dict[int, TaskReleased], names: Names
) -> list[str]:
    match event:
        case TaskSubmitted():
            return [asked_words(event, names)]
        case TaskRouted():
            return decision_words(event, names) if routed is None or event.id == routed.id else []
        case TaskReleased():
            return [_released(event, routed.choice.model if routed is not None and routed.choice else None, names)]
        case TaskStarted():
            return [_started(event, expected.get(event.attempt), names)]
        case AttemptFailed():
            return [_attempt_failed(event, names)]
        case TaskCompleted():
            return _completed(event, _predicted_s(event, expected.get(event.attempt), routed), names)
        case TaskFailed():
            return [_failed(event)]
        case TaskCancelled():
            return [f"Cancelled{_detail(event.reason)}."]
        case TaskDead():
            why = ", ".join(_FAILURES[failure] for failure in event.failures)
            return [f"Given up after {_times(event.attempts)}{_detail(why)}{_detail(event.detail)}."]
        case QualityJudged():
            return [judgement_words(event)]
        case _:
            return []


def _decided(status: TaskStatus, routed: TaskRouted | None, names: Names) -> list[str]:
    if routed is not None:
        return decision_words(routed, names)
    if status.state == "waiting":
        return ["The model is not chosen yet."]
    if status.attempt == 0 and status.state in ("failed", "cancelled", "dead"):
        return ["Nobody was chosen before it ended."]
    return ["The decision is not known here."]


def _failed(event: TaskFailed) -> str:
    """No backend can be blamed for what never reached one, nor for a busy end: that is the router's own patience."""
    after = f"after {_times(event.attempts)}" if event.attempts else "before it ran anywhere"
    if event.detail and (not event.attempts or event.failure == "busy"):
        return f"Failed {after}: {event.detail.rstrip('.')}."
    return f"Failed {after}: {_FAILURES[event.failure]}{_detail(event.detail)}."


def _released(event: TaskReleased, first: str | None, names: Names) -> str:
    """``first`` is the model that was chosen on arrival."""
    waited = "" if event.waited_s is None else f" after {seconds(event.waited_s)}"
    to = (
        "whichever free machine takes it first" if event.lane == "any" else f"{names.get(event.lane, event.lane)} alone"
    )
    worker = event.expected_worker
    likely = f", most likely {names.get(worker, worker)}" if worker is not None and event.lane == "any" else ""
    other = "It is another machine than at first" if event.model == first else f"The model is {event.model}"
    changed = f" {other}: {event.reason}." if event.reason else ""
    passed = f" {event.bypasses} later tasks went first." if event.bypasses else ""
    held = " and ".join(
        f"{_HOLDS.get(code, code)} ({seconds(s)})" for code, s in event.held_s.items() if s >= _TOLD_HOLD_S
    )
    why = f" It had waited because {held}." if held else ""
    return f"{_it(event.attempt)} left the queue{waited}, for {to}{likely}.{why}{changed}{passed}"


def _it(attempt: int) -> str:
    """Attempts are counted once there is more than one."""
    return "It" if attempt == 1 else f"Attempt {attempt}"


def _started(event: TaskStarted, released: TaskReleased | None, names: Names) -> str:
    who = names.get(event.worker, event.worker)
    together = "" if event.concurrency <= 1 else f", {event.concurrency} at a time"
    expected = released.expected_worker if released is not None else None
    if expected is not None and expected != event.worker:
        other = names.get(expected, expected)
        return f"{_it(event.attempt)} ran on {who}{together}, not on {other} as expected: {who} took it first."
    return f"{_it(event.attempt)} ran on {who}{together}."


def _attempt_failed(event: AttemptFailed, names: Names) -> str:
    where = "" if event.worker is None else f" on {names.get(event.worker, event.worker)}"
    after = f" after {event.tokens} tokens" if event.tokens else ""
    again = "it may be tried again" if event.retryable else "it is not tried again"
    return f"Attempt {event.attempt} failed{where}{after}: {_FAILURES[event.failure]}{_detail(event.detail)}; {again}."


def _predicted_s(event: TaskCompleted, released: TaskReleased | None, routed: TaskRouted | None) -> float | None:
    """What was predicted of the pair that answered: at the release if it was expected then, else by the decision."""
    if released is not None and released.expected_worker == event.worker and released.predicted.total_s is not None:
        return released.predicted.total_s
    candidates = (*(released.candidates if released else ()), *(routed.candidates if routed else ()))
    return next((c.predicted.total_s for c in candidates if (c.model, c.worker) == (event.model, event.worker)), None)


def _completed(event: TaskCompleted, predicted: float | None, names: Names) -> list[str]:
    times = event.times
    parts = [
        f"{name} {seconds(value)}"
        for name, value in (
            ("waiting there", times.queue_s),
            ("loading the model", times.load_s),
            ("reading the prompt", times.prefill_s),
            ("writing", times.decode_s),
        )
        if value is not None and (value >= _TOLD_TIME_S or name == "writing")
    ]
    count = event.tokens.output
    tokens = "an unknown number of tokens" if count is None else f"{count} token{'' if count == 1 else 's'}"
    total = "an unknown time" if times.total_s is None else seconds(times.total_s)
    split = f" ({', '.join(parts)})" if parts else ""
    who = names.get(event.worker, event.worker)
    words = [f"{event.model} on {who} answered with {tokens} in {total}{split}.{_OUTCOMES[event.outcome]}"]
    if predicted is not None and times.total_s is not None:
        words.append(f"{seconds(predicted)} had been predicted of {who}; it took {seconds(times.total_s)}.")
    return words


def _now(status: TaskStatus, names: Names) -> list[str]:
    """What no event says: where a task that has not ended stands."""
    if status.state == "waiting":
        place = "" if status.position is None else f" Position {status.position}."
        eta = "" if status.eta_s is None else f" About {seconds(status.eta_s)} to go."
        return [f"{hold_words(status.reason or 'routing')}{place}{eta}"]
    worker = status.worker or status.expected_worker
    where = "" if worker is None else f" on {names.get(worker, worker)}"
    if status.state == "released":
        return [f"Released, not started yet{where}."]
    if status.state != "running":
        return []
    ran = "" if status.ran_s is None else f" for {seconds(status.ran_s)}"
    if status.late_s is not None:
        return [f"Runs{where}{ran}, {seconds(status.late_s)} longer than predicted."]
    left = "" if status.ends_s is None else f", about {seconds(status.ends_s)} to go"
    return [f"Runs{where}{ran}{left}."]


def _times(attempts: int) -> str:
    return "one attempt" if attempts == 1 else f"{attempts} attempts"


def _detail(detail: str) -> str:
    return f" ({detail.rstrip('.')})" if detail else ""
