"""Requests that schemathesis makes from our own ``/openapi.json``, and what every answer to them has to keep.

Some obey the schema, some break it; and since what is made up nearly always ends as 400 or 404, some are a good request in which
a field or two were replaced by what was made up: so requests get to the bottom. ``Broken`` shows the smallest that found a fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import requests
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.generation import GenerationMode

Operation = Any
"""schemathesis' own has three type parameters that mean nothing here."""
GOOD: dict[str, Any] = {
    "model": "auto",
    "messages": [{"role": "user", "content": "Why?"}],
    "input": "Why?",
    "prompt": "Why?",
    "max_tokens": 8,
    "max_output_tokens": 8,
    "task": "",
    "rating": 1,
}
"""Fields of a request that is answered; each path takes those that it knows."""
CHECKED = (
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
WITHIN_S = 30.0


class Broken(AssertionError):
    """The request that showed a fault."""


def operations(schema: Any) -> Iterator[Operation]:
    for result in schema.get_all_operations():
        yield result.ok()


def examine(
    operation: Operation, url: str, examples: int, names: Mapping[str, str], *, shrink: bool = True
) -> Counter[int]:
    """How often each status was answered. ``names``: what paths and fields may be called so that somebody knows them.

    Raises Broken. It blocks: call it in a thread of its own where the server is in this process."""
    load_all_checks()
    checks = [CHECKS.get_one(name) for name in CHECKED]
    seen: Counter[int] = Counter()
    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    made = st.one_of([operation.as_strategy(generation_mode=mode) for mode in modes if _can(operation, mode)])
    examples = examples if _can(operation, GenerationMode.NEGATIVE) else 2  # always the same request
    good = {name: names.get(name, value) for name, value in GOOD.items() if name in _fields(operation)}
    if "messages" in good or "input" in good:
        good.pop("prompt", None)

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
        suppress_health_check=list(HealthCheck),
    )
    @given(made, st.sampled_from((0, 1, 2, None)), st.booleans(), st.booleans(), st.randoms(use_true_random=False))
    def asked(case: Any, kept: int | None, stream: bool, by_name: bool, rng: Any) -> None:
        if good and kept is not None:
            own = sorted(case.body) if isinstance(case.body, dict) else []
            chosen = rng.sample(own, min(kept, len(own)))
            streams = {"stream": stream} if "stream" in _fields(operation) else {}
            case.body = good | streams | {name: case.body[name] for name in chosen}
        if kept is not None:
            case.query.update(
                {name: value for name, value in {"prompt": "Why?", **names}.items() if name in case.query}
            )
        if by_name:
            case.path_parameters.update({k: names[k] for k in case.path_parameters.keys() & names.keys()})
        response = case.call(base_url=url, session=session, timeout=WITHIN_S)
        seen[response.status_code] += 1
        if response.status_code >= 500:
            assert response.status_code == 503, f"{response.status_code} {response.text}"
            assert "retry-after" in response.headers
        case.validate_response(response, checks=checks)

    with requests.Session() as session:
        session.trust_env = False
        try:
            asked()
        except BaseException as error:
            raise Broken(f"{operation.method.upper()} {operation.path}: {error}") from error
    return seen


def _can(operation: Operation, mode: GenerationMode) -> bool:
    """A path that takes nothing has nothing to break."""
    return mode.is_positive or bool(operation.body or operation.query or operation.path_parameters)


def _fields(operation: Operation) -> frozenset[str]:
    """What the body may have."""
    raw = operation.schema.raw_schema
    body = raw["paths"][operation.path][operation.method].get("requestBody")
    if body is None:
        return frozenset()
    name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    return frozenset(raw["components"]["schemas"][name]["properties"])
