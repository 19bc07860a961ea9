"""
title: Headrace (ratings)
author: Headrace
version: 0.1.0
license: Apache-2.0
required_open_webui_version: 0.12.0
description: Thumbs given in Open WebUI become evidence in Headrace of what a model answers well, and where.
"""

# How does a thumb in a chat reach the router? By POST /feedback (docs/http.md) under the answer's own message id. It must never
# send anything of the chat but that id, the rating and its comment, and never hold up Open WebUI.

import asyncio
from typing import Any

import httpx
from pydantic import BaseModel, Field

RATED = ("feedback.created", "feedback.updated")
TRIES = 4
WAIT_S = 2.0
WAIT_S_MAX = 20.0
COMMENT_CHARS_MAX = 2_000

Json = dict[str, Any]


class Event:
    class Valves(BaseModel):
        ROUTER_URL: str = Field(
            default="http://127.0.0.1:8420", description="The router, as seen by Open WebUI's machine."
        )
        API_KEY: str = Field(
            default="",
            description="One of the router's [keys]. With may_speak_for_users each user's ratings are their own.",
            json_schema_extra={"input": {"type": "password"}},
        )

    def __init__(self) -> None:
        self.valves = self.Valves()

    async def event(self, event: Json) -> None:
        valves = self.valves.model_copy()
        if event.get("event") not in RATED:
            return
        # Here, not above: nothing of Open WebUI's may keep this file from being loaded.
        from open_webui.models.feedbacks import Feedbacks

        given = await Feedbacks.get_feedback_by_id((event.get("subject") or {}).get("id"))
        said = rating_of(given.user_id, given.data or {}, given.meta or {}) if given is not None else None
        if said is not None:
            await send(valves.ROUTER_URL, valves.API_KEY, said)


def rating_of(user: str, data: Json, meta: Json) -> Json | None:
    """The body of ``POST /feedback``; None where nothing was rated. One to ten says more than the thumb, where it was given."""
    message, thumb = meta.get("message_id"), data.get("rating")
    if not message or thumb not in (-1, 0, 1, "-1", "0", "1"):
        return None
    score = (data.get("details") or {}).get("rating")
    worth = {"value": (score - 1) / 9} if isinstance(score, int) and 1 <= score <= 10 else {"rating": int(thumb)}
    words = ": ".join(str(part) for part in (data.get("reason"), data.get("comment")) if part)
    said = {"message": message, "client": user, **worth}
    return said | ({"comment": words[:COMMENT_CHARS_MAX]} if words else {})


async def send(url: str, key: str, said: Json) -> bool:
    """Again where the answer has not ended yet or the router is away for a moment. False: this answer was not the router's."""
    url, key = url.strip(), key.strip()
    url = (url if "://" in url else f"http://{url}").rstrip("/")
    headers = {"authorization": f"Bearer {key}"} if key else {}
    trusted = httpx.create_ssl_context() if url.startswith("https:") else False  # with SSL_CERT_FILE
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=15.0, verify=trusted, trust_env=False) as http:
        for left in reversed(range(TRIES)):
            try:
                reply = await http.post("/feedback", json=said)
            except httpx.TransportError:
                if not left:
                    raise
                await asyncio.sleep(WAIT_S)
                continue
            ours = _is_ours(reply)
            if ours and reply.is_success:
                return True
            if ours and reply.status_code == 404:
                return False
            after_s = _after_s(reply)
            if not left or after_s is None:
                raise RuntimeError(
                    f"Headrace at {url} did not take the rating ({reply.status_code}): {reply.text[:500]}"
                )
            await asyncio.sleep(min(after_s, WAIT_S_MAX))
    return False


def _is_ours(reply: httpx.Response) -> bool:
    """A page of something else at that address must not pass for "not the router's answer": every rating would be lost unseen."""
    try:
        said = reply.json()
    except ValueError:
        return False
    return isinstance(said, dict) and (reply.is_success or isinstance(said.get("error"), dict))


def _after_s(reply: httpx.Response) -> float | None:
    """When to say it again; None for never."""
    try:
        return float(reply.headers["retry-after"])
    except (KeyError, ValueError):
        return WAIT_S if reply.status_code in (502, 503, 504) else None
