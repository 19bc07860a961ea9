"""Where would a task go at this point of a pass? Every pair that may serve it, priced on the machines as they are by now.

Answers "which pair costs least?" and "could anybody take it now?". A machine whose load is unknown comes after every known one
and never empties the choice; one that already failed this task comes after those that did not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from schemas.events import ModelInfo
from schemas.prediction import TYPICAL_PROMPT_TOKENS, written_most
from schemas.subjects import group_durable, lane_durable
from services.router.dispatch.completion import Machine, Parts, Speed, parts_of, service_s
from services.router.dispatch.live import Live
from services.router.dispatch.offers import Offer
from services.router.dispatch.outlook import Outlook
from services.router.dispatch.permits import Counts
from services.router.dispatch.state import RouterState, Task
from services.router.policy.needs import WORDS

_Pairs = tuple[tuple[str, tuple[str, ...]], ...]
FEW = 16
"""Pairs that are priced all at once: what else wants them, above all the record of a release, then has them already."""
NEARLY_EQUAL = 0.1
"""Of the service time: less than the spread of a speed that was measured ten times."""
LACKING = frozenset({"kind", "capability", "context", *WORDS})
"""Codes of removals that say what a model or its machine cannot do."""
UNARMED = 10
"""Behind every pull priority (0 to 9): no pull of the machine stands for the model."""


class Row(NamedTuple):
    """One machine that may be released to, for one model and domain. ``priority`` is its pull's."""

    machine: Machine
    speed: Speed
    priority: int


