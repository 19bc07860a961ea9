"""What is there to know of each path: its body, its query, its answers, its errors? One row for each, for ``openapi``.

It says what other files do and decides nothing; ``tests/fuzz`` finds out where it is wrong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from schemas.demands import RunShown
from services.router.http import openapi_native as native, openapi_surfaces as theirs
from services.router.http.anthropic_request import Counted, MessagesRequest
from services.router.http.benching import BenchRequest
from services.router.http.chat_request import ChatRequest
from services.router.http.compare import CompareRequest
from services.router.http.completions import CompletionRequest
from services.router.http.embeddings import EmbeddingRequest
from services.router.http.feedback import FeedbackRequest
from services.router.http.ollama_pull import REFUSED, PullAsked
from services.router.http.ollama_request import ChatAsked, EmbedAsked, EmbeddingsAsked, GenerateAsked
from services.router.http.pausing import Pause, Resume
from services.router.http.responses_request import ResponsesRequest
from services.router.http.route_request import ExplainQuery, PreviewQuery, RouteRequest
from services.router.http.stats_explained import ExplainCell, Explained
from services.router.http.stats_filter import StatsFilter
from services.router.http.stats_maps import MapFilter
from services.router.http.stats_routes import PictureFilter
from services.router.port import Readiness

JSON, SSE, NDJSON, TEXT, SVG = (
    "application/json", "text/event-stream", "application/x-ndjson", "text/plain", "image/svg+xml",
)  # fmt: skip
ASKED = (400, 401, 403, 429)
"""A header may be wrong, a key unknown, known for something else, or the latest of too many unknown ones."""
NAMED = (*ASKED, 404)
SENT = (*ASKED, 408, 413, 415)
TASKED = (*SENT, 404, 503)
ANSWERED = (*TASKED, 409, 502, 504)
OLLAMA = (*SENT, 404, 499, 502, 503, 504)
"""Ollama's numbers for a full queue (503) and for a task that was cancelled (499)."""
WORDS = {
    400: "the request cannot be understood, or nobody can do it; the field is named",
    401: "a key is needed, and one that is known",
    403: "the key may not do this", 404: "nobody and nothing is called so; the nearest names", 408: "the body did not come",
    409: "the task was cancelled", 413: "the body is above 32 MiB",
    415: "the body is packed as neither gzip nor deflate",
    429: "the client's queue is full, or too many wrong keys came from one address",
    499: "the task was cancelled", 502: "the machine failed",
    503: "busy, or not able now; Retry-After says when again",
    504: "the deadline has passed",
}  # fmt: skip


class Row(NamedTuple):
    """``answers``: media type -> type, None for what is no JSON. ``query`` beside ``body`` is what stands in the address."""

    answers: dict[str, Any]
    errors: tuple[int, ...] = ASKED
    body: Any = None
    query: Any = None
    status: int = 200
    may_be_empty: bool = False


def json(kind: Any, errors: tuple[int, ...] = ASKED, **more: Any) -> Row:
    return Row({JSON: kind}, errors, **more)


