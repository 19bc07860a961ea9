"""Each filter: whom it removes, in which words, and when it holds its tongue."""

from __future__ import annotations

import pytest

from schemas.events import Kind, Wants
from services.router.fleet import WorkerView
from services.router.policy.filters import HARD, SOFT, best_suited, keep, pairs_of
from services.router.policy.request import RouteRequest
from support.fleets import fleet, model, worker

ASKS = RouteRequest(prompt_tokens=100)


def judge(*workers: WorkerView, asks: RouteRequest = ASKS) -> tuple[list[str], dict[str, str]]:
    """Who may answer, and the others' reasons by worker."""
    everyone = fleet(*workers)
    pairs = [pair for name in everyone.models() for pair in pairs_of(name, everyone.holders(name))]
    kept, removed = keep(pairs, asks)
    return [pair.worker.id for pair in kept], {pair.worker.id: reason for pair, reason in removed}


def test_only_the_worker_asked_for_stays_by_id_or_by_name() -> None:
    desk, laptop = worker("w-1", "qwen3", name="desk"), worker("w-2", "qwen3", name="laptop")
    for asked in ("w-1", "desk"):
        kept, reasons = judge(desk, laptop, asks=RouteRequest(prompt_tokens=1, wants=Wants(worker=asked)))
        assert kept == ["w-1"]
        assert reasons == {"w-2": f"worker: the client asked for {asked}"}


@pytest.mark.parametrize(
    ("kind", "kept", "reason"),
    [
        ("embedding", ["embedder"], "kind: qwen3 makes no embeddings"),
        ("chat", ["chatter"], "kind: nomic makes embeddings only"),
        ("completion", ["chatter"], "kind: nomic makes embeddings only"),
    ],
)
def test_embeddings_come_from_embedding_models_and_chats_from_the_others(
    kind: Kind, kept: list[str], reason: str
) -> None:
    chatter = worker("chatter", model("qwen3", capabilities=("completion", "tools")))
    embedder = worker("embedder", model("nomic", capability="embedding", capabilities=("embedding",)))
    who, reasons = judge(chatter, embedder, asks=RouteRequest(prompt_tokens=1, kind=kind))
    assert who == kept
    assert list(reasons.values()) == [reason]


def test_a_model_that_does_both_serves_both() -> None:
    both = worker("both", model("m", capabilities=("completion", "embedding")))
    assert judge(both)[0] == ["both"]
    assert judge(both, asks=RouteRequest(prompt_tokens=1, kind="embedding"))[0] == ["both"]


def test_a_worker_needs_the_capability_of_the_model() -> None:
    needs_gpu = model("big", capability="gpu_inference")
    cpu = worker("cpu", needs_gpu)
    gpu = worker("gpu", needs_gpu, supports=("gpu_inference", "cpu_inference"))
    kept, reasons = judge(cpu, gpu)
    assert kept == ["gpu"]
    assert reasons == {"cpu": "capability: needs gpu_inference, has cpu_inference"}


def test_a_capability_asked_for_may_be_the_workers_or_the_models() -> None:
    searcher = worker("searcher", "qwen3", supports=("cpu_inference", "web_search"))
    seer = worker("seer", model("llava", capabilities=("completion", "vision")))
    for asked, kept in (("web_search", ["searcher"]), ("vision", ["seer"]), ("rag", [])):
        assert judge(searcher, seer, asks=RouteRequest(prompt_tokens=1, wants=Wants(capability=asked)))[0] == kept


def test_a_context_asked_for_is_exact_and_an_estimate_is_not() -> None:
    small, large = worker("small", model("a", context=2048)), worker("large", model("b", context=8192))
    unknown = worker("unknown", model("c", context=None))
    kept, reasons = judge(small, large, unknown, asks=RouteRequest(prompt_tokens=1, wants=Wants(context=4096)))
    assert kept == ["large"], "who does not say serves only where nobody says"
    assert reasons.pop("unknown").startswith("undeclared: ")
    assert reasons == {"small": "context: 4096 tokens were asked for, a has 2048"}
    kept, reasons = judge(small, large, asks=RouteRequest(prompt_tokens=5000))
    assert kept == ["large"]
    assert reasons == {"small": "context: the prompt has about 5000 tokens, a has 2048"}
    assert judge(small, asks=RouteRequest(prompt_tokens=3000))[0] == ["small"]


def test_a_context_wished_for_orders_and_removes_nobody_for_good() -> None:
    small, large = worker("small", model("a", context=2048)), worker("large", model("b", context=8192))
    unknown = worker("unknown", model("c", context=None))
    asks = RouteRequest(prompt_tokens=1, wants=Wants(context=4096, context_flexible=True))
    kept, reasons = judge(small, large, unknown, asks=asks)
    assert kept == ["large"]
    assert reasons["small"] == "context: 4096 tokens were asked for, a has 2048"
    assert judge(small, unknown, asks=asks)[0] == ["unknown"], "it may have it"
    assert judge(small, asks=asks) == (["small"], {})
    away = worker("large", model("b", context=8192), paused=True)
    assert judge(small, away, asks=asks)[0] == ["small"]
    too_long = RouteRequest(prompt_tokens=5000, wants=asks.wants)
    assert judge(small, asks=too_long)[0] == [], "what cannot fit is no wish"


