"""A model server over a real socket with three models: a weak one that gives orders, a strong one, and a judge with a habit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from support.backends import OLLAMA_STREAMS, Script, Stub, line, ollama_done
from support.judges import GOOD, INJECTION, Habit, texts_of

WEAK, STRONG, JUDGE = "llama3.2:1b", "qwen3:8b", "phi4:14b"
VOICES = {WEAK: f"Much could be said. {INJECTION}. " + "And on. " * 20, STRONG: f"Short and {GOOD}.", JUDGE: "Hm."}


@asynccontextmanager
async def models_with(
    habit: Habit, voices: Mapping[str, str] = VOICES, judges: Collection[str] = (JUDGE,)
) -> AsyncIterator[Stub]:
    details = {"format": "gguf", "family": "x", "quantization_level": "Q4_K_M"}
    tags = [
        {"name": name, "digest": f"d{n}" * 32, "size": 1_000_000, "details": details} for n, name in enumerate(voices)
    ]

    def talk(_path: str, body: dict[str, Any]) -> Script:
        texts = texts_of(body["messages"])
        said = voices[body["model"]] if texts is None or body["model"] not in judges else habit(texts)
        frame = {"model": body["model"], "message": {"role": "assistant", "content": said}, "done": False}
        return Script([line(frame), ollama_done(model=body["model"])])

    pages = {
        "/api/version": {"version": "0.33.0"},
        "/api/tags": {"models": tags},
        "/api/ps": {"models": [{**tag, "size_vram": 0, "context_length": 8192} for tag in tags]},
        "/api/show": {"capabilities": ["completion"], "model_info": {"general.architecture": "x", "x.context_length": 8192}},
    }  # fmt: skip
    stub = Stub(pages, OLLAMA_STREAMS, talk)
    await stub.start()
    try:
        yield stub
    finally:
        await stub.stop()
