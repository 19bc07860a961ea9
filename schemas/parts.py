"""The values inside events: what a task wanted, what a decision knew, what an attempt cost.

Answers "which words are events made of?". Each is a frozen value; what it means is said here once, for every event that carries
it. People import them from ``schemas.events``, which lists them all.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["chat", "completion", "embedding", "bench", "compare"]
Urgency = Literal["interactive", "batch", "background"]
Outcome = Literal["ok", "empty", "truncated", "substituted", "wrong_language"]
FailureClass = Literal[
    "busy", "stall", "disconnect", "oom", "protocol", "refused", "timeout", "rejected", "not_started", "lost", "fenced"
]
Phase = Literal["claiming", "queued", "loading", "prefill", "decode", "ending"]
Level = Literal["cell", "model_domain", "model_worker", "worker", "model", "family", "prior"]
JudgeSource = Literal["judge", "check", "thumb", "signal"]
Purpose = Literal["probe", "suite", "shadow", "judge"]
Pick = Literal["own", "peer", "tie", "malformed", "missing"]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A value inside an event."""


class Domain(Part, frozen=True, kw_only=True):
    """What a prompt is about. ``label`` may be ``unknown``; ``confidence`` is in [0, 1]."""

    label: str
    method: str
    confidence: float | None = None


class Sizes(Part, frozen=True, kw_only=True):
    """How large a request is. ``prompt_tokens`` is an estimate made from the characters, never a count; ``image_urls`` are those
    of the images that somebody would have to fetch."""

    messages: int
    chars: int
    prompt_tokens: int
    body_bytes: int
    images: int = 0
    tools: int = 0
    image_urls: int = 0


class Wants(Part, frozen=True, kw_only=True):
    """What the client insists on; every ``None`` leaves the choice to the router. ``context`` is in tokens; where it is
    ``context_flexible`` it is a wish: a smaller window will do while nobody who is there has that one."""

    model: str | None = None
    route: str | None = None
    worker: str | None = None
    capability: str | None = None
    context: int | None = None
    context_flexible: bool = False


class Options(Part, frozen=True, kw_only=True):
    """Sampling options that reach the backend. ``slider`` is the seconds one would wait for one more point of quality."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    slider: float | None = None


class Verdict(Part, frozen=True, kw_only=True):
    """What a route's decision service said: a probability for each model, its confidence in [0, 1], and how long it took.

    A verdict is one vote among others, never an order. Without ``probabilities`` there is none, and ``reason`` says why.
    """

    by: str
    probabilities: dict[str, float] = {}
    confidence: float | None = None
    took_s: float | None = None
    reason: str | None = None


class Bench(Part, frozen=True, kw_only=True):
    """Why a task of kind ``bench`` was asked: what it measures, the suite's prompt, the debt's reason, and what it judges."""

    purpose: Purpose
    suite: str | None = None
    prompt: str | None = None
    reason: str = ""
    of: tuple[str, ...] = ()


class PayloadRef(Part, frozen=True, kw_only=True):
    """Where a text lies: a subject of TASKS. The text itself is never in an event."""

    subject: str
    bytes: int


class Measure(Part, frozen=True, kw_only=True):
    """One number with its provenance: source level, number of samples and age. ``value`` None means unknown."""

    value: float | None
    level: Level
    n: int
    age_s: float | None = None


class Prediction(Part, frozen=True, kw_only=True):
    """Predicted seconds until the answer is whole, part by part; ``None`` is unknown, and unknown is never good."""

    wait_s: float | None = None
    load_s: float | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    sharing_s: float | None = None
    total_s: float | None = None


class Candidate(Part, frozen=True, kw_only=True):
    """One (model, worker) pair that could have answered, with everything its cost was made of.

    ``cost_s`` is what the router minimises: predicted seconds minus ``slider`` times quality in points of 100; the slider used
    is ``policy.weights["slider"]`` of the decision. ``decode`` and ``prefill`` are tokens per second, ``load`` is seconds,
    ``quality`` is in [0, 1]. ``prompt_tokens`` are those that would be prefilled there, ``output_tokens`` those expected there.
    ``others_s`` is what the model takes from the tasks waiting behind, in seconds (N·W, ROUTING.md B3.6); ``slowdown`` is what
    each further stream costs the others there (β, B3.4); ``others_weight`` how much of others' use comes off the speed (1 at
    first, then learned), ``use_known`` the share of the samples that knew it. ``votes`` are a route's policies' weighted votes.
    """

    model: str
    worker: str
    cost_s: float
    predicted: Prediction
    decode: Measure
    prefill: Measure
    load: Measure
    quality: Measure
    uncertainty: float | None = None
    others_use: float | None = None
    resident: bool | None = None
    fresh: bool = True
    digest: str | None = None
    prompt_tokens: int | None = None
    output_tokens: Measure | None = None
    others_s: float | None = None
    slowdown: Measure | None = None
    others_weight: Measure | None = None
    use_known: Measure | None = None
    votes: dict[str, float] = {}


class Removal(Part, frozen=True, kw_only=True):
    """A pair that could not answer, and why."""

    model: str
    worker: str | None
    reason: str


class Choice(Part, frozen=True, kw_only=True):
    """The model chosen so far; the worker is only the likely one until the task has started."""

    model: str
    worker: str | None = None
    reason: str = ""


class WorkerInput(Part, frozen=True, kw_only=True):
    """What a decision knew about a worker: copied here because heartbeats expire and decisions do not.

    ``remaining_s`` are the predicted seconds left of each attempt that runs or was released there, shortest first. ``alive``
    says whether it was heard lately, ``fresh`` whether its load is young enough to count. ``in_flight`` are the router's own live
    attempts there, where the policies of a route count them.
    """

    worker: str
    free: int | None = None
    slots: int | None = None
    running: int | None = None
    waiting_s: float | None = None
    others_use: float | None = None
    others_reason: str | None = None
    resident: tuple[str, ...] | None = None
    credit_age_s: float | None = None
    remaining_s: tuple[float, ...] | None = None
    paused: bool = False
    alive: bool = True
    fresh: bool = True
    draining: bool = False
    in_flight: int | None = None


TARGET_SHARE = "target:"


class Policy(Part, frozen=True, kw_only=True):
    """The policy that decided and its numbers; ``route`` is the virtual model of ``routes.toml`` that it belongs to. Where a
    target was drawn, ``target:<its name>`` are the shares of those that it was drawn from."""

    name: str
    weights: dict[str, float]
    route: str | None = None


class Tokens(Part, frozen=True, kw_only=True):
    """Token counts as the backend reported them; ``None`` where it did not."""

    prompt: int | None = None
    cached: int | None = None
    output: int | None = None
    thinking: int | None = None


class Times(Part, frozen=True, kw_only=True):
    """Where an attempt's seconds went. ``source`` says who measured prefill and decode: ``backend`` or ``worker``."""

    queue_s: float | None = None
    load_s: float | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    first_token_s: float | None = None
    total_s: float | None = None
    source: Literal["backend", "worker"] | None = None


