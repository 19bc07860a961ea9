"""Events as the services would say them: one realistic value of every type.

Answers "what does such an event look like?". ``build`` round-trips through the codec, because msgspec's constructors check
nothing: a test can only ever use an event that could have been stored.
"""

from __future__ import annotations

from typing import Any, TypeVar

from schemas import codec, events, subjects
from schemas.events import Event

E = TypeVar("E", bound=Event)

AT = 1_767_225_600.25
TASK = "01kdv0s2q8m5e7x3b9c4fya1tz"
QWEN = "qwen3:8b"
LLAMA = "llama3.2:3b"
DESK = "w-desk-4f2a"
LAPTOP = "w-lap-91c0"
DIGEST = "sha256:5f1c9e2b7a"


def measure(
    value: float | None, level: events.Level = "cell", n: int = 12, age_s: float | None = 40.5
) -> events.Measure:
    return events.Measure(value=value, level=level, n=n, age_s=age_s)


DESK_CANDIDATE = events.Candidate(
    model=QWEN,
    worker=DESK,
    cost_s=-74.0,
    predicted=events.Prediction(wait_s=0.0, load_s=0.0, prefill_s=0.25, decode_s=3.75, sharing_s=0.0, total_s=4.0),
    decode=measure(80.0),
    prefill=measure(800.0),
    load=measure(3.5, "worker", 4),
    quality=measure(0.78, "model_domain", 9),
    uncertainty=0.21,
    others_use=0.0,
    resident=True,
    fresh=True,
    digest=DIGEST,
    prompt_tokens=200,
    output_tokens=measure(300.0, "prior", 0, None),
)
DESK_INPUT = events.WorkerInput(
    worker=DESK, free=2, slots=2, running=0, waiting_s=0.0, others_use=0.0, resident=(QWEN,), credit_age_s=0.8
)
SILENT_INPUT = events.WorkerInput(worker=LAPTOP, slots=1, others_reason="no_agent")
MODEL = events.ModelInfo(
    name=QWEN,
    backend_name="qwen3:8b-q4_K_M",
    digest=DIGEST,
    bytes=5_200_000_000,
    quantisation="Q4_K_M",
    context=40_960,
    capabilities=("chat", "tools"),
    aliases=("qwen3",),
    resident=True,
)
CREDIT = events.Credit(
    worker=DESK,
    boot="b7",
    seq=41,
    slots=2,
    free=1,
    running=(events.RunningAttempt(task=TASK, attempt=1, phase="decode", tokens=17, elapsed_s=1.5),),
    armed={subjects.group_durable("cpu_inference", QWEN): 0, subjects.lane_durable(DESK): 0},
)

