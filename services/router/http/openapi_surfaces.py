"""How do answers in the forms of OpenAI, Anthropic and Ollama look? Their shapes, for ``/openapi.json`` alone.

No answer is made of these. Only what every answer has is required; clients skip what they do not know, such as ``headrace``: who
really answered, and why. ``tests/fuzz`` holds the answers to them.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET

from services.router.http.chat_reply import Told
from services.router.http.openapi_native import Json, Shape, Sometimes

# -- OpenAI's ----------------------------------------------------------------------------------------------------------------


class Usage(Shape, kw_only=True):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatMessage(Shape, kw_only=True):
    role: Literal["assistant"]
    content: str | None
    reasoning_content: str | Sometimes = UNSET
    tool_calls: list[Json] | Sometimes = UNSET


class ChatChoice(Shape, kw_only=True):
    index: int
    message: ChatMessage
    finish_reason: str
    logprobs: Json | None


class ChatCompletion(Shape, kw_only=True):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage | None
    headrace: Told


class TextChoice(Shape, kw_only=True):
    text: str
    index: int
    logprobs: Json | None
    finish_reason: str


class TextCompletion(Shape, kw_only=True):
    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[TextChoice]
    usage: Usage | None
    headrace: Told


class EmbeddingRow(Shape, kw_only=True):
    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingList(Shape, kw_only=True):
    object: Literal["list"]
    data: list[EmbeddingRow]
    model: str
    usage: Json | None


class ListedModel(Shape, kw_only=True):
    """In Anthropic's form, with ``type`` and ``display_name``, for those who send ``anthropic-version``."""

    id: str


class ModelList(Shape, kw_only=True):
    data: list[ListedModel]


class ResponseShown(Shape, kw_only=True):
    id: str
    object: Literal["response"]
    created_at: int
    model: str
    status: Literal["completed", "incomplete", "in_progress", "queued", "failed", "cancelled"]
    output: list[Json]
    error: Json | None
    incomplete_details: Json | None
    usage: Json | None


# -- Anthropic's -------------------------------------------------------------------------------------------------------------


class MessageUsage(Shape, kw_only=True):
    input_tokens: int
    output_tokens: int


class AnthropicMessage(Shape, kw_only=True):
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[Json]
    stop_reason: str
    stop_sequence: str | None
    usage: MessageUsage
    headrace: Told


class TokenCount(Shape, kw_only=True):
    input_tokens: int


# -- Ollama's ----------------------------------------------------------------------------------------------------------------


class OllamaNamed(Shape, kw_only=True):
    """The body of ``/api/show``."""

    model: str


class OllamaVersion(Shape, kw_only=True):
    version: str


class OllamaModel(Shape, kw_only=True):
    name: str
    model: str
    digest: str
    details: Json


class OllamaModels(Shape, kw_only=True):
    models: list[OllamaModel]


class OllamaShown(Shape, kw_only=True):
    modelfile: str
    details: Json
    model_info: Json
    capabilities: list[str]


class OllamaMessage(Shape, kw_only=True):
    role: Literal["assistant"]
    content: str


class OllamaChat(Shape, kw_only=True):
    model: str
    created_at: str
    message: OllamaMessage
    done: bool


class OllamaGenerated(Shape, kw_only=True):
    model: str
    created_at: str
    response: str
    done: bool


class OllamaEmbedded(Shape, kw_only=True):
    model: str
    embeddings: list[list[float]]


class OllamaEmbedding(Shape, kw_only=True):
    embedding: list[float]


class OllamaPulled(Shape, kw_only=True):
    status: str
