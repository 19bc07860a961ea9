"""A demand over a real NATS: what is asked, what is recorded, what can be seen and given up. The fleet is played."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest

from schemas.demands import Demand, RunNamed, RunReply, RunShown
from schemas.events import BenchCompleted, QualityJudged, TaskCompleted, Times, Tokens
from schemas.subjects import BENCH_CANCEL, BENCH_RUN, BENCH_SHOW
from schemas.work import Answer, Wire, decode_wire, encode_wire
from services.benchmarker.asking import Result, Work
from services.benchmarker.on_demand import IN_A_ROW, OnDemand
from services.benchmarker.runs import Place
from services.benchmarker.suites import suites
from services.runtime.bus import Bus
from services.runtime.clock import SystemClock
from services.runtime.ids import new_id
from services.runtime.provision import provision
from support.eventually import eventually
from support.routers import whole_log

DESK = Place(model="small", worker="w1", worker_name="desk", machine="m1")
LAPTOP = Place(model="small", worker="w2", worker_name="laptop", machine="m2")
RIGHT = {"add-small": "5", "subtract-small": "6", "multiply-small": "It is 9.", "larger": "21"}


class PlayedFleet:
    """Answers what it knows, and wrongly what it does not; or only fails, or hangs."""

    def __init__(self) -> None:
        self.asked: list[Work] = []
        self.running: set[str] = set()
        self.most_at_once = 0
        self.cancelled = 0
        self.fails = False
        self.hangs = False
        self.outcome = "ok"

    async def run(self, work: Work) -> Result:
        self.asked.append(work)
        task = f"t{len(self.asked)}"
        assert work.worker not in self.running, "one prompt at a time on a machine"
        self.running.add(work.worker)
        self.most_at_once = max(self.most_at_once, len(self.running))
        try:
            await (asyncio.Event().wait() if self.hangs else asyncio.sleep(0))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running.discard(work.worker)
        if self.fails:
            return Result(task=task, failure="stall: no token for 60 s")
        completed = TaskCompleted(
            id=new_id(), at=0.0, by=work.worker, task=task, attempt=1, worker=work.worker, boot="b", model=work.model,
            digest="sha256:1", domain=work.domain, outcome=self.outcome, tokens=Tokens(output=4), times=Times(decode_s=0.1),
        )  # fmt: skip
        text = RIGHT.get(work.prompt or "", "I do not know.")
        return Result(
            task=task,
            completed=completed,
            answer=Answer(task=task, attempt=1, model=work.model, worker=work.worker, text=text),
        )


@pytest.fixture
def fleet() -> PlayedFleet:
    return PlayedFleet()


@asynccontextmanager
async def serving(bus: Bus, fleet: PlayedFleet, places: Callable[[], list[Place]]) -> AsyncIterator[OnDemand]:
    await provision(bus)
    demands = OnDemand(bus, fleet, places=places, suites=suites(), by="benchmarker", clock=SystemClock(), new_id=new_id)
    heard = [await bus.listen(subject, demands.answer) for subject in (BENCH_RUN, BENCH_SHOW, BENCH_CANCEL)]
    yield demands
    for each in heard:
        await each.stop()


async def ask(bus: Bus, subject: str, message: Wire) -> RunReply:
    return decode_wire(await bus.request(subject, encode_wire(message)), RunReply)


async def ended(bus: Bus, run: str) -> RunShown:
    async def over() -> RunShown | None:
        shown = (await ask(bus, BENCH_SHOW, RunNamed(run=run))).shown
        assert shown is not None
        return shown if shown.state != "running" else None

    return await eventually(over)


async def test_each_grade_is_in_the_log_twice_under_ids_of_its_task(bus: Bus, fleet: PlayedFleet) -> None:
    async with serving(bus, fleet, lambda: [DESK, LAPTOP]):
        begun = (await ask(bus, BENCH_RUN, Demand(domain="maths"))).shown
        assert begun is not None and begun.state == "running"
        shown = await ended(bus, begun.run)
    checked = suites()["maths"].checked
    assert (shown.state, shown.done, shown.total) == ("done", 2 * len(checked), 2 * len(checked))
    assert fleet.most_at_once == 2
    log = await whole_log(bus)
    verdicts = [event for event in log if isinstance(event, BenchCompleted)]
    judged = [event for event in log if isinstance(event, QualityJudged)]
    assert len(verdicts) == len(judged) == 2 * len(checked)
    assert {verdict.run for verdict in verdicts} == {shown.run}
    by_task = {event.tasks[0]: event for event in judged}
    for verdict in verdicts:
        event = by_task[verdict.task]
        assert event.value == verdict.grade == float(verdict.prompt in RIGHT)
        assert (event.source, event.weight, event.worker, event.digest) == ("check", 1.0, verdict.worker, "sha256:1")
        assert (event.suite, event.prompt, event.cause) == ("maths", verdict.prompt, verdict.id)
        assert verdict.check in {"number", "choice"} and verdict.detail
    assert {(each.task, each.prompt, each.grade, each.why) for each in shown.asked} == {
        (verdict.task, verdict.prompt, verdict.grade, verdict.detail) for verdict in verdicts
    }
    desk, laptop = shown.rows
    assert (desk.grade, desk.n, desk.worker_name) == (laptop.grade, laptop.n, "desk")
    assert desk.decode == 40.0
    asked = fleet.asked[0]
    assert (asked.purpose, asked.urgency, asked.suite, asked.reason) == ("suite", "background", "maths", "asked for")


async def test_a_run_that_is_given_up_gives_its_tasks_up(bus: Bus, fleet: PlayedFleet) -> None:
    fleet.hangs = True
    async with serving(bus, fleet, lambda: [DESK, LAPTOP]):
        begun = (await ask(bus, BENCH_RUN, Demand(domain="code"))).shown
        assert begun is not None
        await eventually(lambda: len(fleet.running) == 2)
        reply = (await ask(bus, BENCH_CANCEL, RunNamed(run=begun.run))).shown
        assert reply is not None and reply.state == "cancelled"
        assert (fleet.cancelled, fleet.running) == (2, set())
        again = (await ask(bus, BENCH_CANCEL, RunNamed(run=begun.run))).shown
        assert again == reply


async def test_failures_are_no_grades_and_a_machine_that_only_fails_is_left_alone(bus: Bus, fleet: PlayedFleet) -> None:
    fleet.fails = True
    async with serving(bus, fleet, lambda: [DESK]) as demands:
        shown = await ended(bus, demands.begin(Demand(domain="code")).id)
    assert len(fleet.asked) == IN_A_ROW
    (row,) = shown.rows
    assert (row.n, row.grade, row.ungraded) == (0, None, len(suites()["code"].checked))
    assert not [event for event in await whole_log(bus) if isinstance(event, QualityJudged)]


@pytest.mark.parametrize(("outcome", "grade"), [("empty", 0.0), ("substituted", None)])
async def test_nothing_said_is_wrong_and_another_models_answer_is_nobodys(
    bus: Bus, fleet: PlayedFleet, outcome: str, grade: float | None
) -> None:
    fleet.outcome = outcome
    async with serving(bus, fleet, lambda: [DESK]) as demands:
        await ended(bus, demands.begin(Demand(domain="maths", limit=1)).id)
    log = await whole_log(bus)
    (verdict,) = [event for event in log if isinstance(event, BenchCompleted)]
    assert verdict.grade == grade
    assert len([event for event in log if isinstance(event, QualityJudged)]) == (grade is not None)


async def test_what_cannot_be_done_is_said_in_words(bus: Bus, fleet: PlayedFleet) -> None:
    async with serving(bus, fleet, list):
        for subject, message, code in (
            (BENCH_RUN, Demand(), "cannot"),
            (BENCH_RUN, Demand(domain="law"), "cannot"),
            (BENCH_SHOW, RunNamed(run="r9"), "unknown_run"),
            (BENCH_CANCEL, RunNamed(run="r9"), "unknown_run"),
        ):
            reply = await ask(bus, subject, message)
            assert (reply.code, reply.shown) == (code, None) and reply.message
        wrong = msgspec.json.decode(await bus.request(BENCH_RUN, b'{"limit": "many"}'), type=RunReply)
        assert wrong.code == "cannot"
