"""Our own session affinity: the prefill seconds that the session's last worker saves, against what waiting for it costs.

Unlike GPUStack's it yields among any number of targets as soon as the wait costs more than it saves, and it never holds on to a
worker that has nothing of the session.
"""

from __future__ import annotations

from collections.abc import Sequence

from schemas.statistics import UNKNOWN_WAIT_S
from services.router.policy.halving import halved
from services.router.policy.plugin import Case, Contender, LastServed, Vote, abstain


def vote(case: Case, contenders: Sequence[Contender]) -> Vote:
    last = case.last
    owner = next((c for c in contenders if last is not None and (c.model, c.worker) == (last.model, last.worker)), None)
    if last is None or owner is None:
        return abstain("nobody here has answered in this session")
    saved_s = saved(owner, last, case.prompt_tokens)
    if saved_s <= 0.0:
        return abstain(f"{owner.worker} has nothing of this prompt to save")
    seconds = [completion(c) - (saved_s if c is owner else 0.0) for c in contenders]
    return Vote(
        halved(seconds), f"{owner.worker} saves {saved_s:.2f} s of prefill and costs {_wait(owner):.2f} s of waiting"
    )


def saved(owner: Contender, last: LastServed, prompt_tokens: int) -> float:
    """Prefill seconds that need not be spent again: those of the part of the prompt that the owner has read already. A model
    that is not loaded there any more has forgotten it."""
    if owner.load_s > 0.0 or prompt_tokens <= 0:
        return 0.0
    return owner.prefill_s * min(max(last.tokens, 0) / prompt_tokens, 1.0)


def completion(contender: Contender) -> float:
    return _wait(contender) + contender.load_s + contender.prefill_s + contender.decode_s + contender.sharing_s


def _wait(contender: Contender) -> float:
    return UNKNOWN_WAIT_S if contender.wait_s is None else contender.wait_s
