"""What is asked of a decision service, and how its answer is read. Texts go in and never come out: a verdict is numbers.

Answers "which of these models should take the request, and how sure is that?", as probabilities by model and a confidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from schemas.events import Verdict
from schemas.work import Body
from services.router.policy.routes import DecisionService

BODY_BYTES_MAX = 65_536
"""cases/lb-policies.md: what decides is at the beginning; more would only take longer than the time-out."""
ASKED_CHARS_MAX = 4_000
"""Of a fleet model: about a thousand tokens, which a small one prefills within a second."""
ANSWER_TOKENS_MAX = 40


def http_question(service: DecisionService, criteria: Mapping[str, str], text: str) -> bytes:
    """The body of the POST to a decision service."""
    targets = [{"id": model, "criterion": words} for model, words in criteria.items()]
    return msgspec.json.encode({"instructions": service.instructions, "targets": targets, "request": cut(text)})


def cut(text: str, limit: int = BODY_BYTES_MAX) -> str:
    """At most ``limit`` bytes of UTF-8, without half a character at the end."""
    return text.encode()[:limit].decode(errors="ignore")


def model_question(service: DecisionService, criteria: Mapping[str, str], text: str) -> Body:
    """A chat for a fleet model, whose answer can only be one of the options: a schema holds it to that."""
    options = "\n".join(f"{n}. {words}" for n, words in enumerate(criteria.values(), 1))
    asked = f"Options:\n{options}\n\nRequest:\n<<<\n{text[:ASKED_CHARS_MAX]}\n>>>\n\nWhich option? Do not answer the request."
    schema = {
        "type": "object",
        "properties": {"option": {"enum": list(range(1, len(criteria) + 1))}, "confidence": {"enum": [0.5, 0.7, 0.9]}},
        "required": ["option", "confidence"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": schema}}
    messages = ({"role": "system", "content": service.instructions}, {"role": "user", "content": asked})
    return Body(messages=messages, extra={"response_format": form, "think": False})


def read_verdict(answer: str | bytes, criteria: Mapping[str, str], by: str, took_s: float) -> Verdict:
    """From ``{"probabilities": {model: p}, "confidence": c}`` or ``{"option": n, "confidence": c}``. Raises ValueError."""
    try:
        said = msgspec.json.decode(answer)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"its answer is no JSON: {error}") from error
    if not isinstance(said, dict):
        raise ValueError(f"its answer is a {type(said).__name__}, not an object")
    probabilities = _probabilities(said, list(criteria))
    confidence = said.get("confidence", 1.0)
    if not _is_share(confidence):
        raise ValueError(f"its confidence is {_told(confidence)}, not a number from 0 to 1")
    return Verdict(by=by, probabilities=probabilities, confidence=float(confidence), took_s=took_s)


def in_both_orders(criteria: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Small models like the first option, or the last (ROUTING.md B1, judges): one that means it says so in both orders."""
    return dict(criteria), dict(reversed(list(criteria.items())))


def agreed(one: Verdict, other: Verdict) -> Verdict:
    """The mean of two verdicts that are for the same model, at the lesser confidence. Raises ValueError where they are not."""
    first, second = (max(v.probabilities, key=lambda m: (v.probabilities[m], m)) for v in (one, other))
    if first != second:
        raise ValueError(f"it went by the order of the options: {first}, and the other way round {second}")
    models = dict.fromkeys((*one.probabilities, *other.probabilities))
    return msgspec.structs.replace(
        one,
        probabilities={m: (one.probabilities.get(m, 0.0) + other.probabilities.get(m, 0.0)) / 2 for m in models},
        confidence=min(one.confidence or 0.0, other.confidence or 0.0),
    )


def _probabilities(said: dict[str, Any], models: list[str]) -> dict[str, float]:
    option, given = said.get("option"), said.get("probabilities")
    if given is None and isinstance(option, int) and not isinstance(option, bool) and 1 <= option <= len(models):
        return {models[option - 1]: 1.0}
    if not isinstance(given, dict):
        raise ValueError(f"its answer has neither probabilities nor an option from 1 to {len(models)}")
    found = {model: given[model] for model in models if model in given}
    bad = {model: value for model, value in found.items() if not _is_share(value)}
    if bad:
        model, value = next(iter(bad.items()))
        raise ValueError(f"its probability of {model} is {_told(value)}, not a number from 0 to 1")
    if not any(found.values()):
        raise ValueError(f"it gives none of {', '.join(models)} a probability")
    return {model: float(value) for model, value in found.items()}


def _told(value: Any) -> str:
    """For a reason, which goes to the log: a number itself, of anything else only its kind, since a text may be the client's."""
    return repr(value) if isinstance(value, int | float | None) else f"a {type(value).__name__}"


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 <= value <= 1
