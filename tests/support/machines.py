"""The fleet of ``support.history``: two machines 7.3 times apart, two models, and what would be decided and measured there."""

from __future__ import annotations

import math
import random
from typing import Any, NamedTuple

from schemas import events, subjects
from schemas.events import Event
from support.builders import measure

EPOCH = 3
CONTEXT = 8_192
WEIGHTS = {"slider": 1.0, "others_factor_least": 0.25, "unknown_wait_s": 3_600.0}


class Machine(NamedTuple):
    """True speeds at 1 GB of weights: tokens per second, and gigabytes per second from disk."""

    worker: str
    name: str
    decode: float
    prefill: float
    disk: float
    slots: int
    backend: str
    version: str
    gpu: str | None
    others_use: float | None

    @property
    def boot(self) -> str:
        return f"boot-{self.name}"

    def digest(self, model: Model) -> str | None:
        """Only Ollama tells a model's digest."""
        return model.digest if self.backend == "ollama" else None


class Model(NamedTuple):
    name: str
    gigabytes: float
    digest: str
    quantisation: str
    quality: float


DESK = Machine("w-desk", "desk", 440.0, 9_000.0, 2.0, 2, "ollama", "0.12.3", "NVIDIA GeForce RTX 4070", 0.0)
LAPTOP = Machine("w-lap", "laptop", 60.0, 1_100.0, 0.8, 1, "llama.cpp", "b6900", None, None)
MACHINES = (DESK, LAPTOP)
MODELS = (
    Model("qwen3:8b", 5.2, "sha256:5f1c", "Q4_K_M", 0.78),
    Model("llama3.2:3b", 2.0, "sha256:a80c", "Q8_0", 0.61),
)
DOMAINS = (("code", "en"), ("general", "en"), ("japanese", "ja"), ("maths", "en"), ("translation", "ja"))


def report(event_id: str, at_us: int, machine: Machine) -> Event:
    return events.WorkerReported(
        id=event_id,
        at=at_us / 1e6,
        by=machine.worker,
        worker=machine.worker,
        boot=machine.boot,
        name=machine.name,
        backend=machine.backend,
        backend_version=machine.version,
        backend_id=f"be-{machine.name}",
        slots=machine.slots,
        gpu=machine.gpu,
        models=tuple(
            events.ModelInfo(
                name=model.name,
                backend_name=model.name,
                digest=machine.digest(model),
                bytes=int(model.gigabytes * 1e9),
                quantisation=model.quantisation,
                context=CONTEXT,
                capabilities=("chat",),
            )
            for model in MODELS
        ),
    )


def decision(rng: random.Random, submitted: events.TaskSubmitted) -> dict[str, Any]:
    """A decision by the cost rule of docs/scoring.md, over every pair that the task allows."""
    pairs, inputs = list[events.Candidate](), list[events.WorkerInput]()
    for machine in MACHINES:
        wait_s = round(rng.choice((0.0, 0.0, rng.expovariate(0.3))), 3)
        resident = rng.choice(MODELS)
        told = events.WorkerInput(
            worker=machine.worker,
            slots=machine.slots,
            waiting_s=wait_s,
            others_use=machine.others_use,
            others_reason=None if machine.others_use is not None else "no GPU reading",
            resident=(resident.name,),
            credit_age_s=round(rng.random(), 3),
        )
        inputs.append(told)
        pairs += [
            _candidate(rng, machine, model, submitted, wait_s=wait_s, resident=resident is model)
            for model in MODELS
            if submitted.wants.model in (None, model.name)
        ]
    pairs.sort(key=lambda pair: (not pair.fresh, pair.cost_s))
    return {
        "task": submitted.task,
        "epoch": EPOCH,
        "policy": events.Policy(name="least_completion", weights=WEIGHTS),
        "position": len(MACHINES) + 2,
        "inputs": tuple(inputs),
        "candidates": tuple(pairs),
        "choice": events.Choice(model=pairs[0].model, worker=pairs[0].worker, reason="least cost"),
        "seed": rng.randrange(2**31),
    }


