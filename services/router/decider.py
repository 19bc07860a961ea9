"""Asking a route's decision service: an HTTP service, or a model of the fleet, as an ordinary task of the router's own.

Answers "what does it advise, within three seconds?". It fails open: whatever goes wrong is the verdict's reason, and the request
goes on without that vote. It never picks a target, and a request's text goes to nobody but the service that its route names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, Protocol

import httpx
import msgspec

from schemas.errors import HeadraceError
from schemas.events import Options, Verdict, Wants
from schemas.sizes import content_text, text_of
from schemas.statistics import Statistics, effective
from services.router.desk import Desk
from services.router.domains import Rule
from services.router.fleet import Fleet
from services.router.intake import route_of
from services.router.nearest import resolve_model
from services.router.policy.criteria import Known, criteria
from services.router.policy.filters import EMBEDDING
from services.router.policy.routes import DecisionService, Route
from services.router.policy.verdicts import (
    ANSWER_TOKENS_MAX,
    agreed,
    http_question,
    in_both_orders,
    model_question,
    read_verdict,
)
from services.router.port import EndUpdate, NewTask, Submitted
from services.runtime.clock import Clock
from services.runtime.logs import logger

log = logger("decider")

CLIENT = "headrace-decider"
OPTIONS_MAX = 16
"""More would fill a small model's context and a person's patience; the smallest ones are asked about."""


class Asking(Protocol):
    """The part of ``RouterPort`` that a decision needs: its own tasks go the way of everybody's."""

    async def submit(self, task: NewTask) -> Submitted: ...
    def follow(self, task: str) -> AbstractAsyncContextManager[Any]: ...
    async def cancel(self, task: str, reason: str) -> bool: ...