class Bids:
    def __init__(self, state: RouterState, live: Live, machines: dict[str, Machine], outlook: Outlook) -> None:
        self.state, self.live, self.machines, self.outlook = state, live, machines, outlook
        self.infos: dict[str, dict[str, ModelInfo]] = {
            worker: {info.name: info for info in state.workers[worker].report.models} for worker in machines
        }
        self._rows: dict[tuple[str, str, tuple[str, ...]], list[Row]] = {}
        self._taken: dict[tuple[str, str, tuple[str, ...]], float] = {}
        self._pairs: dict[str, _Pairs] = {}
        self._sets: dict[_Pairs, frozenset[str]] = {}
        self._priorities: dict[tuple[str, str], int] = {}
        self._groups: dict[tuple[str, str], str] = {}
        self._asked: tuple[str, int, frozenset[str]] | None = None
        self._offers: list[Offer] = []

    def pairs(self, task: Task) -> _Pairs:
        name = task.submitted.task
        found = self._pairs.get(name)
        if found is None:
            found = self._pairs[name] = self.outlook.pairs(self.state, task)
        return found

    def may_serve(self, task: Task, model: str) -> tuple[str, ...]:
        return next((workers for name, workers in self.pairs(task) if name == model), ())

    def machines_for(self, task: Task) -> frozenset[str]:
        """Everybody who may serve it, with whichever model."""
        pairs = self.pairs(task)
        found = self._sets.get(pairs)
        if found is None:
            found = self._sets[pairs] = frozenset(worker for _, workers in pairs for worker in workers)
        return found

    def speed(self, model: str, domain: str, worker: str) -> Speed:
        return self.outlook.speed(model, domain, worker, self.infos[worker].get(model))

    def takes_s(self, task: Task, model: str, worker: str) -> float:
        """Seconds until that machine would have answered it, if it were released there at this point of the pass."""
        speed = self.speed(model, task.submitted.domain.label, worker)
        return parts_of(speed, self.machines[worker], model, *_sizes_of(task)).total_s

    def not_yet(self, task: Task, now: float) -> str | None:
        """Why it cannot leave whoever is free: it is not decided on yet, or its backend gets a pause."""
        name = task.submitted.task
        if task.routed_seq is None and name not in self.live.drafts:
            why = self.live.unanswered.get(name)
            return _unanswered(why) if why is not None else "routing: the model is being chosen"
        retry_at = self.live.retry_at.get((name, task.next_attempt))
        if retry_at is not None and retry_at > now:
            return f"backoff: tries again in {retry_at - now:.0f} s"
        return None

    def best(self, task: Task, behind: int, counts: Counts, without: frozenset[str] = frozenset()) -> Offer | None:
        """The pair of least cost, or the one that the route's policies prefer; None where nobody there may serve it."""
        tried = _failed_on(task)
        found = self._choose(task, behind, counts, without | tried) if tried else None
        found = found or self._choose(task, behind, counts, without)
        if found is None or not found.in_flight or found.wait_s or found.load_s:
            return found
        return self._emptier(task, found, self.all(task, behind, counts, without | tried))

    def _emptier(self, task: Task, best: Offer, offers: list[Offer]) -> Offer:
        """Of machines with several slots that are as good as equal, one with fewer at work (case 19): how long those will take is
        known worse than that. A route's policies have their own word on it."""
        if self.outlook.prefer is not None and task.submitted.wants.route is not None:
            return best
        most_s = best.cost_s + NEARLY_EQUAL * (best.prefill_s + best.decode_s)
        equals = [o for o in offers if o.free and o.fresh == best.fresh and o.cost_s <= most_s and not o.load_s]
        return min([best, *equals], key=lambda o: (o.in_flight, o.cost_s))

    def _choose(self, task: Task, behind: int, counts: Counts, without: frozenset[str]) -> Offer | None:
        if self.outlook.prefer is not None and task.submitted.wants.route is not None:
            offers = self.all(task, behind, counts, without)
            index = self.outlook.prefer(task, offers) if offers else None
            if index is not None:
                return offers[index]
        if len(self.machines) * len(self.pairs(task)) <= FEW:
            return self._least(task, self.all(task, behind, counts, without))
        prompt, most = _sizes_of(task)
        best: Offer | None = None
        rank: tuple[bool, float, int, int] | None = None
        for model, others_s, base_s, (machine, speed, priority) in self._places(task, behind, counts, without):
            if rank is not None and (not machine.fresh, machine.wait_s + base_s) > rank[:2]:
                continue  # whatever it takes there, it cannot be the least
            parts = parts_of(speed, machine, model, prompt, most)
            cost_s = sum(parts) + base_s
            if rank is not None and (not machine.fresh, cost_s) > rank[:2]:
                continue
            mine = (not machine.fresh, cost_s, priority, -machine.free)
            if rank is None or mine < rank or (mine == rank and best is not None and _tie(task, machine.worker, best)):
                rank, best = mine, _offer(model, machine, speed, priority, parts, others_s, cost_s)
        return best

    def _least(self, task: Task, offers: list[Offer]) -> Offer | None:
        """The same choice among offers that are all there."""
        best: Offer | None = None
        rank: tuple[bool, float, int, int] | None = None
        for offer in offers:
            mine = (not offer.fresh, offer.cost_s, offer.priority, -self.machines[offer.worker].free)
            if rank is None or mine < rank or (mine == rank and best is not None and _tie(task, offer.worker, best)):
                rank, best = mine, offer
        return best

    def all(self, task: Task, behind: int, counts: Counts, without: frozenset[str] = frozenset()) -> list[Offer]:
        """Every pair that could serve it, in the order of models and workers; kept until a machine has moved."""
        asked = (task.submitted.task, behind, without)
        if self._asked == asked:
            return self._offers
        prompt, most = _sizes_of(task)
        found = []
        for model, others_s, base_s, (machine, speed, priority) in self._places(task, behind, counts, without):
            parts = parts_of(speed, machine, model, prompt, most)
            found.append(_offer(model, machine, speed, priority, parts, others_s, sum(parts) + base_s))
        self._asked, self._offers = asked, found
        return found

    def moved(self) -> None:
        """A machine is not what it was, or a permit is taken: what was offered is offered no more."""
        self._asked = None

    def _places(
        self, task: Task, behind: int, counts: Counts, without: frozenset[str]
    ) -> Iterator[tuple[str, float, float, Row]]:
        """(model, N·W, what is added to the completion there, machine) for every model with a permit and every machine there."""
        domain, worth, pairs = task.submitted.domain.label, 100.0 * self.outlook.slider_of(task), self.pairs(task)
        for model, workers in pairs:
            if counts.full(f"model:{model}") is not None:
                continue
            others_s = behind * self._taken_s(model, domain, workers) if behind and len(pairs) > 1 else 0.0
            for row in self._rows_of(model, domain, workers):
                if row.machine.worker not in without:
                    yield model, others_s, others_s - worth * row.speed.quality, row

    def full(self, task: Task, counts: Counts) -> str | None:
        """Why no model that somebody there may serve it with has a permit left; None where one has, or nobody is there."""
        domain = task.submitted.domain.label
        there = [model for model, workers in self.pairs(task) if self._rows_of(model, domain, workers)]
        reasons = [counts.full(f"model:{model}") for model in there]
        return reasons[0] if reasons and None not in reasons else None

    def somebody_free(self, task: Task, counts: Counts) -> bool:
        domain = task.submitted.domain.label
        return any(
            row.machine.free > 0 and row.priority < UNARMED
            for model, workers in self.pairs(task)
            if counts.full(f"model:{model}") is None
            for row in self._rows_of(model, domain, workers)
        )

    def anybody(self, task: Task) -> bool:
        domain = task.submitted.domain.label
        return any(self._rows_of(model, domain, workers) for model, workers in self.pairs(task))

    def _rows_of(self, model: str, domain: str, workers: tuple[str, ...]) -> list[Row]:
        key = (model, domain, workers)
        rows = self._rows.get(key)
        if rows is None:
            there = [machine for w in workers if (machine := self.machines.get(w)) is not None and machine.heard]
            rows = self._rows[key] = [
                Row(machine, self.speed(model, domain, machine.worker), self._priority(machine.worker, model))
                for machine in there
            ]
        return rows

    def _taken_s(self, model: str, domain: str, workers: tuple[str, ...]) -> float:
        """W(m): the fleet-seconds that one task of this model takes from everybody behind."""
        key = (model, domain, workers)
        taken = self._taken.get(key)
        if taken is None:
            rates = [1.0 / service_s(r.speed, r.machine, TYPICAL_PROMPT_TOKENS) for r in self._rows_of(*key)]
            taken = self._taken[key] = 1.0 / sum(rates) if rates else 0.0
        return taken

    def _priority(self, worker: str, model: str) -> int:
        """The standing pull's for the model's group, else its lane's."""
        found = self._priorities.get((worker, model))
        if found is None:
            heard, info = self.live.workers.get(worker), self.infos[worker].get(model)
            armed = heard.credit.armed if heard is not None and heard.credit is not None else {}
            found = armed.get(self._group(info), UNARMED) if info is not None else UNARMED
            if found == UNARMED and armed:
                found = armed.get(lane_durable(worker), UNARMED)
            self._priorities[worker, model] = found
        return found

    def _group(self, info: ModelInfo) -> str:
        key = (info.capability, info.name)
        found = self._groups.get(key)
        if found is None:
            found = self._groups[key] = group_durable(*key)
        return found