def test_room_for_the_answer_is_preferred_but_never_required() -> None:
    small, large = worker("small", model("a", context=2048)), worker("large", model("b", context=8192))
    asks = RouteRequest(prompt_tokens=100, max_tokens=4000)
    assert judge(small, large, asks=asks)[0] == ["large"]
    assert judge(small, asks=asks)[0] == ["small"]


def test_another_digest_under_the_same_name_is_another_model() -> None:
    def holding(name: str, digest: str | None, backend: str = "ollama") -> WorkerView:
        return worker(name, model("llama3", digest=digest), backend=backend)

    workers = (holding("a", "sha256:old"), holding("b", "sha256:new"), holding("c", "sha256:new"))
    kept, reasons = judge(*workers, holding("d", None), holding("e", "gguf", backend="llama.cpp"))
    assert kept == ["b", "c", "d", "e"]
    assert reasons == {"a": "digest: holds old under this name, most holders have new"}
    asks = RouteRequest(prompt_tokens=1, wants=Wants(worker="a"))
    assert judge(*workers, asks=asks)[0] == ["a"], "who names the worker gets what it holds"


def test_which_digest_is_in_force_does_not_depend_on_who_is_awake() -> None:
    old = [worker(f"old{i}", model("m", digest="1"), alive=False) for i in range(2)]
    kept, _ = judge(*old, worker("new", model("m", digest="2")))
    assert kept == ["old0", "old1"]


def test_draining_and_silent_machines_are_left_out_while_others_are_there() -> None:
    kept, reasons = judge(worker("here", "m"), worker("off", "m", alive=False), worker("ending", "m", draining=True))
    assert kept == ["here"]
    assert reasons == {"off": "silent: was not heard lately", "ending": "draining: takes no new work"}


def test_a_paused_machine_is_left_out_and_says_until_when() -> None:
    until_us = 1_795_989_900_000_000
    away = worker("away", "m", paused=True, paused_until_us=until_us)
    kept, reasons = judge(worker("here", "m"), away, worker("out", "m", paused=True))
    assert kept == ["here"]
    assert reasons == {
        "away": "paused: takes no new work until 2026-11-29 22:05 UTC",
        "out": "paused: takes no new work until it is resumed",
    }


@pytest.mark.parametrize(
    "state", [{"alive": False}, {"draining": True}, {"paused": True}, {"alive": False, "draining": True}]
)
def test_case_24_a_preference_never_removes_the_last_candidate(state: dict[str, bool]) -> None:
    assert judge(worker("only", "m", **state)) == (["only"], {})


def test_case_24_a_stale_load_removes_nobody() -> None:
    assert judge(worker("a", "m", fresh=False), worker("b", "m"))[0] == ["a", "b"]


def test_every_reason_starts_with_a_code() -> None:
    assert len({*HARD, *SOFT}) == 11
    broken = worker("x", model("m", capability="gpu_inference"))
    _, reasons = judge(broken, worker("y", "m"), asks=RouteRequest(prompt_tokens=1))
    assert all(": " in reason for reason in reasons.values())


TOOLS = RouteRequest(prompt_tokens=1, needs=("tools",))


def test_whoever_says_that_it_takes_no_tools_is_out() -> None:
    able = worker("able", model("a", capabilities=("completion", "tools")))
    unable = worker("unable", model("b", capabilities=("completion",), lacks=("tools",)))
    kept, reasons = judge(able, unable, asks=TOOLS)
    assert (kept, reasons) == (["able"], {"unable": "tools: b takes no tools"})
    assert judge(unable, asks=TOOLS)[0] == []


def test_whoever_does_not_say_serves_only_where_nobody_does() -> None:
    able = worker("able", model("a", capabilities=("completion", "tools")))
    unsaid = worker("unsaid", model("b", capabilities=("completion",)))
    kept, reasons = judge(able, unsaid, asks=TOOLS)
    assert kept == ["able"]
    assert reasons == {"unsaid": "undeclared: does not say whether it takes tools, others do"}
    assert judge(unsaid, asks=TOOLS) == (["unsaid"], {})
    silent = worker("silent", model("a", capabilities=("tools",)), alive=False)
    assert judge(silent, unsaid, asks=TOOLS)[0] == ["unsaid"], "it is there, and nobody who is there says so"


def test_release_goes_by_the_same_rule() -> None:
    able = worker("able", model("a", capabilities=("completion", "tools")))
    unsaid = worker("unsaid", model("b", capabilities=("completion",)))
    pairs = (("a", ("able",)), ("b", ("unsaid",)))
    assert best_suited(pairs, fleet(able, unsaid), TOOLS) == (("a", ("able",)),)
    assert best_suited(pairs, fleet(able, unsaid), ASKS) == pairs
    silent = worker("able", model("a", capabilities=("tools",)), alive=False)
    assert best_suited(pairs, fleet(silent, unsaid), TOOLS) == pairs


WISH = RouteRequest(prompt_tokens=1, wants=Wants(context=4096, context_flexible=True))


@pytest.mark.parametrize("state", [{}, {"alive": False}, {"paused": True}, {"draining": True}])
def test_a_wish_is_released_to_whoever_has_it_while_they_are_there(state: dict[str, bool]) -> None:
    everyone = fleet(worker("small", model("a", context=2048)), worker("large", model("a", context=8192), **state))
    expected = ("large", "small") if state else ("large",)
    assert best_suited((("a", ("large", "small")),), everyone, WISH) == (("a", expected),)
