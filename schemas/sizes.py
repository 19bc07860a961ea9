"""How large a request is, and what its user said, from its body alone.

Answers "which text is this about, and about how many tokens is it?", for whoever submits a task: a router, or the benchmarker.
It never judges what the text is about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from schemas.events import Sizes
from schemas.language import estimate_tokens
from schemas.work import Body


def sizes_of(body: Body, body_bytes: int) -> Sizes:
    """``body_bytes`` is its length as it is stored."""
    images = list(_images(body))
    whole = [content_text(message.get("content")) for message in body.messages] or [body.prompt or ""]
    return Sizes(
        messages=len(body.messages),
        chars=sum(len(part) for part in whole) + sum(len(part) for part in body.inputs),
        prompt_tokens=sum(estimate_tokens(part) for part in (*whole, *body.inputs)),
        body_bytes=body_bytes,
        images=len(images),
        tools=len(body.extra.get("tools") or ()),
        image_urls=sum(map(_is_elsewhere, images)),
    )


def text_of(body: Body) -> str:
    """What the user last said: the last user message's text parts, else the prompt, else an embedding's first text."""
    for message in reversed(body.messages):
        if message.get("role") == "user":
            return content_text(message.get("content"))
    if body.prompt is not None:
        return body.prompt
    return body.inputs[0] if body.inputs else ""


def content_text(content: Any) -> str:
    """The text of a message's content; images and other parts have none."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))


def _images(body: Body) -> Iterator[dict[str, Any]]:
    """The parts of messages that are one."""
    for message in body.messages:
        if isinstance(content := message.get("content"), list):
            for part in content:
                if isinstance(part, dict) and part.get("type") in ("image_url", "image"):
                    yield part


def _is_elsewhere(part: dict[str, Any]) -> bool:
    """Whether the image itself does not come with the request: neither as a data: URI nor as bare base64, which has no colon."""
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, dict) else image
    return isinstance(url, str) and ":" in url[:16] and url[:5].lower() != "data:"
