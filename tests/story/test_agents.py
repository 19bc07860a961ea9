"""Agents' APIs through everything: what the official clients see, and what the model server saw of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from support.standing import both

HI: Any = [{"role": "user", "content": "Hi"}]


async def test_a_conversation_of_responses_is_kept_by_its_id(tmp_path: Path) -> None:
    async with both(tmp_path) as (proof, stubs):
        url = f"{proof.stack.router_url}/v1"
        async with openai.AsyncOpenAI(base_url=url, api_key="x", max_retries=0, timeout=90) as client:
            first = await client.responses.create(
                model="org/m", input="Hi", instructions="Be brief", max_output_tokens=20
            )
            async with client.responses.stream(
                model="org/m", input="And?", previous_response_id=first.id, max_output_tokens=20
            ) as stream:
                second = await stream.get_final_response()
            assert first.output_text == second.output_text != ""
            assert [(m["role"], m["content"]) for m in stubs["vllm"].chats()[-1]["messages"]] == [
                ("system", "Be brief"),
                ("user", "Hi"),
                ("assistant", first.output_text),
                ("user", "And?"),
            ]
            with pytest.raises(openai.BadRequestError, match="makes no embeddings; no model in the fleet can"):
                await client.embeddings.create(model="org/m", input="Hi")


async def test_messages_are_answered_by_both_backends_alike(tmp_path: Path) -> None:
    async with (
        both(tmp_path) as (proof, stubs),
        anthropic.AsyncAnthropic(base_url=proof.stack.router_url, api_key="x", max_retries=0, timeout=90) as client,
    ):
        for model in ("m:latest", "org/m"):
            whole = await client.messages.create(model=model, max_tokens=20, messages=HI, stop_sequences=["END"])
            async with client.messages.stream(model=model, max_tokens=20, messages=HI) as stream:
                streamed = await stream.get_final_message()
            assert whole.content[0].type == "text" and whole.content[0].text.startswith("word0 ")
            assert streamed.content[0].type == "text" and streamed.content[0].text == whole.content[0].text
            assert (whole.stop_reason, whole.usage.output_tokens) == (
                streamed.stop_reason,
                streamed.usage.output_tokens,
            )
        assert stubs["vllm"].chats()[0]["stop"] == ["END"]
        assert stubs["ollama"].chats()[0]["options"]["stop"] == ["END"]


async def test_choices_are_answered_side_by_side_and_counted_together(tmp_path: Path) -> None:
    async with both(tmp_path) as (proof, stubs):
        url = f"{proof.stack.router_url}/v1"
        async with openai.AsyncOpenAI(base_url=url, api_key="x", max_retries=0, timeout=90) as client:
            answer = await client.chat.completions.create(model="org/m", messages=HI, n=3, max_tokens=20, seed=1)
            assert [choice.index for choice in answer.choices] == [0, 1, 2]
            assert answer.usage is not None and answer.usage.completion_tokens == 36
            assert sorted(body["seed"] for body in stubs["vllm"].chats()) == [1, 2, 3]
            plain = await client.completions.create(model="m:latest", prompt=["a", "b"], max_tokens=20)
            assert [choice.text[:6] for choice in plain.choices] == ["word0 ", "word0 "]
