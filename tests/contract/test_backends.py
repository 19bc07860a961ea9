"""One suite for every Backend: whatever is behind the port, the worker may rely on this.

Real llama.cpp always, stand-ins of Ollama's and vLLM's wire, and a real Ollama in ``make e2e-ollama``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass

import msgspec
import pytest

from schemas.errors import BackendError
from schemas.events import Options
from schemas.work import Body
from services.worker.backends.detect import detect
from services.worker.backends.port import MOST_TOKENS, Backend, BackendRequest, Chunk, Finish
from support.backends import (
    DONE,
    Script,
    Stub,
    event,
    lm_studio_stand_in,
    ollama_done,
    ollama_frame,
    ollama_stand_in,
    vllm_stand_in,
)
from support.docker import Unavailable
from support.llama import MODEL, llama
from support.ollama import MODEL as OLLAMA_MODEL, ollama

REAL = ["llama.cpp", pytest.param("real ollama", marks=pytest.mark.e2e)]
STAND_INS = ["vllm", "ollama"]


@dataclass
class Served:
    backend: Backend
    kind: str
    model: str
    stub: Stub | None = None


@pytest.fixture(params=[*REAL, *STAND_INS])
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    """One detected backend of each kind."""
    async with serving(str(request.param)) as one:
        yield one


@pytest.fixture(params=REAL)
async def real(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    """Only a real server counts tokens."""
    async with serving(str(request.param)) as one:
        yield one


@pytest.fixture(params=STAND_INS)
async def stand_in(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    """Only a stand-in shows what was sent, and embeds without a second model."""
    async with serving(str(request.param)) as one:
        yield one


@asynccontextmanager
async def serving(kind: str) -> AsyncIterator[Served]:
    """The backend with a model under the name that it has there."""
    async with AsyncExitStack() as stack:
        stub = None
        if kind == "llama.cpp":
            url, model = (await stack.enter_async_context(llama())).url, MODEL
        elif kind == "real ollama":
            try:
                url = stack.enter_context(ollama()).url
            except Unavailable as reason:
                pytest.skip(str(reason))
            model, kind = OLLAMA_MODEL, "ollama"
        else:
            stub = await stack.enter_async_context(ollama_stand_in() if kind == "ollama" else vllm_stand_in())
            url, model = stub.url, "m:latest" if kind == "ollama" else "org/m"
        backend = await detect(url)
        stack.push_async_callback(backend.aclose)
        yield Served(backend, kind, model, stub)


def ask(model: str, text: str = "What is the capital of Japan?", *, max_tokens: int = 6) -> BackendRequest:
    body = Body(messages=({"role": "user", "content": text},))
    return BackendRequest(model=model, body=body, options=Options(max_tokens=max_tokens, temperature=0.0, seed=1))


async def whole(backend: Backend, request: BackendRequest) -> tuple[list[Chunk], Finish]:
    """All pieces; fails unless the last one, and only the last one, is the Finish."""
    pieces = [piece async for piece in backend.chat(request)]
    chunks = [piece for piece in pieces if isinstance(piece, Chunk)]
    assert len(chunks) == len(pieces) - 1
    finish = pieces[-1]
    assert isinstance(finish, Finish)
    return chunks, finish


async def test_a_server_is_recognised_by_what_it_answers(served: Served) -> None:
    identity = await served.backend.identify()
    assert (served.backend.kind, identity.kind) == (served.kind, served.kind)
    assert identity == await served.backend.identify()
    assert len(identity.backend_id) == 16


async def test_the_inventory_holds_numbers_or_nothing_but_never_zero(served: Served) -> None:
    models = await served.backend.inventory()
    mine = next(model for model in models if served.model in (model.name, *model.aliases))
    for model in models:
        assert model.bytes is None or model.bytes > 0
        assert model.context is None or model.context > 0
        assert model.digest is None or model.digest
        assert model.quantisation is None or model.quantisation
        assert model.capabilities
    assert served.kind == "vllm" or mine.bytes


async def test_what_is_resident_is_part_of_the_inventory(served: Served) -> None:
    await whole(served.backend, ask(served.model))
    resident = await served.backend.residency()
    models = await served.backend.inventory()
    assert resident is not None
    assert resident <= {name for model in models for name in (model.name, *model.aliases)}
    assert any(model.resident for model in models if served.model in (model.name, *model.aliases))


async def test_an_answer_streams_and_ends_with_one_finish(served: Served) -> None:
    chunks, finish = await whole(served.backend, ask(served.model))
    assert "".join(chunk.text for chunk in chunks).strip()
    assert sum(chunk.is_token for chunk in chunks) > 1
    assert finish.finish_reason == "length"
    assert finish.tokens.output == 6
    assert finish.tokens.prompt
    assert finish.model == served.model


async def test_a_bare_prompt_is_completed(served: Served) -> None:
    request = BackendRequest(model=served.model, body=Body(prompt="Once upon a time"), options=Options(max_tokens=4))
    chunks, finish = await whole(served.backend, request)
    assert "".join(chunk.text for chunk in chunks).strip()
    assert finish.tokens.output == 4


async def test_a_request_without_a_limit_carries_one_where_the_server_has_no_end_of_its_own(stand_in: Served) -> None:
    """vLLM refuses a prompt and a limit that together pass its window: one that nobody asked for must not be the reason."""
    body = Body(messages=({"role": "user", "content": "Hi"},))
    await whole(stand_in.backend, BackendRequest(model=stand_in.model, body=body))
    assert stand_in.stub is not None
    (sent,) = stand_in.stub.chats()
    limit = sent["options"]["num_predict"] if stand_in.kind == "ollama" else sent.get("max_tokens")
    assert limit == (MOST_TOKENS if stand_in.kind == "ollama" else None)


async def test_a_bare_prompt_always_carries_a_limit(stand_in: Served) -> None:
    """Without one vLLM ends it after 16 tokens."""
    await whole(stand_in.backend, BackendRequest(model=stand_in.model, body=Body(prompt="Once")))
    assert stand_in.stub is not None
    (sent,) = stand_in.stub.chats()
    assert (sent["options"]["num_predict"] if stand_in.kind == "ollama" else sent["max_tokens"]) == MOST_TOKENS


async def test_a_finish_says_which_limit_the_request_carried(served: Served) -> None:
    """A cut at it is no fault of the model."""
    assert (await whole(served.backend, ask(served.model)))[1].limit == 6


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ({"choices": [{"delta": {}, "finish_reason": "stop", "stop_reason": "END"}]}, "END"),
        ({"choices": [{"delta": {}, "finish_reason": "stop", "stop_reason": 128009}]}, None),
        ({"choices": [{"delta": {}, "finish_reason": "stop"}], "__verbose": {"stopping_word": "END"}}, "END"),
        ({"choices": [{"delta": {}, "finish_reason": "stop"}], "stopping_word": ""}, None),
    ],
)
async def test_the_word_that_ended_an_answer_is_told_where_the_server_says_it(
    said: dict[str, object], word: str | None
) -> None:
    async with serving("vllm") as vllm:
        assert vllm.stub is not None
        vllm.stub.scripts.append(Script([event({"model": "org/m"} | said), DONE]))
        _, finish = await whole(vllm.backend, ask(vllm.model))
    assert finish.stopped_by == word


@pytest.mark.parametrize("body", [Body(messages=({"role": "user", "content": "Hi"},)), Body(prompt="Once")])
async def test_a_limit_beyond_the_window_is_no_reason_for_vllm_to_refuse(body: Body) -> None:
    """As at any other server the window ends the answer then; what the words of the refusal are, differs by its version."""
    said = "'max_tokens' is too large: 9000. This model's maximum context length is 4096 tokens (9000 > 4096 - 20)."
    async with serving("vllm") as vllm:
        assert vllm.stub is not None
        vllm.stub.scripts.append(Script([msgspec.json.encode({"error": {"message": said, "code": 400}})], status=400))
        _, finish = await whole(
            vllm.backend, BackendRequest(model=vllm.model, body=body, options=Options(max_tokens=9000))
        )
        refused, answered = vllm.stub.chats()
    assert (refused["max_tokens"], answered.get("max_tokens"), finish.limit) == (9000, None, None)
    assert ("max_tokens" in answered) == (
        body.prompt is not None
    )  # its prompts have a limit of 16 unless they say null


async def test_a_prompt_beyond_the_window_is_refused_by_vllm_as_it_is() -> None:
    said = "This model's maximum context length is 4096 tokens. However, your request has 9000 input tokens."
    refusal = Script([msgspec.json.encode({"error": {"message": said, "code": 400}})], status=400)
    async with serving("vllm") as vllm:
        assert vllm.stub is not None
        vllm.stub.scripts += [refusal, refusal]
        with pytest.raises(BackendError, match="9000 input tokens"):
            await whole(vllm.backend, ask(vllm.model))


async def test_closing_the_stream_frees_the_servers_slot(served: Served) -> None:
    stream = served.backend.chat(ask(served.model, "Count to a thousand.", max_tokens=1000))
    async with aclosing(stream):
        await anext(stream)
    chunks, _ = await whole(served.backend, ask(served.model))  # one slot: it waits for as long as the first one runs
    assert chunks


async def test_another_models_name_never_passes_unseen(served: Served) -> None:
    """A single-model server answers to any name; it must at least be visible who answered."""
    try:
        _, finish = await whole(served.backend, ask("nobody-has-this:1b"))
    except BackendError as error:
        assert error.failure == "rejected"
        assert "nobody-has-this" in str(error)
    else:
        assert finish.model == served.model


async def test_a_prompt_that_does_not_fit_is_the_requests_fault(real: Served) -> None:
    with pytest.raises(BackendError) as caught:
        await whole(real.backend, ask(real.model, "many words " * 9000))
    assert (caught.value.failure, caught.value.retryable) == ("rejected", False)


async def test_texts_become_vectors_in_their_order(stand_in: Served) -> None:
    finish = await stand_in.backend.embed(BackendRequest(model=stand_in.model, body=Body(inputs=("four", "seventy"))))
    assert finish.vectors == ((4.0, 1.0), (7.0, 1.0))


async def test_a_real_embedder_is_recognised_and_embeds() -> None:
    async with llama(alias="smollm2-embed", embeddings=True) as server:
        backend = await detect(server.url)
        (model,) = await backend.inventory()
        finish = await backend.embed(BackendRequest(model=model.name, body=Body(inputs=("a cat", "a dog", "a stone"))))
        await backend.aclose()
    assert model.capabilities == ("embedding",)
    assert [len(vector) for vector in finish.vectors] == [576] * 3
    assert finish.tokens.prompt


async def test_ollama_offers_no_cloud_model_and_joins_names_of_one_digest() -> None:
    async with ollama_stand_in() as stub:
        backend = await detect(stub.url)
        models = {model.name: model for model in await backend.inventory()}
        await backend.aclose()
    assert set(models) == {"m:latest", "big:70b"}
    assert set(models["m:latest"].aliases) == {"twin:latest", "m", "twin"}
    assert (models["m:latest"].context, models["m:latest"].resident) == (4096, True)  # as loaded
    assert (models["big:70b"].context, models["big:70b"].resident) == (8192, False)  # as configured, not as trained


async def test_lm_studio_is_recognised_although_it_answers_200_to_everything() -> None:
    async with lm_studio_stand_in() as stub:
        backend = await detect(stub.url + "/v1")
        models = {model.name: model for model in await backend.inventory()}
        await backend.aclose()
    assert backend.kind == "lmstudio"
    assert (models["m"].resident, models["m"].context) == (True, 4096)
    assert models["nomic-embed"].capabilities == ("embedding",)


async def test_nothing_at_a_url_says_so() -> None:
    with pytest.raises(BackendError, match=r"nothing answers at .* is the server running\?") as caught:
        await detect("http://127.0.0.1:9")
    assert caught.value.failure == "disconnect"


async def test_what_a_model_takes_is_known_where_its_server_says_it(served: Served) -> None:
    found = next(model for model in await served.backend.inventory() if served.model in (model.name, *model.aliases))
    assert "completion" in found.capabilities
    assert found.lacks == {"llama.cpp": ("vision",), "vllm": (), "ollama": found.lacks}[served.kind]
    if served.kind == "ollama":
        assert not set(found.lacks) & set(found.capabilities)
        assert {"tools", "vision"} <= {*found.lacks, *found.capabilities}, "it names all that it has"
        assert "image_urls" in found.lacks, "it fetches none"


async def test_a_wish_to_think_fails_at_no_model_that_cannot(served: Served) -> None:
    await served.backend.inventory()
    for said in ({"think": True}, *({"reasoning_effort": effort} for effort in ("none", "minimal", "high", "xhigh"))):
        request = msgspec.structs.replace(
            ask(served.model), body=Body(messages=ask(served.model).body.messages, extra=said)
        )
        chunks, _ = await whole(served.backend, request)
        assert "".join(chunk.text for chunk in chunks).strip()


async def test_ollama_thinks_as_far_as_was_asked_where_the_model_can() -> None:
    async with ollama_stand_in() as stub:
        backend = await detect(stub.url)
        stub.pages["/api/show"]["capabilities"].append("thinking")
        await backend.inventory()
        body = Body(messages=({"role": "user", "content": "Hi"},), extra={"reasoning_effort": "high"})
        await whole(backend, BackendRequest(model="m:latest", body=body))
        await backend.aclose()
        assert [sent["think"] for sent in stub.chats()] == [True]


async def test_what_a_model_is_and_takes_is_known_where_its_server_says_it(served: Served) -> None:
    await whole(served.backend, ask(served.model))
    found = next(model for model in await served.backend.inventory() if served.model in (model.name, *model.aliases))
    assert found.parameters is None or served.kind == "ollama"
    assert found.memory is None or served.kind == "ollama", "the others say how large a file is, not what it takes"
    if served.stub is None:
        assert found.parameter_size == "134.52M"
    if served.kind == "ollama":
        assert (found.family, found.families) == ("llama", ("llama",))
        assert found.memory is not None and found.memory.bytes and found.memory.vram_bytes == 0
        assert found.memory.expires_at is not None and found.memory.expires_at > 1.7e9


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ('stop "b"\n\nnum_ctx 8192\nstop "a"', 'num_ctx 8192\nstop "b"\nstop "a"'),
        ('num_ctx 8192\nstop "b"\nstop "a"\n', 'num_ctx 8192\nstop "b"\nstop "a"'),
        ("", None),
        (None, None),
        (f'stop "{"x" * 4_000}"', None),
    ],
)
async def test_ollamas_defaults_of_a_model_read_the_same_each_time_it_is_asked(
    told: str | None, said: str | None
) -> None:
    async with ollama_stand_in() as stub:
        stub.pages["/api/show"] |= {"parameters": told}
        backend = await detect(stub.url)
        assert {model.parameters for model in await backend.inventory()} == {said}
        await backend.aclose()


async def test_lm_studio_says_whether_a_model_sees(http_lm_studio: Stub) -> None:
    backend = await detect(http_lm_studio.url)
    try:
        assert [(model.name, model.lacks) for model in await backend.inventory()] == [
            ("m", ("vision", "image_urls")),
            ("nomic-embed", ("image_urls",)),
        ]
    finally:
        await backend.aclose()


@pytest.fixture
async def http_lm_studio() -> AsyncIterator[Stub]:
    async with lm_studio_stand_in() as stub:
        yield stub


async def test_a_call_that_ollama_gives_no_id_has_one_of_its_own() -> None:
    """Clients answer a call by its id, in a conversation that may hold many."""
    call = {"function": {"name": "f", "arguments": {}}}
    async with ollama_stand_in() as stub, AsyncExitStack() as stack:
        backend = await detect(stub.url)
        stack.push_async_callback(backend.aclose)
        seen: set[str] = set()
        for _ in range(2):
            stub.scripts.append(Script([ollama_frame(tool_calls=[call, call]), ollama_done()]))
            chunks, _finish = await whole(backend, ask("m:latest", "Hi"))
            seen |= {each["id"] for chunk in chunks for each in chunk.tool_calls}
    assert len(seen) == 4