ROWS: dict[tuple[str, str], Row] = {
    ("get", "/"): Row({TEXT: None, "text/html": None}),
    ("head", "/"): Row({}),
    ("post", "/route"): json(native.Accepted, TASKED, body=RouteRequest, status=202),
    ("get", "/task/{task}"): json(native.TaskEnd, (*NAMED, 503)),
    ("delete", "/task/{task}"): json(native.Cancelled, (*NAMED, 503)),
    ("get", "/task/{task}/stream"): Row({SSE: None}, (*NAMED, 503)),
    ("get", "/route/preview"): json(native.PreviewBeside, (*NAMED, 503), query=PreviewQuery),
    ("get", "/explain/{task}"): json(native.Explanation, (*NAMED, 503), query=ExplainQuery),
    ("get", "/workers"): json(native.Workers),
    ("get", "/models"): json(native.Models),
    ("get", "/routes"): json(native.VirtualModels),
    ("get", "/queue"): json(native.QueueShown),
    ("get", "/healthz"): json(native.Alive),
    ("get", "/readyz"): json(Readiness, (*ASKED, 503)),
    ("get", "/stats"): json(native.Stats, NAMED, query=StatsFilter),
    ("get", "/stats/explain"): json(Explained, NAMED, query=ExplainCell),
    ("get", "/stats/map"): json(native.StatsMaps, NAMED, query=MapFilter),
    ("get", "/stats.svg"): Row({SVG: None}, NAMED, query=PictureFilter),
    ("get", "/stats/judges"): json(native.Judges, (*ASKED, 503)),
    ("get", "/metrics"): Row({TEXT: None}),
    ("post", "/workers/{worker}/pause"): json(native.OneWorker, (*SENT, 404, 503), body=Pause, may_be_empty=True),
    ("post", "/workers/{worker}/resume"): json(native.OneWorker, (*SENT, 404, 503), body=Resume, may_be_empty=True),
    ("get", "/bench"): json(native.BenchOwed, (*ASKED, 503)),
    ("post", "/bench"): json(RunShown, TASKED, body=BenchRequest, status=202, may_be_empty=True),
    ("get", "/bench/{run}"): json(RunShown, (*NAMED, 503)),
    ("delete", "/bench/{run}"): json(RunShown, (*NAMED, 503)),
    ("post", "/feedback"): json(native.RatingStored, (*SENT, 404, 409, 503), body=FeedbackRequest),
    ("post", "/compare"): Row({SSE: None}, TASKED, body=CompareRequest),
    ("get", "/compare/{compare}"): json(native.ComparisonShown, (*NAMED, 503)),
    ("post", "/v1/chat/completions"): Row({JSON: theirs.ChatCompletion, SSE: None}, ANSWERED, body=ChatRequest),
    ("post", "/v1/completions"): Row({JSON: theirs.TextCompletion, SSE: None}, ANSWERED, body=CompletionRequest),
    ("post", "/v1/embeddings"): json(theirs.EmbeddingList, ANSWERED, body=EmbeddingRequest),
    ("get", "/v1/models"): json(theirs.ModelList),
    ("get", "/v1/models/{model}"): json(theirs.ListedModel, NAMED),
    ("post", "/v1/responses"): Row({JSON: theirs.ResponseShown, SSE: None}, ANSWERED, body=ResponsesRequest),
    ("get", "/v1/responses/{response}"): json(theirs.ResponseShown, (*NAMED, 503)),
    ("post", "/v1/messages"): Row({JSON: theirs.AnthropicMessage, SSE: None}, ANSWERED, body=MessagesRequest),
    ("post", "/v1/messages/count_tokens"): json(theirs.TokenCount, SENT, body=Counted),
    ("get", "/api/version"): json(theirs.OllamaVersion),
    ("head", "/api/version"): Row({}),
    ("get", "/api/tags"): json(theirs.OllamaModels),
    ("head", "/api/tags"): Row({}),
    ("get", "/api/ps"): json(theirs.OllamaModels),
    ("post", "/api/show"): json(theirs.OllamaShown, (*SENT, 404), body=theirs.OllamaNamed),
    ("post", "/api/chat"): Row({JSON: theirs.OllamaChat, NDJSON: None}, OLLAMA, body=ChatAsked),
    ("post", "/api/generate"): Row({JSON: theirs.OllamaGenerated, NDJSON: None}, OLLAMA, body=GenerateAsked),
    ("post", "/api/embed"): json(theirs.OllamaEmbedded, OLLAMA, body=EmbedAsked),
    ("post", "/api/pull"): Row({JSON: theirs.OllamaPulled, NDJSON: None}, (*SENT, 404, 503), body=PullAsked),
    **{(method.lower(), path): json(native.OllamaError, status=403) for method, path in REFUSED},
    ("post", "/api/embeddings"): json(theirs.OllamaEmbedding, OLLAMA, body=EmbeddingsAsked),
}  # fmt: skip

ERRORS = (
    ("/v1/messages", native.AnthropicError), ("/v1/", native.OpenaiError), ("/api/", native.OllamaError),
    ("/", native.HeadraceError),
)  # fmt: skip
"""As ``problems.FORMS``."""
