"""What a task asked for, in words.

Answers "what was wanted, of whom, and how was its kind told?" from ``task.submitted`` alone, without its text.
"""

from __future__ import annotations

from schemas.events import Bench, TaskSubmitted
from services.router.decision_words import Names, named
from services.router.policy.routes import AUTO

_METHODS = {"rules": "by its words", "client": "as the client said", "bench": "as the benchmarker said"}
_LANGUAGES = {"ja": "in Japanese", "en": "in English", "other": "in another language"}
_BENCH = {
    "probe": "A probe of the machine's speed",
    "suite": "A prompt of a suite that somebody had run",
    "shadow": "An answer to be compared with another model's",
    "judge": "A judgement of two answers",
}
_DEBTS = {
    "joined": "the machine had joined",
    "woke": "the machine had come back",
    "new_model": "the model was new there",
    "digest": "another file stood under the model's name",
    "unmeasured": "people use it there and nobody had measured it",
    "stale": "the last measurement was old",
    "uncertain": "it might change who answers",
    "drift": "the last answers took much longer or shorter than predicted",
    "unjudged": "too few answers of the model had been judged",
}


def asked_words(event: TaskSubmitted, names: Names) -> str:
    """One or more sentences; a bench task says why it was sent."""
    domain = event.domain
    method = _METHODS.get(domain.method, domain.method)
    sure = "" if domain.confidence is None else f", confidence {domain.confidence:.2f}"
    language = _LANGUAGES.get(event.language or "", "")
    wants = [
        f"{name} {value}"
        for name, value in (
            ("model", event.wants.model),
            ("worker", named(event.wants.worker or "", names) or None),
            ("capability", event.wants.capability),
            ("context", None if event.wants.context_flexible else event.wants.context),
        )
        if value is not None
    ]
    wishes = f" It would like a window of {event.wants.context} tokens." if event.wants.context_flexible else ""
    route = event.wants.route
    asked = f" The client asked for route {route}." if route not in (None, AUTO) else ""
    asked += f" The client insists on {', '.join(wants)}." if wants else ""
    asked = (asked or " Model and machine are the router's choice.") + wishes
    kind = " ".join(filter(None, (f"{event.kind} task", language, f"of the domain {domain.label} ({method}{sure})")))
    why = f" {_BENCH[event.bench.purpose]}{_because(event.bench)}." if event.bench is not None else ""
    limit = f", at most {event.options.max_tokens} to answer" if event.options.max_tokens is not None else ""
    length = f"{event.sizes.prompt_tokens} token{'' if event.sizes.prompt_tokens == 1 else 's'}"
    return f"A {kind}, about {length} long{limit}, {event.urgency}.{why}{asked}"


def _because(bench: Bench) -> str:
    why = _DEBTS.get(bench.reason, bench.reason)
    return f", because {why}" if why else ""