def _candidate(
    rng: random.Random,
    machine: Machine,
    model: Model,
    submitted: events.TaskSubmitted,
    *,
    wait_s: float,
    resident: bool,
) -> events.Candidate:
    decode = round(machine.decode / model.gigabytes * rng.lognormvariate(0, 0.05), 3)
    prefill = round(machine.prefill / model.gigabytes * rng.lognormvariate(0, 0.05), 3)
    load, prompt = round(model.gigabytes / machine.disk, 3), submitted.sizes.prompt_tokens
    factor = 0.25 if machine.others_use is None else max(1.0 - machine.others_use, 0.25)
    output = min(300.0, submitted.options.max_tokens or 300.0)
    parts = (wait_s, 0.0 if resident else load, prompt / (prefill * factor), output / (decode * factor), 0.0)
    total, n = sum(parts), rng.randrange(1, 60)
    return events.Candidate(
        model=model.name,
        worker=machine.worker,
        cost_s=total - WEIGHTS["slider"] * 100.0 * model.quality,
        predicted=events.Prediction(
            wait_s=parts[0], load_s=parts[1], prefill_s=parts[2], decode_s=parts[3], sharing_s=parts[4], total_s=total
        ),
        decode=measure(decode, n=n),
        prefill=measure(prefill, n=n),
        load=measure(load, "worker", 3),
        quality=measure(model.quality, "model_domain", 5),
        uncertainty=round(1 / math.sqrt(n + 1), 3),
        others_use=machine.others_use,
        resident=resident,
        digest=machine.digest(model),
        prompt_tokens=prompt,
        output_tokens=measure(300.0, "prior", 0, None),
    )


def completion(
    rng: random.Random, submitted: events.TaskSubmitted, machine: Machine, model: Model, attempt: int
) -> dict[str, Any]:
    limit, wanted = submitted.options.max_tokens or 2_048, int(rng.lognormvariate(5.3, 0.6)) + 1
    output, prompt = min(wanted, limit), max(1, submitted.sizes.chars * 9 // 40)
    noise = rng.lognormvariate(0, 0.08)
    decode_s = round(output / (machine.decode / model.gigabytes) * noise, 6)
    prefill_s = round(prompt / (machine.prefill / model.gigabytes) * noise, 6)
    load_s = round(model.gigabytes / machine.disk, 6) if rng.random() < 0.1 else 0.0
    measured = rng.random() < 0.95
    answer = subjects.answer_subject(submitted.client, submitted.task, attempt)
    return {
        "task": submitted.task,
        "attempt": attempt,
        "worker": machine.worker,
        "boot": machine.boot,
        "model": model.name,
        "backend_model": model.name,
        "digest": machine.digest(model),
        "quantisation": model.quantisation,
        "model_bytes": int(model.gigabytes * 1e9),
        "backend": machine.backend,
        "backend_version": machine.version,
        "gpu": machine.gpu,
        "others_use": machine.others_use,
        "prompt_chars": submitted.sizes.chars,
        "domain": submitted.domain.label,
        "language": submitted.language,
        "kind": submitted.kind,
        "urgency": submitted.urgency,
        "client": submitted.client,
        "context": CONTEXT,
        "resident": load_s == 0.0,
        "outcome": "truncated" if wanted > limit else "ok",
        "finish_reason": "length" if wanted > limit else "stop",
        "tokens": events.Tokens(prompt=prompt, cached=0, output=output) if measured else events.Tokens(),
        "times": events.Times(
            queue_s=0.002,
            load_s=load_s,
            prefill_s=prefill_s if measured else None,
            decode_s=decode_s if measured else None,
            first_token_s=round(load_s + prefill_s, 6),
            total_s=round(load_s + prefill_s + decode_s, 6),
            source="backend" if measured else "worker",
        ),
        "answer": events.PayloadRef(subject=answer, bytes=output * 4),
    }
