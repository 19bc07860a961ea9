"""Which consumers there must be, and who must be told of them.

Answers "may this group or lane be pulled from?": each is confirmed before anything is released to it, workers arm only what a
hello confirmed, and what nobody has held for an hour goes. Pure, like everything here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from schemas.streams import group_consumer, lane_consumer
from schemas.subjects import group_durable, lane_durable
from schemas.work import Control
from services.router.dispatch.actions import Action, DropConsumer, EnsureConsumer, Tell
from services.router.dispatch.live import FRESH_S
from services.router.dispatch.state import RouterState, served
from services.router.dispatch.turn import REPEAT_S, Turn

HELLOS_BEFORE_DOUBT = 5
"""A worker that does not arm after so many hellos may be pulling from a consumer that somebody deleted: make it again."""
UNHELD_S = 3_600.0
"""A consumer goes after an hour without holders; ``inactive_threshold`` would delete it with messages pending."""

Held = dict[str, tuple[int, Callable[[], dict[str, Any]]]]


def held_consumers(state: RouterState) -> Held:
    """Durable name -> the slots of its holders, and its configuration: a lane for each worker, a group for each (capability,
    model) that somebody serves."""
    held: Held = {}
    members: dict[tuple[str, str], int] = {}
    for worker, record in state.workers.items():
        if record.left:
            continue
        slots = record.report.slots
        held[lane_durable(worker)] = (slots, partial(lane_consumer, worker, slots=slots))
        for info in served(record.report):
            members[info.capability, info.name] = members.get((info.capability, info.name), 0) + slots
    for (capability, model), slots in members.items():
        config = partial(group_consumer, capability, model, cap=slots, members=slots)
        held[group_durable(capability, model)] = (slots, config)
    return held


def consumers(turn: Turn, held: Held) -> Iterator[Action]:
    """Create what is held and not confirmed, enlarge what has got more slots, delete what was long unheld."""
    live = turn.live
    for durable, (slots, config) in held.items():
        live.unheld.pop(durable, None)
        if live.confirmed.get(durable, -1) < slots:
            yield EnsureConsumer(durable, slots, config())
    for durable in live.confirmed:
        if durable not in held and turn.now - live.unheld.setdefault(durable, turn.now) > UNHELD_S:
            yield DropConsumer(durable)


def hellos(turn: Turn, held: Held) -> Iterator[Action]:
    """Tell each worker that is there which consumers are confirmed, until its credit shows that it has armed them; ask
    whom the log does not know for a report."""
    live, now = turn.live, turn.now
    for worker, heard in live.workers.items():
        credit, record = heard.credit, turn.state.workers.get(worker)
        if credit is None or credit.draining or now - heard.heard_at > FRESH_S:
            continue
        if record is not None and record.left and record.report.boot == heard.boot:
            continue  # it said goodbye
        unreported = record is None or record.report.boot != heard.boot
        models = served(record.report) if record is not None else ()
        wanted = [group_durable(info.capability, info.name) for info in models] + [lane_durable(worker)]
        armable = tuple(durable for durable in wanted if live.confirmed.get(durable))
        missing = [durable for durable in armable if durable not in credit.armed]
        if not missing and not unreported:
            live.greeted.pop(worker, None)
            continue
        at, times = live.greeted.get(worker, (now - REPEAT_S, 0))
        if now - at < REPEAT_S:
            continue
        live.greeted[worker] = (now, times + 1)
        ask = unreported and times > 0  # the first credit often overtakes the report
        hello = Control(command="hello", router=turn.stamp.by, epoch=turn.epoch, armable=armable, want_report=ask)
        yield Tell(worker, hello)
        if times and times % HELLOS_BEFORE_DOUBT == 0:
            yield from (EnsureConsumer(d, held[d][0], held[d][1]()) for d in missing if d in held)