def _unanswered(why: str) -> str:
    """``why`` is a removal's reason, with its code where it has one."""
    code, _, words = why.partition(": ")
    return f"no_capability: {words}" if code in LACKING else f"no_model: {why}"


def _offer(
    model: str, machine: Machine, speed: Speed, priority: int, parts: Parts, others_s: float, cost_s: float
) -> Offer:
    free = machine.free > 0 and priority < UNARMED
    return Offer(
        model, machine.worker, parts, others_s, speed.quality, cost_s, free, machine.fresh, len(machine.ends),
        machine.slots, priority,
    )  # fmt: skip


def _sizes_of(task: Task) -> tuple[int, int | None]:
    """Tokens of its prompt, and the most that its answer can have."""
    submitted = task.submitted
    return submitted.sizes.prompt_tokens, written_most(submitted.kind, submitted.options.max_tokens)


def _failed_on(task: Task) -> frozenset[str]:
    """Where an attempt of it started and failed: another machine may do better."""
    return frozenset(a.worker for a in task.attempts.values() if a.worker is not None and a.failure is not None)


def _tie(task: Task, worker: str, best: Offer) -> bool:
    """Whether this machine goes before an equal one: by a lot that any reader of the log can draw again."""
    return _lot(task, worker) < _lot(task, best.worker)


def _lot(task: Task, worker: str) -> bytes:
    return hashlib.blake2b(f"{task.submitted.task}\n{worker}".encode(), digest_size=8).digest()
