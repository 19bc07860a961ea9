"""Every fact Headrace records, as one closed, tagged union.

Answers "what happened?". Events carry ids, sizes, numbers and reasons, never a prompt's or an answer's text. A quantity that
could not be read is ``None``, never 0. Fields are only ever added, with a default; nothing is renamed (see ``codec``).

Units are in the names: ``_s`` seconds (one machine's monotonic clock), ``_bytes``, ``_tokens``; rates are tokens per second.
"""

from __future__ import annotations

import msgspec

from schemas.parts import (
    TARGET_SHARE as TARGET_SHARE,
    Bench as Bench,
    Candidate as Candidate,
    Choice as Choice,
    Credit as Credit,
    Domain as Domain,
    FailureClass as FailureClass,
    Gpu as Gpu,
    JudgeSource as JudgeSource,
    Kind as Kind,
    Level as Level,
    Loaded as Loaded,
    Measure as Measure,
    ModelInfo as ModelInfo,
    Options as Options,
    Outcome as Outcome,
    Part as Part,
    PayloadRef as PayloadRef,
    Phase as Phase,
    Pick as Pick,
    Policy as Policy,
    Prediction as Prediction,
    Purpose as Purpose,
    Removal as Removal,
    RunningAttempt as RunningAttempt,
    Sizes as Sizes,
    Times as Times,
    Tokens as Tokens,
    Urgency as Urgency,
    Verdict as Verdict,
    Wants as Wants,
    WorkerInput as WorkerInput,
)


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """The envelope. ``at`` is the producer's clock in Unix seconds, for display only; order is the stream's sequence."""

    id: str
    v: int = 1
    at: float
    by: str
    cause: str | None = None


class TaskSubmitted(Event, frozen=True, kw_only=True, tag="task.submitted"):
    """``repeats`` is the client's earlier task with the same text, where it was asked again at once. ``message`` is the client's
    own name for the answer, by which it may be rated."""

    task: str
    client: str
    session: str | None = None
    kind: Kind = "chat"
    urgency: Urgency = "interactive"
    domain: Domain
    language: str | None = None
    sizes: Sizes
    wants: Wants = Wants()
    options: Options = Options()
    deadline_s: float | None = None
    parent: str | None = None
    payload: PayloadRef
    verdict: Verdict | None = None
    bench: Bench | None = None
    repeats: str | None = None
    message: str | None = None