VALUES: dict[type[Event], dict[str, Any]] = {
    events.TaskSubmitted: {
        "by": "router-1",
        "task": TASK,
        "client": "me",
        "session": "chat-7",
        "domain": events.Domain(label="code", method="rules", confidence=0.9),
        "language": "en",
        "sizes": events.Sizes(messages=3, chars=800, prompt_tokens=200, body_bytes=1_024),
        "wants": events.Wants(context=8_192),
        "options": events.Options(max_tokens=400, temperature=0.7, slider=1.0),
        "payload": events.PayloadRef(subject=subjects.body_subject("me", TASK), bytes=1_024),
    },
    events.TaskRouted: {
        "by": "router-1",
        "task": TASK,
        "epoch": 3,
        "policy": events.Policy(
            name="least_completion", weights={"slider": 1.0, "others_factor_least": 0.25, "unknown_wait_s": 3_600.0}
        ),
        "position": 1_234,
        "inputs": (DESK_INPUT, SILENT_INPUT),
        "candidates": (DESK_CANDIDATE,),
        "removed": (events.Removal(model=LLAMA, worker=LAPTOP, reason="context: has 4096, needs 8192"),),
        "choice": events.Choice(model=QWEN, worker=DESK, reason="least cost"),
        "seed": 7,
    },
    events.TaskReleased: {
        "by": "router-1",
        "task": TASK,
        "attempt": 1,
        "epoch": 3,
        "model": QWEN,
        "capability": "cpu_inference",
        "lane": "any",
        "expected_worker": DESK,
        "holders": (DESK, LAPTOP),
        "predicted": DESK_CANDIDATE.predicted,
        "uncertainty": 0.21,
        "permits": (f"model:{QWEN}", "client:me", f"backend:{DESK}"),
        "waited_s": 0.004,
        "position": 1_236,
        "inputs": (DESK_INPUT,),
        "cost_s": -74.0,
        "held_s": {"model_full": 0.003},
    },
    events.TaskStarted: {
        "by": DESK,
        "task": TASK,
        "attempt": 1,
        "worker": DESK,
        "boot": "b7",
        "model": QWEN,
        "digest": DIGEST,
        "context": 40_960,
    },
    events.DispatcherElected: {"by": "router-1", "epoch": 3, "router": "router-1", "version": "0.1.0"},
    events.AttemptFailed: {
        "by": DESK,
        "task": TASK,
        "attempt": 1,
        "worker": DESK,
        "boot": "b7",
        "failure": "stall",
        "retryable": True,
        "tokens": 17,
        "detail": "no token for 60 s",
        "model": QWEN,
        "digest": DIGEST,
        "domain": "code",
        "phase": "decode",
        "elapsed_s": 63.5,
    },
    events.TaskCompleted: {
        "by": DESK,
        "task": TASK,
        "attempt": 1,
        "worker": DESK,
        "boot": "b7",
        "model": QWEN,
        "backend_model": "qwen3:8b-q4_K_M",
        "digest": DIGEST,
        "quantisation": "Q4_K_M",
        "model_bytes": 5_200_000_000,
        "backend": "ollama",
        "domain": "code",
        "language": "en",
        "client": "me",
        "session": "chat-7",
        "context": 40_960,
        "resident": True,
        "finish_reason": "stop",
        "tokens": events.Tokens(prompt=196, cached=0, output=240),
        "times": events.Times(
            queue_s=0.003, load_s=0.0, prefill_s=0.245, decode_s=3.0, first_token_s=0.26, total_s=3.25, source="backend"
        ),
        "answer": events.PayloadRef(subject=subjects.answer_subject("me", TASK, 1), bytes=960),
        "backend_version": "0.12.3",
        "gpu": "NVIDIA GeForce RTX 4070",
        "others_use": 0.0,
        "on_battery": False,
        "prompt_chars": 800,
    },
    events.TaskFailed: {
        "by": "router-1",
        "task": TASK,
        "epoch": 3,
        "failure": "rejected",
        "attempts": 1,
        "detail": "the backend refused: context too large",
    },
    events.TaskCancelled: {"by": "router-1", "task": TASK, "epoch": 3, "reason": "the last reader left"},
    events.TaskDead: {
        "by": "router-1",
        "task": TASK,
        "epoch": 3,
        "attempts": 3,
        "failures": ("stall", "oom", "lost"),
        "detail": "3 started attempts failed",
    },
    events.BenchCompleted: {
        "by": "benchmarker",
        "task": TASK,
        "suite": "code-en",
        "prompt": "fizzbuzz",
        "model": QWEN,
        "worker": DESK,
        "digest": DIGEST,
        "domain": "code",
        "grade": 1.0,
        "quantisation": "Q4_K_M",
    },
    events.QualityJudged: {
        "by": "benchmarker",
        "model": QWEN,
        "digest": DIGEST,
        "domain": "code",
        "worker": DESK,
        "source": "judge",
        "value": 0.75,
        "judge": "gemma3:12b",
        "order": (QWEN, LLAMA),
        "peer": LLAMA,
        "tasks": (TASK,),
        "quantisation": "Q4_K_M",
    },
    events.WorkerLoad: {
        "by": DESK,
        "worker": DESK,
        "boot": "b7",
        "seq": 88,
        "uptime_s": 5_000.5,
        "cpu_use": 0.12,
        "cpu_count": 16.0,
        "ram_total_bytes": 34_359_738_368,
        "ram_available_bytes": 20_000_000_000,
        "gpus": (events.Gpu(name="NVIDIA GeForce RTX 4070", use=0.0, vram_total_bytes=12_878_610_432, unified=False),),
        "others_use": 0.0,
        "others_age_s": 2.5,
        "backend_up": True,
        "resident": (QWEN,),
        "credit": CREDIT,
        "unreadable": {"cpu_pressure": "no /proc/pressure/cpu", "on_battery": "no battery"},
    },
    events.KeysAdopted: {"by": "cli", "keys": ("model", "domain", "worker")},
    events.WorkerReported: {
        "by": DESK,
        "worker": DESK,
        "boot": "b7",
        "name": "desk",
        "host": "desk.local",
        "supports": ("gpu_inference", "cpu_inference"),
        "backend": "ollama",
        "backend_version": "0.12.3",
        "backend_id": "be-11",
        "slots": 2,
        "models": (MODEL,),
        "gpu": "NVIDIA GeForce RTX 4070",
        "version": "0.1.0",
    },
    events.WorkerPaused: {"by": "router", "worker": DESK, "for_s": 7200.0, "reason": "a game"},
    events.WorkerResumed: {"by": "router", "worker": DESK, "reason": "asked for"},
    events.WorkerLeft: {"by": DESK, "worker": DESK, "boot": "b7", "reason": "drained"},
}
"""What each type says unless told otherwise: one desktop, one model, one task."""


def build(kind: type[E], **overrides: Any) -> E:
    """An event of ``kind`` with realistic contents, as it comes out of the codec. Raises InvalidEvent for impossible ones."""
    tag = str(kind.__struct_config__.tag)
    fields = {"id": f"ev-{tag}", "at": AT, "cause": f"cause-of-{tag}", **VALUES[kind], **overrides}
    stored = codec.decode(codec.encode(kind(**fields)))
    assert isinstance(stored, kind), stored
    return stored


def message_id(event: Event) -> str:
    """The ``Nats-Msg-Id`` that PROTOCOL.md gives the event; those it names no id for go under their own."""
    match event:
        case events.TaskSubmitted():
            return subjects.submit_id(event.task)
        case events.TaskRouted():
            return subjects.routed_id(event.task)
        case events.TaskReleased():
            return subjects.release_id(event.task, event.attempt)
        case events.TaskStarted():
            return subjects.start_id(event.task, event.attempt)
        case events.AttemptFailed() if event.failure in ("not_started", "refused"):
            return subjects.start_id(event.task, event.attempt)
        case events.AttemptFailed():
            return subjects.fail_id(event.task, event.attempt, event.epoch)
        case events.TaskCompleted() | events.TaskFailed() | events.TaskCancelled() | events.TaskDead():
            return subjects.end_id(event.task)
        case _:
            return event.id
