"""What a fleet has measured and had judged before the first task of an instance comes.

Answers "what does the product know already?". It is told in the product's own words, as samples, so that nothing is known that
could not have been learned.
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas.samples import UNIT
from schemas.statistics import Sample
from simulation.fleet.physics import DOMAINS, MODELS, QUALITY, Instance, Job


def measured(instance: Instance) -> Iterator[Sample]:
    """``known`` runs of each domain on each machine that was here before, the first of them with its load; of mean length."""
    names = [m for m in instance.machines if instance.known_on is None or m.name in instance.known_on]
    for machine in names if instance.known else ():
        for domain in DOMAINS:
            job = Job("", 0.0, domain.label, domain.model, round(domain.prompt), round(domain.output))
            job.noise.update({m.name: 1.0 for m in instance.machines})
            for model in instance.models_of(machine) if instance.judged else (domain.model,):
                prefill_s, decode_s = instance.run_s(job, model, machine, 0.0)
                for n in range(instance.known):
                    load_s = instance.load_s(model, machine) if n == 0 else 0.0
                    yield Sample(
                        seq=0, at_us=0, kind="speed", model=model, domain=domain.label, worker=machine.name,
                        digest=model, model_bytes=int(MODELS[model] * 1e9), ok=True, outcome="ok", resident=n > 0,
                        concurrency=1, others_u=0 if machine.reports else None, load_us=int(load_s * UNIT),
                        prefill_tok=job.prompt, prefill_us=int(prefill_s * UNIT), decode_tok=job.output,
                        decode_us=int(decode_s * UNIT), output_tok=job.output, prompt_tok=job.prompt, cached_tok=0,
                    )  # fmt: skip


def judged(instance: Instance) -> Iterator[Sample]:
    """``judged`` answers of every model in every domain, each worth what the model is worth there."""
    for model, domains in QUALITY.items() if instance.judged else ():
        for domain, value in domains.items():
            for _ in range(instance.judged):
                yield Sample(
                    seq=0, at_us=0, kind="quality", model=model, domain=domain, digest=model,
                    quality_u=round(value * UNIT), quality_w_u=UNIT,
                )  # fmt: skip