class TaskRouted(Event, frozen=True, kw_only=True, tag="task.routed"):
    """``position`` is the EVENTS sequence up to which the statistics used were folded; ``seed`` broke the ties.

    ``omitted`` counts the pairs that could have answered but are not among the recorded ``candidates`` (the best 32).
    ``service_s`` is the least predicted service time, without wait and load: the queue's order rests on it. ``target`` is the
    route's target that was drawn, where targets are drawn (weights, round robin).

    With ``exact`` the statistics were the fold of precisely the log up to ``position``; without it some cells may have been older
    or younger, and the decision cannot be computed again. ``folded`` is how far the router had read the log for everything else.
    """

    task: str
    epoch: int
    policy: Policy
    position: int
    inputs: tuple[WorkerInput, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    removed: tuple[Removal, ...] = ()
    choice: Choice | None = None
    seed: int = 0
    omitted: int = 0
    service_s: float | None = None
    target: str | None = None
    folded: int | None = None
    exact: bool = False


class TaskReleased(Event, frozen=True, kw_only=True, tag="task.released"):
    """``lane`` is ``any`` (the group) or a worker's id. ``holders`` are the workers inside the permits: each one's backend
    permit is reserved until the start. ``permits`` are names such as ``model:qwen3``, ``client:me``, ``backend:w1``.

    ``held_s`` says how much of ``waited_s`` passed under which reason (``model_full``, ``waiting_for_faster``, ...).

    A release is a decision too: ``position``, ``inputs`` and ``cost_s`` are what it knew then. ``candidates`` are the pairs as
    they stood at the release, recorded only where it differs from the routed choice. ``behind`` counts the tasks that waited
    behind it then, in the same or a more urgent class. ``folded`` and ``exact`` are as in ``TaskRouted``;
    ``slider`` is what was in force for it, ``others_s`` the part of ``cost_s`` that counts the tasks behind.
    """

    task: str
    attempt: int
    epoch: int
    model: str
    reason: str | None = None
    capability: str
    lane: str
    expected_worker: str | None = None
    holders: tuple[str, ...] = ()
    predicted: Prediction = Prediction()
    uncertainty: float | None = None
    permits: tuple[str, ...] = ()
    waited_s: float | None = None
    bypasses: int = 0
    deadline_s: float = 2.0
    position: int | None = None
    inputs: tuple[WorkerInput, ...] = ()
    cost_s: float | None = None
    candidates: tuple[Candidate, ...] = ()
    held_s: dict[str, float] = {}
    behind: int | None = None
    overtaken_s: float = 0.0
    folded: int | None = None
    exact: bool = False
    slider: float | None = None
    others_s: float | None = None


class TaskStarted(Event, frozen=True, kw_only=True, tag="task.started"):
    task: str
    attempt: int
    worker: str
    boot: str
    model: str
    digest: str | None = None
    context: int | None = None
    concurrency: int = 1
    deliveries: int = 1


class DispatcherElected(Event, frozen=True, kw_only=True, tag="dispatcher.elected"):
    epoch: int
    router: str
    version: str | None = None


class AttemptFailed(Event, frozen=True, kw_only=True, tag="attempt.failed"):
    """``epoch`` is set where a router says it, ``boot`` where a worker does. ``tokens`` were already delivered.

    ``model`` to ``elapsed_s`` make a failure a sample of its own: what failed, where it was then, and how long it had run.
    """

    task: str
    attempt: int
    worker: str | None = None
    boot: str | None = None
    epoch: int | None = None
    failure: FailureClass
    retryable: bool
    tokens: int = 0
    detail: str = ""
    model: str | None = None
    digest: str | None = None
    domain: str | None = None
    phase: Phase | None = None
    elapsed_s: float | None = None


class TaskCompleted(Event, frozen=True, kw_only=True, tag="task.completed"):
    """Carries every attribute a statistic may ever be keyed by, so that any key is a function of this one event.

    ``others_use`` is the share of the machine that somebody else used at the start: without it, a sample taken during a game
    makes the machine look slow for ever; a laptop ``on_battery`` likewise. ``concurrency`` is how many ran there at once, on
    average. ``prompt_chars`` beside ``tokens.prompt`` teaches the estimate of prompt sizes. ``gpu`` joins several names by ``+``.
    """

    task: str
    attempt: int
    worker: str
    boot: str
    model: str
    backend_model: str | None = None
    digest: str | None = None
    quantisation: str | None = None
    model_bytes: int | None = None
    backend: str | None = None
    domain: str
    language: str | None = None
    kind: Kind = "chat"
    urgency: Urgency = "interactive"
    capability: str = "cpu_inference"
    lane: str = "any"
    client: str = ""
    session: str | None = None
    context: int | None = None
    resident: bool | None = None
    concurrency: int = 1
    outcome: Outcome = "ok"
    finish_reason: str | None = None
    tokens: Tokens = Tokens()
    times: Times = Times()
    answer: PayloadRef | None = None
    backend_version: str | None = None
    gpu: str | None = None
    others_use: float | None = None
    on_battery: bool | None = None
    prompt_chars: int | None = None


class TaskFailed(Event, frozen=True, kw_only=True, tag="task.failed"):
    task: str
    epoch: int
    failure: FailureClass
    attempts: int = 0
    detail: str = ""


class TaskCancelled(Event, frozen=True, kw_only=True, tag="task.cancelled"):
    task: str
    epoch: int
    reason: str = ""


class TaskDead(Event, frozen=True, kw_only=True, tag="task.dead"):
    """Given up after the allowed number of *started* attempts."""

    task: str
    epoch: int
    attempts: int
    failures: tuple[FailureClass, ...] = ()
    detail: str = ""


class BenchCompleted(Event, frozen=True, kw_only=True, tag="bench.completed"):
    """A suite prompt's verdict. Its speed sample is the task's own ``task.completed``: one execution, one sample.

    ``check`` is the name of the grader, ``run`` the demand (``headrace bench``) that it belongs to. Where the model was asked to
    judge a pair of answers of which one is known to be right, ``picks`` are its choices in each order (``own`` is the right
    one) and ``chars`` the lengths of the right and of the wrong answer.
    """

    task: str
    suite: str
    prompt: str
    model: str
    worker: str
    digest: str | None = None
    domain: str
    grade: float | None = None
    detail: str = ""
    quantisation: str | None = None
    check: str | None = None
    run: str | None = None
    picks: tuple[Pick, ...] = ()
    chars: tuple[int, ...] = ()


class QualityJudged(Event, frozen=True, kw_only=True, tag="quality.judged"):
    """``value`` in [0, 1]. ``worker`` None judges the model wherever it ran.

    A pair is two of these with one ``pair``: each side's own, with the other model as its ``peer``. ``picks`` are what the judge
    chose in each order that it was shown, ``chars`` the lengths of the own answer and the peer's; ``kin`` says that the judge
    is of a candidate's family. ``signal`` names the weak evidence, ``client`` whose thumb it was.
    """

    model: str
    digest: str | None = None
    domain: str
    worker: str | None = None
    source: JudgeSource
    value: float
    judge: str | None = None
    order: tuple[str, ...] = ()
    peer: str | None = None
    tasks: tuple[str, ...] = ()
    weight: float = 1.0
    comment: str | None = None
    quantisation: str | None = None
    pair: str | None = None
    peer_digest: str | None = None
    judge_digest: str | None = None
    picks: tuple[Pick, ...] = ()
    chars: tuple[int, ...] = ()
    kin: bool = False
    signal: str | None = None
    client: str | None = None
    suite: str | None = None
    prompt: str | None = None


class WorkerLoad(Event, frozen=True, kw_only=True, tag="worker.load"):
    """One heartbeat. Every unreadable field is ``None`` and has its reason under the field's name in ``unreadable``.

    ``others_use`` in [0, 1] is the share of the machine that somebody else uses (a game on the GPU), as measured when no
    attempt of ours was running ``others_age_s`` ago; ``uptime_s`` is the worker's monotonic clock. ``loaded`` says more of those
    ``resident`` models of which the backend says more.
    """

    worker: str
    boot: str
    seq: int
    uptime_s: float
    interval_s: float = 5.0
    cpu_use: float | None = None
    cpu_count: float | None = None
    cpu_pressure: float | None = None
    ram_total_bytes: int | None = None
    ram_available_bytes: int | None = None
    gpus: tuple[Gpu, ...] | None = None
    others_use: float | None = None
    others_age_s: float | None = None
    on_battery: bool | None = None
    backend_up: bool | None = None
    resident: tuple[str, ...] | None = None
    credit: Credit | None = None
    unreadable: dict[str, str] = {}
    loaded: tuple[Loaded, ...] = ()


class KeysAdopted(Event, frozen=True, kw_only=True, tag="keys.adopted"):
    """The key set that routers score with from here on, for example ``("model", "domain", "worker")``."""

    keys: tuple[str, ...]


class WorkerPaused(Event, frozen=True, kw_only=True, tag="worker.paused"):
    """Somebody took a machine out: it gets no new work until ``worker.resumed``, or until ``for_s`` after this was stored."""

    worker: str
    for_s: float | None = None
    reason: str = ""


class WorkerResumed(Event, frozen=True, kw_only=True, tag="worker.resumed"):
    worker: str
    reason: str = ""


class WorkerReported(Event, frozen=True, kw_only=True, tag="worker.reported"):
    """What a worker holds and can do; said at start and whenever it changes. ``version`` is Headrace's own."""

    worker: str
    boot: str
    name: str
    host: str | None = None
    supports: tuple[str, ...] = ("cpu_inference",)
    backend: str
    backend_version: str | None = None
    backend_id: str | None = None
    local: bool = True
    slots: int = 1
    models: tuple[ModelInfo, ...] = ()
    unreadable: dict[str, str] = {}
    gpu: str | None = None
    version: str | None = None


class WorkerLeft(Event, frozen=True, kw_only=True, tag="worker.left"):
    worker: str
    boot: str
    reason: str = ""


AnyEvent = (
    TaskSubmitted
    | TaskRouted
    | TaskReleased
    | TaskStarted
    | DispatcherElected
    | AttemptFailed
    | TaskCompleted
    | TaskFailed
    | TaskCancelled
    | TaskDead
    | BenchCompleted
    | QualityJudged
    | WorkerLoad
    | KeysAdopted
    | WorkerPaused
    | WorkerResumed
    | WorkerReported
    | WorkerLeft
)
Terminal = TaskCompleted | TaskFailed | TaskCancelled | TaskDead
EVENT_TYPES: tuple[type[Event], ...] = (
    TaskSubmitted,
    TaskRouted,
    TaskReleased,
    TaskStarted,
    DispatcherElected,
    AttemptFailed,
    TaskCompleted,
    TaskFailed,
    TaskCancelled,
    TaskDead,
    BenchCompleted,
    QualityJudged,
    WorkerLoad,
    KeysAdopted,
    WorkerPaused,
    WorkerResumed,
    WorkerReported,
    WorkerLeft,
)


def type_of(event: Event) -> str:
    """The wire type, for example ``task.submitted``."""
    return str(type(event).__struct_config__.tag)
