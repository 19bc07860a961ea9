"""May unasked work start on this machine now, and must it stop?

Answers with the reason why not, in words, or None. Pure. Its rules, in the order in which they are looked at: the machine is
there; nobody waits for it and nobody used it a moment ago; nobody else is known to use it and it has mains power; what it tells
of itself is enough for more than a join probe; the budget of unasked seconds; one shadow run for four real tasks.
"""

from __future__ import annotations

import msgspec

from services.benchmarker.debts import Debt
from services.benchmarker.state import Fleet, Machine, Open

US = 1_000_000
FRESH_S = 15.0
"""An older load is unknown load: three missed heartbeats."""
WAITS_S = 0.1
"""A task that somebody free could take is released within milliseconds; one that waits longer waits for a machine."""
GPU_MOST = 0.10
PRESSURE_MOST = 0.10
"""Of a machine without a GPU: the share of the time in which somebody waited for a CPU. It holds our own processes' starts too,
so it keeps back what is unasked by choice, and not the one probe after a join, a wake or a new model."""
LOADS_AFTER_S, EVICTS_AFTER_S = 15.0, 600.0
"""Without anybody there: a load goes on to its end whoever comes, and a model that was driven out has to be loaded again."""
SHADOW_FOR_REAL = 4
UNREAD = "it has not told whether others use its GPU since the last work there"
GPU_QUIET_S = 2.0
"""A GPU's utilisation is a mean over up to a second: an earlier reading holds our own work, by whichever worker of the host."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """``share`` of a machine's awake time may go to unasked work; ``idle_s`` without any task of ours come before it."""

    share: float = 0.02
    idle_s: float = 5.0
    shadow: bool = True


STANDARD = Rules()


def may_start(debt: Debt, fleet: Fleet, now_us: int, *, cost_s: float = 0.0, rules: Rules = STANDARD) -> bool:
    return why_not(debt, fleet, now_us, cost_s=cost_s, rules=rules) is None


def why_not(debt: Debt, fleet: Fleet, now_us: int, *, cost_s: float = 0.0, rules: Rules = STANDARD) -> str | None:
    """``cost_s`` is what the work will take of the machine, as predicted."""
    machine = fleet.machines.get(debt.worker)
    if machine is None:
        return "it is not there"
    return (
        not_now(fleet, machine, now_us, rules)
        or _taken(fleet, machine, now_us, free=debt.free)
        or _tells_too_little(debt, machine, now_us)
        or _loads(debt, fleet, machine, now_us)
        or _over_budget(debt, fleet, machine, cost_s, rules)
        or unread(fleet, machine)
    )


def not_now(fleet: Fleet, machine: Machine, now_us: int, rules: Rules = STANDARD) -> str | None:
    """What keeps any unasked work away from the machine, whatever it is for."""
    worker = machine.report.worker
    return (
        not_there(machine, now_us)
        or wanted(fleet, worker, now_us)
        or _in_use(fleet, machine, now_us, rules.idle_s)
    )  # fmt: skip


def must_stop(fleet: Fleet, worker: str, now_us: int) -> str | None:
    """What ends unasked work that has begun on ``worker``: whoever is asked for something, plays, or pulls the plug goes first.

    Others' use is known as of when nothing of ours ran there, so that a game that begins during an answer is seen after it. The
    pressure on the CPUs is our own work's too, and ends nothing."""
    machine = fleet.machines.get(worker)
    if machine is None:
        return None
    return not_there(machine, now_us) or wanted(fleet, worker, now_us) or _taken(fleet, machine, now_us, free=True)


def _taken(fleet: Fleet, machine: Machine, now_us: int, *, free: bool) -> str | None:
    """By others, as far as was told since the last work of ours."""
    return _unplugged(machine, now_us) if unread(fleet, machine) else others(machine, now_us, free=free)


def unread(fleet: Fleet, machine: Machine) -> str | None:
    """What others do with its GPU was not told since the last work of ours on that machine."""
    load = machine.load
    if load is None or load.others_use is None or not has_gpu(machine):
        return None
    ended_us = max(fleet.machines[w].ended_us for w in neighbours(fleet, machine.report.worker))
    read_us = machine.load_us - (load.others_age_s or 0.0) * US
    is_old = ended_us > 0 and read_us < ended_us + GPU_QUIET_S * US
    return UNREAD if is_old else None


def has_gpu(machine: Machine) -> bool:
    return bool(machine.load is not None and machine.load.gpus) or machine.report.gpu is not None


def not_there(machine: Machine, now_us: int) -> str | None:
    if machine.left:
        return "it left"
    if machine.paused:
        return "it is paused"
    if now_us - machine.heard_us > FRESH_S * US:
        return "it is silent"
    if machine.load is None:
        return "it has not told its load yet"
    if machine.load.backend_up is False:
        return "its model server does not answer"
    if machine.load.credit is not None and machine.load.credit.draining:
        return "it is leaving"
    return None


