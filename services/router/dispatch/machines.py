"""The machines as one pass sees them: credits, what runs there and how long still, what is in memory, who uses it besides us.

Answers "who is there, and when is a slot free?" from the log and from what was heard. In-flight work is what the router released,
never what a worker says of itself; a worker's word only adds how far each attempt has come.
"""

from __future__ import annotations

from collections.abc import Mapping

from schemas.events import Credit, RunningAttempt, WorkerLoad
from schemas.prediction import written_most
from services.router.dispatch.completion import LEAST_LEFT_S, Machine, left_s, service_s
from services.router.dispatch.glance import Placed, glance_at
from services.router.dispatch.live import ALIVE_S, FRESH_S, Heard, Live
from services.router.dispatch.outlook import Outlook
from services.router.dispatch.state import Attempt, RouterState, Task
from services.router.dispatch.worker_record import WorkerRecord


def available(state: RouterState, live: Live, now: float, placed: Mapping[str, Placed] | None = None) -> dict[str, int]:
    """Free credits by worker: its own word, less the live attempts meant for it or running on it that the word omits.

    Credits overtake the facts now and then (135 of 4,000), hence the subtraction."""
    placed = glance_at(state).placed() if placed is None else placed
    result: dict[str, int] = {}
    for worker, heard in live.workers.items():
        record = state.workers.get(worker)
        free = _free(heard, record, placed.get(worker, []), now)
        if free is not None:
            result[worker] = free
    return result


def machines_of(
    state: RouterState, live: Live, now: float, outlook: Outlook, placed: Mapping[str, Placed] | None = None
) -> dict[str, Machine]:
    """Every worker that reported and did not leave."""
    placed = glance_at(state).placed() if placed is None else placed
    return {
        worker: _machine(worker, record, state, live, placed.get(worker, []), now, outlook)
        for worker, record in state.workers.items()
        if not record.left
    }


def _free(heard: Heard, record: WorkerRecord | None, placed: Placed, now: float) -> int | None:
    credit = heard.credit
    if credit is None or credit.draining or heard.suspect or now - heard.heard_at > ALIVE_S:
        return None
    if record is not None and record.paused:
        return None
    listed = {(r.task, r.attempt) for r in credit.running}
    unlisted = sum(1 for task, attempt in placed if (task.submitted.task, attempt.n) not in listed)
    return max(0, credit.free - unlisted)


def _machine(
    worker: str, record: WorkerRecord, state: RouterState, live: Live, placed: Placed, now: float, outlook: Outlook
) -> Machine:
    report, heard = record.report, live.workers.get(worker)
    credit = heard.credit if heard is not None else None
    load = heard.load if heard is not None and now - heard.load_at <= FRESH_S else None
    machine = Machine(worker=worker, name=report.name, slots=max(1, report.slots), paused=record.paused, heard=False)
    if heard is None:
        return machine
    machine.room = heard.room
    if credit is not None:
        free = _free(heard, record, placed, now)
        machine.free, machine.heard = free or 0, free is not None and _offers(credit, load, placed)
        machine.credit_age_s = now - heard.credit_at
        machine.running = len(credit.running)
        machine.slots = max(1, min(credit.slots, credit.free + len(credit.running)))  # one not offered is none
    machine.fresh = load is not None or (credit is not None and now - heard.credit_at <= FRESH_S)
    machine.others_use = load.others_use if load is not None else None
    machine.others_reason = _others_reason(heard, load)
    _memory(machine, record, load, heard, placed, now)
    _ends(machine, state, live, heard, placed, now, outlook)
    return machine


def _offers(credit: Credit, load: WorkerLoad | None, placed: Placed) -> bool:
    """Whether waiting for it makes sense: its model server answers, and it has a slot or something that will end."""
    if load is not None and load.backend_up is False:
        return False
    return credit.free > 0 or bool(credit.running) or bool(placed)


def _others_reason(heard: Heard, load: WorkerLoad | None) -> str | None:
    if load is not None:
        return load.unreadable.get("others_use")
    return "no heartbeat heard yet" if heard.load is None else f"the last load is older than {FRESH_S:.0f} s"


def _memory(
    machine: Machine, record: WorkerRecord, load: WorkerLoad | None, heard: Heard, placed: Placed, now: float
) -> None:
    """What its last load says is loaded, by our names, and the models of our own releases, which load themselves: also of those
    that ended since, else a model would be thought cold, or warm, for an interval after each swap."""
    machine.resident_known = load is not None and load.resident is not None
    if load is not None and load.resident is not None:
        there = set(load.resident)
        models = record.report.models
        machine.loaded = [m.name for m in models if m.name in there or m.backend_name in there]
    for model in (*heard.used_lately(now), *(attempt.model for _, attempt in placed)):
        if model in machine.loaded:
            machine.loaded.remove(model)
        machine.loaded.append(model)
    sizes = {m.name: m.bytes for m in record.report.models}
    machine.keep_what_fits(sizes)


def _ends(
    machine: Machine, state: RouterState, live: Live, heard: Heard, placed: Placed, now: float, outlook: Outlook
) -> None:
    """Seconds left of each attempt there. One that the log does not know, or knows to have ended, is about to go."""
    listed: dict[tuple[str, int], RunningAttempt] = {}
    if heard.credit is not None:
        listed = {(running.task, running.attempt): running for running in heard.credit.running}
    ends = []
    for task, attempt in placed:
        key = (task.submitted.task, attempt.n)
        running, lease = listed.pop(key, None), live.leases.get(key)
        if running is not None and running.elapsed_s is not None:
            elapsed = running.elapsed_s + max(0.0, now - heard.credit_at)
        else:
            elapsed = max(0.0, now - lease.since) if lease is not None else 0.0
        machine.left[key] = left_s(_predicted_s(machine, task, attempt, state, outlook), elapsed)
        ends.append(machine.left[key])
    for key in listed:
        known = state.attempt(key)
        if known is None or not known.ended:
            ends.append(LEAST_LEFT_S)
    machine.busy_until(sorted(ends))


def _predicted_s(machine: Machine, task: Task, attempt: Attempt, state: RouterState, outlook: Outlook) -> float:
    """As its release predicted; where another machine took it, what is predicted of that one."""
    if attempt.service_s is not None and machine.worker == attempt.expected:
        return attempt.service_s
    submitted = task.submitted
    report = state.workers[machine.worker].report
    info = next((m for m in report.models if m.name == attempt.model), None)
    speed = outlook.speed(attempt.model, submitted.domain.label, machine.worker, info)
    most = written_most(submitted.kind, submitted.options.max_tokens)
    return service_s(speed, machine, submitted.sizes.prompt_tokens, most)
