"""Images by URL: the router fetches none, and an Ollama cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from support.stand_in_fleet import stand_in_fleet
from support.toured import MODEL, PICTURE, SEEN, toured

URL = "http://127.0.0.1:9/cat.png"


async def ask(http: httpx.AsyncClient, url: str, model: str = MODEL) -> httpx.Response:
    content: list[dict[str, Any]] = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    return await http.post(
        "/v1/chat/completions", json={"model": model, "messages": [{"role": "user", "content": content}]}
    )


async def test_an_image_by_url_is_refused_before_it_is_a_task_where_nobody_would_fetch_it(tmp_path: Path) -> None:
    async with (
        toured(as_ollama=True) as server,
        stand_in_fleet(tmp_path, {"desk": server}) as (proof, _),
        httpx.AsyncClient(base_url=proof.stack.router_url, trust_env=False, timeout=30) as http,
    ):
        refused = [await ask(http, URL, model) for model in (MODEL, "auto")]
        assert [reply.status_code for reply in refused] == [400, 400]
        error = refused[0].json()["error"]
        assert (error["code"], error["param"]) == ("unsupported", "messages")
        assert (
            f"{MODEL} takes no images by URL (send them as data: URIs); no model in the fleet can" in error["message"]
        )
        assert (await http.get("/queue")).json()["tasks"] == []
        shown = await ask(http, f"data:image/png;base64,{PICTURE}")
    assert SEEN in shown.json()["choices"][0]["message"]["content"]
