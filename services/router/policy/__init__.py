"""Which model and worker should answer: filters with reasons, one scorer, one picker. Pure; README.md has a line for each."""

from services.router.policy.decide import Decision, decide
from services.router.policy.request import RouteRequest, request_of

__all__ = ["Decision", "RouteRequest", "decide", "request_of"]
