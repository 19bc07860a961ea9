"""Why does a task wait? A code and words, for every case (PROTOCOL.md: a held task always has a reason).

Answers that for people; nothing is decided here. Codes: waiting_for_faster, busy, model_full, client_full, backend_full,
no_worker, no_capability, silent, backoff, routing, no_model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from schemas.events import Choice
from services.router.dispatch.live import GONE_S, Live
from services.router.dispatch.offers import Offer
from services.router.dispatch.outlook import Outlook
from services.router.dispatch.state import RouterState, Task
from services.router.fleet import pause_words

NAMED_MAX = 5
"""Machines that a reason names: a sentence, not a table."""
LEAST_SHOWN_S = 0.1
"""Below it a difference is called that: "0.0 s more" explains nothing."""


def why_held(offer: Offer, name: str, somebody_free: bool) -> str:
    """It wants a machine that has no credit now. Of one whose task is late no tenths are known."""
    eta = f"in about {offer.wait_s:.1f} s" if offer.wait_s >= 1 else "in a moment"
    if somebody_free:
        return f"waiting_for_faster: {name} is free {eta}, and done sooner than a machine that is free now"
    return f"busy: every machine that could answer is busy; {name} is free {eta}"


def nobody(task: Task, state: RouterState, live: Live, now: float, outlook: Outlook) -> str:
    """Nobody who may serve it can be released to."""
    holders = {worker for _, workers in outlook.pairs(state, task) for worker in workers}
    asked = task.submitted.wants.model
    what = asked or "a model that may answer"
    if not holders:
        lacking = _lacks_capability(state, asked)
        if lacking is not None:
            return f"no_capability: {lacking}"
        if told := list(islice(_lacks(task, state, outlook), NAMED_MAX)):
            return f"no_capability: {'; '.join(told)}"
        return f"no_worker: nobody who holds {what} is there"
    paused = [w for w in sorted(holders) if state.workers[w].paused]
    if len(paused) == len(holders):
        return f"no_worker: paused: {', '.join(_pauses(state, paused))}"
    away = f"; paused: {', '.join(told)}" if (told := _pauses(state, paused)) else ""
    return _awake(state, live, now, [w for w in sorted(holders) if not state.workers[w].paused]) + away


def _awake(state: RouterState, live: Live, now: float, holders: list[str]) -> str:
    """Why none of those that nobody took out can be released to."""
    silences = [now - (heard.heard_at if (heard := live.workers.get(w)) is not None else 0.0) for w in holders]
    if all(silence > GONE_S for silence in silences):
        return f"no_worker: nothing was heard for {min(silences):.0f} s of {_names(state, holders)}"
    fallen = [w for w, heard in ((w, live.workers.get(w)) for w in holders) if heard is None or heard.suspect]
    if len(fallen) == len(holders):
        return f"silent: nothing was heard lately of {_names(state, holders)}"
    down = [
        w
        for w in holders
        if (h := live.workers.get(w)) is not None and h.load is not None and h.load.backend_up is False
    ]
    if len(down) == len(holders):
        return f"silent: the model server of {_names(state, holders)} does not answer"
    return f"silent: {_names(state, holders)} {'offers' if len(holders) == 1 else 'offer'} no slot now"


def _pauses(state: RouterState, workers: list[str]) -> list[str]:
    return [f"{state.workers[w].report.name} {pause_words(state.workers[w].paused_until_us)}" for w in workers]


def changed_mind(offer: Offer, first: Choice | None, offers: Sequence[Offer], names: Mapping[str, str]) -> str | None:
    """Why the release is for another pair than the decision's first idea; None where it is that."""
    if first is None or (first.model, first.worker or offer.worker) == (offer.model, offer.worker):
        return None
    where = "" if first.worker is None else f" on {names.get(first.worker, first.worker)}"
    then = next((o for o in offers if (o.model, o.worker) == (first.model, first.worker)), None)
    if then is None:
        held = any(o.model == first.model for o in offers)
        return f"{first.model}{where} cannot be had now" if held else f"nobody who holds {first.model} is there now"
    more_s = then.cost_s - offer.cost_s
    if more_s > 0:
        more = f"{more_s:.1f} s" if more_s >= LEAST_SHOWN_S else f"less than {LEAST_SHOWN_S:g} s"
        return f"{first.model}{where} would cost {more} more now"
    if not then.free:
        return f"{first.model}{where} has no slot now"
    if more_s == 0:
        return f"{first.model}{where} would cost the same"
    why = "a limit holds it back or the route's policies prefer this one"
    return f"{first.model}{where} would cost {-more_s:.1f} s less, but {why}"


def _lacks_capability(state: RouterState, model: str | None) -> str | None:
    """A machine holds the model, but does not support what it needs."""
    for record in state.workers.values():
        for info in record.report.models:
            if info.name == model and not record.left and info.capability not in record.report.supports:
                return f"{model} needs {info.capability}, which no machine that holds it supports"
    return None


def _lacks(task: Task, state: RouterState, outlook: Outlook) -> Iterator[str]:
    """Of the machine that was asked for, else of each."""
    wants = task.submitted.wants
    for worker in sorted(state.workers) if wants.worker is None else [wants.worker]:
        record = state.workers.get(worker)
        if record is None or record.left:
            continue
        reason = outlook.lacks(state, task, worker)
        if reason is None and wants.worker is not None:
            reason = f"does not hold {wants.model or 'a model that may answer'}"
        if reason is not None:
            yield f"{record.report.name}: {reason}"


def _names(state: RouterState, workers: list[str]) -> str:
    return ", ".join(state.workers[worker].report.name for worker in workers)