class Decider:
    """``domains`` are the labels that criteria may speak of."""

    def __init__(
        self, router: Asking, desk: Desk, rules: Sequence[Rule], clock: Clock,
        *, transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:  # fmt: skip
        self._router, self._desk, self._clock, self._transport = router, desk, clock, transport
        self._domains = tuple(rule.label for rule in rules)
        self._http: httpx.AsyncClient | None = None

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()

    def asks(self, task: NewTask) -> bool:
        """Whether somebody is asked about it: its route has a decision service, and it is no such question itself."""
        return self._asked(task) is not None

    async def advised(self, task: NewTask) -> NewTask:
        """With the verdict of its route's decision service, where it has one. Takes at most its time-out; raises nothing."""
        route = self._asked(task)
        if route is None or route.decision is None:
            return task
        fleet = self._desk.fleet(self._clock.unix())
        options = _options(route, fleet, self._desk.stats, self._domains)
        if len(options) < 2:
            return task
        return msgspec.structs.replace(task, verdict=await self._verdict(route, route.decision, options, task, fleet))

    def _asked(self, task: NewTask) -> Route | None:
        routes = self._desk.routes
        route = routes.get(route_of(task.wants, routes))
        return None if route is None or route.decision is None or task.client == CLIENT else route

    async def _verdict(
        self, route: Route, service: DecisionService, options: Mapping[str, str], task: NewTask, fleet: Fleet
    ) -> Verdict:
        by, began = service.public_url or service.model or _smallest(fleet) or "nobody", self._clock.monotonic()
        try:
            async with asyncio.timeout(service.timeout_s):
                if service.url is not None:
                    answer = await self._ask_service(service, service.url, options, _whole_text(task))
                    return read_verdict(answer, options, by, self._clock.monotonic() - began)
                orders = in_both_orders(options)
                asking = (self._ask_fleet(service, by, each, task, fleet) for each in orders)
                answers = await asyncio.gather(*asking, return_exceptions=True)
            took_s, verdicts = self._clock.monotonic() - began, []
            for said, each in zip(answers, orders, strict=True):
                if isinstance(said, BaseException):
                    raise said
                verdicts.append(read_verdict(said, each, by, took_s))
            return agreed(*verdicts)
        except TimeoutError:
            reason = f"no answer within {service.timeout_s:g} s"
        except (HeadraceError, httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            reason = f"{error}" or type(error).__name__
        log.warning("decided without the decision service", action="verdict_absent", route=route.name, reason=reason)
        return Verdict(by=by, took_s=self._clock.monotonic() - began, reason=reason[:200])

    async def _ask_service(self, service: DecisionService, url: str, options: Mapping[str, str], text: str) -> bytes:
        if self._http is None:
            self._http = httpx.AsyncClient(transport=self._transport, trust_env=False)
        headers = {"content-type": "application/json"}
        reply = await self._http.post(
            url, content=http_question(service, options, text), headers=headers, timeout=service.timeout_s
        )
        if reply.status_code != httpx.codes.OK:
            raise ValueError(f"it answered {reply.status_code}")
        return reply.content

    async def _ask_fleet(
        self, service: DecisionService, model: str, options: Mapping[str, str], task: NewTask, fleet: Fleet
    ) -> str:
        if resolve_model(fleet, model) is None:
            raise ValueError(f"nobody in the fleet holds {model}, which is to decide")
        submitted = await self._router.submit(
            NewTask(
                client=CLIENT,
                body=model_question(service, options, text_of(task.body)),
                wants=Wants(model=model),
                options=Options(max_tokens=ANSWER_TOKENS_MAX, temperature=0.0),
                deadline_s=service.timeout_s,
            )
        )
        ended = False
        try:
            async with self._router.follow(submitted.task) as updates, aclosing(updates):
                async for update in updates:
                    if isinstance(update, EndUpdate):
                        ended = True
                        if update.answer is None:
                            raise ValueError(f"{model} did not answer: {update.status.detail or update.status.state}")
                        return update.answer.text
            raise ValueError(f"{model} did not answer")
        finally:
            if not ended:
                await self._router.cancel(submitted.task, "too late for the decision it was asked for")


def _options(route: Route, fleet: Fleet, stats: Statistics, domains: tuple[str, ...]) -> dict[str, str]:
    """The models to choose among, by their canonical names, each with its criterion."""
    named = {resolve_model(fleet, model): model for model in route.models} if route.targets else {}
    models = [model for model in named if model is not None] if route.targets else _chat_models(fleet)
    written = {resolve_model(fleet, t.model) or t.model: t.criterion for t in route.targets if t.criterion}
    known = sorted((_known(model, fleet, stats, domains) for model in models), key=lambda k: (k.bytes or 0, k.model))
    return criteria(known[:OPTIONS_MAX], written)


def _known(model: str, fleet: Fleet, stats: Statistics, domains: tuple[str, ...]) -> Known:
    qualities = {}
    for domain in domains:
        quality = effective(stats, model, domain, "", model_bytes=None, now_us=0).quality
        if quality.value is not None and quality.n and quality.level in ("cell", "model_domain"):
            qualities[domain] = quality.value
    sizes = [view.models[model].bytes for view in fleet.holders(model)]
    return Known(model=model, bytes=max((s for s in sizes if s is not None), default=None), qualities=qualities)


def _chat_models(fleet: Fleet) -> list[str]:
    models = {name: info for view in fleet.workers.values() for name, info in view.models.items()}
    return sorted(name for name, info in models.items() if info.capability != EMBEDDING)


def _smallest(fleet: Fleet) -> str | None:
    """Of the models that somebody heard lately holds: the quickest to answer, as far as its size says."""
    there = {name: info for view in fleet.workers.values() if view.alive for name, info in view.models.items()}
    chat = [(info.bytes or 0, name) for name, info in there.items() if info.capability != EMBEDDING]
    return min(chat)[1] if chat else None


def _whole_text(task: NewTask) -> str:
    texts = [content_text(message.get("content")) for message in task.body.messages]
    return "\n\n".join(text for text in texts if text) or task.body.prompt or ""