def wanted(fleet: Fleet, worker: str, now_us: int) -> str | None:
    """Somebody's real task runs there, is on its way there, or waits and could go there: unasked work has no place beside it."""
    near = neighbours(fleet, worker)
    for task in fleet.tasks.values():
        if not task.real:
            continue
        if task.on is not None:
            if task.on in near:
                return "a task runs there"
        elif now_us - task.at_us >= WAITS_S * US and near & _where(fleet, task):
            return "a task waits for it"
    return None


def neighbours(fleet: Fleet, worker: str) -> frozenset[str]:
    """The workers that share its machine, itself included."""
    place = fleet.machines[worker].place if worker in fleet.machines else None
    return frozenset({worker, *(w for w, m in fleet.machines.items() if not m.left and m.place == place)})


def _where(fleet: Fleet, task: Open) -> frozenset[str]:
    if task.where is not None:
        return task.where
    wants = task.submitted.wants
    if wants.worker is not None:
        return frozenset({wants.worker})
    holders = (w for w, m in fleet.machines.items() if wants.model is None or wants.model in m.infos())
    return frozenset(holders)


def _in_use(fleet: Fleet, machine: Machine, now_us: int, idle_s: float) -> str | None:
    near = neighbours(fleet, machine.report.worker)
    if any(task.on in near for task in fleet.tasks.values()):
        return "bench work runs there"
    credit = machine.load.credit if machine.load is not None else None
    if credit is not None and any(running.task not in fleet.tasks for running in credit.running):
        return "something runs there"  # older than what was read of the log, or just ended
    since_us = max(max(m.used_us, m.boot_us) for w, m in fleet.machines.items() if w in near)
    if now_us - since_us < idle_s * US:
        return f"it has been idle for less than {idle_s:g} s"
    return _memory(machine)


def _memory(machine: Machine) -> str | None:
    """A task may have loaded one model and driven another one out: what is there is known from the next heartbeat on."""
    told = machine.load.resident if machine.load is not None else None
    all_there = told is not None and len(told) >= len(machine.report.models)
    if all_there or machine.load_us > machine.ended_us:
        return None
    return "it has not told what is in its memory since the last task there"


def others(machine: Machine, now_us: int, *, free: bool) -> str | None:
    """Somebody else is known to use it, or it lives on its battery."""
    if (why := _unplugged(machine, now_us)) is not None:
        return why
    load, with_gpu = machine.load, has_gpu(machine)
    if load is None or now_us - machine.load_us > FRESH_S * US:
        return None
    if load.others_use is None or (free and not with_gpu):
        return None
    most = GPU_MOST if with_gpu else PRESSURE_MOST
    return f"others use {100 * load.others_use:.0f} % of it" if load.others_use >= most else None


def _unplugged(machine: Machine, now_us: int) -> str | None:
    load = machine.load
    is_fresh = load is not None and now_us - machine.load_us <= FRESH_S * US
    return "it runs on battery" if is_fresh and load is not None and load.on_battery else None


def _tells_too_little(debt: Debt, machine: Machine, now_us: int) -> str | None:
    if debt.reason == "joined" and debt.free:
        return None
    load = machine.load
    if load is None or now_us - machine.load_us > FRESH_S * US or load.others_use is None:
        return "it does not say whether somebody else uses it"
    return None


def _loads(debt: Debt, fleet: Fleet, machine: Machine, now_us: int) -> str | None:
    return loads_too_soon(fleet, machine, now_us, evicts=debt.evicts) if debt.loads or debt.evicts else None


def loads_too_soon(fleet: Fleet, machine: Machine, now_us: int, *, evicts: bool = False) -> str | None:
    """A model that is not in memory takes its time, and perhaps another one's place."""
    near = neighbours(fleet, machine.report.worker)
    since_us = max(max(m.used_us, m.boot_us, m.woke_us) for w, m in fleet.machines.items() if w in near)
    idle_s = (now_us - since_us) / US
    if evicts and idle_s < EVICTS_AFTER_S:
        return "another model would have to go, and the machine was used less than 10 min ago"
    return (
        "the model would have to be loaded, and the machine was used a moment ago" if idle_s < LOADS_AFTER_S else None
    )


def _over_budget(debt: Debt, fleet: Fleet, machine: Machine, cost_s: float, rules: Rules) -> str | None:
    if debt.kind == "quality":
        if not rules.shadow:
            return "shadow runs are switched off"
        if (fleet.shadows + 1) * SHADOW_FOR_REAL > fleet.real:
            return "there is one shadow run for every four real tasks at most"
    if debt.free:
        return None
    left_s = left(machine, rules.share)
    return f"{left_s:.1f} s of its budget are left, this takes {cost_s:.1f} s" if cost_s > left_s else None


def left(machine: Machine, share: float = STANDARD.share) -> float:
    """Unasked seconds that the machine may still be asked for."""
    return share * machine.awake_s - machine.spent_s