class ModelInfo(Part, frozen=True, kw_only=True):
    """A model as one backend holds it. ``name`` is canonical, ``backend_name`` what the backend calls it. ``capabilities`` are
    what the backend says that it can do, ``lacks`` what it says that it cannot; of the rest nothing is known. ``family``,
    ``parameter_size`` ("134.52M") and ``parameters`` (its defaults of a request, a line each) are the backend's words."""

    name: str
    backend_name: str
    digest: str | None = None
    bytes: int | None = None
    quantisation: str | None = None
    context: int | None = None
    capabilities: tuple[str, ...] = ()
    capability: str = "cpu_inference"
    aliases: tuple[str, ...] = ()
    resident: bool | None = None
    lacks: tuple[str, ...] = ()
    family: str | None = None
    families: tuple[str, ...] = ()
    parameter_size: str | None = None
    parameters: str | None = None


class Loaded(Part, frozen=True, kw_only=True):
    """A model in memory, in its backend's words: ``bytes`` in all, ``vram_bytes`` of them on a GPU, and when it leaves if nobody
    asks (Unix seconds, the machine's clock). Each None where the backend does not say it."""

    model: str
    bytes: int | None = None
    vram_bytes: int | None = None
    expires_at: float | None = None


class Gpu(Part, frozen=True, kw_only=True):
    """One GPU's reading. ``unified`` memory is shared with the CPU."""

    name: str | None = None
    uuid: str | None = None
    use: float | None = None
    vram_total_bytes: int | None = None
    vram_used_bytes: int | None = None
    temperature_c: float | None = None
    unified: bool | None = None


class RunningAttempt(Part, frozen=True, kw_only=True):
    """An attempt that a worker has in hand, from its claim to the ack of its end."""

    task: str
    attempt: int
    phase: Phase
    tokens: int = 0
    elapsed_s: float | None = None


class Credit(Part, frozen=True, kw_only=True):
    """A worker's word that slots are free *and its pulls are armed*; absolute, so a lost one heals with the next.

    ``armed`` maps each group or lane (its consumer's durable name) that every pull of this worker covers to its pull priority, 0
    best to 9; it stays while the slots are busy.
    """

    worker: str
    boot: str
    seq: int
    slots: int
    free: int
    running: tuple[RunningAttempt, ...] = ()
    armed: dict[str, int] = {}
    draining: bool = False
