"""A probe: one short answer that tells how fast a model reads and writes on a machine, and where it matters, how much slower
several at once are.

Answers "how is this (model, machine) measured?". The prompt is our own and always the same but for its first word, so that no
server answers it from what it remembers of the last one. Its answer is thrown away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from schemas.events import Options
from schemas.statistics import effective
from schemas.work import Body
from services.benchmarker.asking import WAIT_S, Asks, Result, Work
from services.benchmarker.budget import wanted
from services.benchmarker.debts import Debt, seconds
from services.benchmarker.ground import Ground
from services.runtime.logs import logger

log = logger("benchmarker")

PROMPT = """The mill stood where the river left the hills. A long wooden channel, which the miller called the headrace, led the
water from the weir to the wheel, and a gate at its upper end decided how much of it came. On some days the water was low, and the
miller ground only what had been brought first. On others it was so high that both wheels could turn, the large one for wheat and
the small one for barley, and carts stood in the yard until the evening. The miller kept a book in which he wrote down who had
come, how much grain he had brought, which wheel had ground it, and how long that had taken. When somebody asked him why the small
wheel was still in use, although the large one was so much faster, he opened the book and showed him the days on which the large
one alone would have kept half of the carts waiting until the next morning. He also wrote down when a stone had been dressed,
because a stone that was dressed yesterday grinds faster than one that was dressed in spring, and a number that is old says
little about today.

Go on with this story. Tell in detail, in at least three hundred words, what happened in the year of the great drought."""
PROMPT_TOKENS = 300
"""About, in any tokenizer that knows English."""
STREAMS_MOST = 8
OPENED = frozenset({"llama.cpp", "vllm"})
"""Backends that can be told to go on after the end of an answer, so that each probe has the same length."""


class Prober:
    """``new_word`` gives a word that was never used before."""

    def __init__(self, ground: Ground, new_word: Callable[[], str]) -> None:
        self._ground, self._new_word = ground, new_word

    def cost_s(self, debt: Debt) -> float:
        """What it will take of the machine, as predicted."""
        machine = self._ground.fleet.machines[debt.worker]
        info = machine.infos().get(debt.model)
        known = effective(
            self._ground.stats, debt.model, debt.domain, debt.worker,
            model_bytes=info.bytes if info is not None else None, now_us=self._ground.now_us(),
        )  # fmt: skip
        load_s = (known.load.value or 0.0) if debt.loads else 0.0
        return load_s + seconds(known, PROMPT_TOKENS, self._ground.settings.probe_tokens)

    async def pay(self, debt: Debt, asks: Asks) -> bool:
        """One stream; then as many as the machine has slots, where nobody knows yet what that does to each."""
        result = await asks.run(self._work(debt))
        if result.failure is not None:
            log.info("a probe told nothing", action="probe_failed", **_named(debt), failure=result.failure)
            return True
        log.info("measured", action="probe_done", **_named(debt), **_rates(result))
        streams = self._streams(debt)
        if streams > 1:
            results = await asyncio.gather(*(asks.run(self._work(debt)) for _ in range(streams)))
            ended = sum(result.completed is not None for result in results)
            log.info("measured side by side", action="probe_shared", **_named(debt), streams=streams, ended=ended)
        return True

    def _streams(self, debt: Debt) -> int:
        """More than one only where it was never tried and nobody would be disturbed."""
        ground = self._ground
        machine = ground.fleet.machines.get(debt.worker)
        known = ground.stats.pool("slowdown", debt.worker).n > 0
        if machine is None or known or not debt.free or wanted(ground.fleet, debt.worker, ground.now_us()):
            return 1
        return min(machine.report.slots, STREAMS_MOST)

    def _work(self, debt: Debt) -> Work:
        machine = self._ground.fleet.machines.get(debt.worker)
        opened = machine is not None and machine.report.backend in OPENED
        return Work(
            purpose="probe",
            model=debt.model,
            worker=debt.worker,
            domain=debt.domain,
            body=Body(
                messages=({"role": "user", "content": f"{self._new_word()}. {PROMPT}"},),
                extra={"ignore_eos": True} if opened else {},
            ),
            options=Options(max_tokens=self._ground.settings.probe_tokens, temperature=0.7),
            reason=debt.reason,
            deadline_s=WAIT_S,
        )


def _named(debt: Debt) -> dict[str, str]:
    return {"model": debt.model, "worker": debt.worker, "domain": debt.domain, "reason": debt.reason}


def _rates(result: Result) -> dict[str, float]:
    """What people look for in a log: tokens per second."""
    done = result.completed
    if done is None:
        return {}
    pairs = (("prefill", done.tokens.prompt, done.times.prefill_s), ("decode", done.tokens.output, done.times.decode_s))
    return {f"{name}_tokens_per_s": round(count / took, 1) for name, count, took in pairs if count and took}
