"""``headrace bench``: run the suites because somebody asked, grade what comes back, and record it.

Answers ``rpc.benchmarker.run``, ``.show`` and ``.cancel`` (``schemas.demands``). Every machine works on its own prompts, one at a
time, as background tasks, so real work goes first and limits hold. What a run has found is in the log before it is shown; a run
that was going on when the benchmarker ended is forgotten, its grades are not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress

from nats.aio.msg import Msg

from schemas.demands import Demand, RunNamed, RunReply
from schemas.errors import BusError, CannotRun, HeadraceError, InvalidEvent
from schemas.events import BenchCompleted, QualityJudged, TaskCompleted
from schemas.subjects import BENCH_CANCEL, BENCH_RUN, bench_id, check_id
from schemas.work import decode_wire, encode_wire
from services.benchmarker.asking import Asks, Result, Work
from services.benchmarker.graders import grade, name_of
from services.benchmarker.graders.grade import Grade
from services.benchmarker.runs import Item, Outcome, Place, Run, plan, show
from services.benchmarker.suites import Suite
from services.runtime.bus import Bus
from services.runtime.clock import Clock
from services.runtime.logs import logger

log = logger("benchmarker")

START_S = 3600.0
"""How long a prompt may wait for its start: a machine that is busy for an hour has better things to do."""
IN_A_ROW = 3
"""So many failures of one model on one machine, and the rest of its prompts there is not asked."""
KEPT = 20
"""Runs that can still be shown; their grades stay in the log."""


class OnDemand:
    """``places`` says what could be measured at this moment; ``during`` is entered by the task of each run."""

    def __init__(
        self,
        bus: Bus,
        asking: Asks,
        *,
        places: Callable[[], Iterable[Place]],
        suites: Mapping[str, Suite],
        by: str,
        clock: Clock,
        new_id: Callable[[], str],
        during: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._bus, self._asking, self._places, self._suites = bus, asking, places, suites
        self._by, self._clock, self._new_id = by, clock, new_id
        self._runs: dict[str, Run] = {}
        self._working: dict[str, asyncio.Task[None]] = {}
        self._during = during

    async def answer(self, message: Msg) -> None:
        """One question on any of the three subjects; a wrong one gets its error as an answer, never silence."""
        reply = encode_wire(await self._reply(message))
        if message.reply:
            await self._bus.send(message.reply, reply)

    def begin(self, demand: Demand) -> Run:
        """Raises CannotRun."""
        run = plan(self._new_id(), demand, list(self._places()), self._suites)
        for old in list(self._runs)[: max(0, len(self._runs) + 1 - KEPT)]:
            if old not in self._working:
                del self._runs[old]
        self._runs[run.id] = run
        self._working[run.id] = asyncio.create_task(self._work(run), name=f"bench {run.id}")
        log.info("a run begins", action="bench_run", run=run.id, prompts=sum(map(len, run.items.values())))
        return run

    async def _reply(self, message: Msg) -> RunReply:
        try:
            if message.subject == BENCH_RUN:
                return RunReply(shown=show(self.begin(decode_wire(message.data, Demand))))
            named = decode_wire(message.data, RunNamed).run
        except CannotRun as fault:
            return RunReply(code="cannot", message=str(fault), field=fault.field)
        except InvalidEvent as error:
            return RunReply(code="cannot", message=str(error))
        if named not in self._runs:
            known = "it began before this benchmarker did, or long ago; what it found is in `headrace stats`"
            return RunReply(code="unknown_run", message=f"no run {named[:64]!r} is known: {known}")
        if message.subject == BENCH_CANCEL:
            await self._cancel(named)
        return RunReply(shown=show(self._runs[named]))

    async def _cancel(self, run: str) -> None:
        working = self._working.get(run)
        if working is not None:
            working.cancel("somebody gave the run up")
            await asyncio.wait([working])

    # -- the work --------------------------------------------------------------------------------------------------------

    async def _work(self, run: Run) -> None:
        """All machines beside each other; each ends by itself."""
        try:
            with self._during():
                async with asyncio.TaskGroup() as machines:
                    for items in run.items.values():
                        machines.create_task(self._machine(run, items))
            run.state = "done"
        except* HeadraceError as errors:
            run.state = "cancelled"
            log.error("a run ended", action="bench_run_failed", run=run.id, error=str(errors.exceptions[0]))
        finally:
            if run.state == "running":
                run.state = "cancelled"
            self._working.pop(run.id, None)

    async def _machine(self, run: Run, items: tuple[Item, ...]) -> None:
        failures: dict[str, int] = {}
        for item in items:
            model = item.place.model
            if failures.get(model, 0) >= IN_A_ROW:
                why = f"not asked: {IN_A_ROW} tasks before it failed there"
                run.outcomes.append(Outcome(item=item, took_s=0.0, why=why))
                continue
            began_s = self._clock.monotonic()
            outcome, has_answered = await self._item(run, item, began_s)
            failures[model] = 0 if has_answered else failures.get(model, 0) + 1
            run.outcomes.append(outcome)

    async def _item(self, run: Run, item: Item, began_s: float) -> tuple[Outcome, bool]:
        try:
            result = await self._asking.run(_work_of(item))
        except BusError as error:
            return Outcome(item=item, took_s=self._clock.monotonic() - began_s, why=str(error)), False
        completed = result.completed
        if completed is None:
            took_s, why = self._clock.monotonic() - began_s, result.failure or "failed"
            return Outcome(item=item, took_s=took_s, task=result.task, why=why), False
        graded = await asyncio.to_thread(graded_of, item, result)
        await self._record(run, item, completed, graded)
        outcome = Outcome(
            item=item,
            took_s=self._clock.monotonic() - began_s,
            task=result.task,
            grade=graded.value,
            why=graded.why,
            output_tokens=completed.tokens.output,
            decode_s=completed.times.decode_s,
        )
        return outcome, True

    async def _record(self, run: Run, item: Item, completed: TaskCompleted, graded: Grade) -> None:
        assert item.prompt.check is not None
        verdict = BenchCompleted(
            id=self._new_id(), at=self._clock.unix(), by=self._by, cause=completed.id, task=completed.task,
            suite=item.suite, prompt=item.prompt.id, model=completed.model, worker=completed.worker,
            digest=completed.digest, quantisation=completed.quantisation, domain=item.domain, grade=graded.value,
            detail=graded.why, check=name_of(item.prompt.check), run=run.id,
        )  # fmt: skip
        await self._bus.publish_event(verdict, bench_id(completed.task))
        if graded.value is None:
            return
        judged = QualityJudged(
            id=self._new_id(), at=self._clock.unix(), by=self._by, cause=verdict.id, model=completed.model,
            digest=completed.digest, quantisation=completed.quantisation, domain=item.domain, worker=completed.worker,
            source="check", value=graded.value, tasks=(completed.task,), suite=item.suite, prompt=item.prompt.id,
        )  # fmt: skip
        with suppress(BusError):  # it is in the log as bench.completed; a demand is no reason to stop
            await self._bus.publish_event(judged, check_id(completed.task))


def _work_of(item: Item) -> Work:
    return Work(
        purpose="suite",
        model=item.place.model,
        worker=item.place.worker,
        domain=item.domain,
        body=item.prompt.body,
        options=item.prompt.options,
        suite=item.suite,
        prompt=item.prompt.id,
        reason="asked for",
        deadline_s=START_S,
    )


def graded_of(item: Item, result: Result) -> Grade:
    """Nothing said is a wrong answer; another model's answer, or one that is gone, is no answer of this one."""
    assert item.prompt.check is not None
    if result.completed is not None and result.completed.outcome == "substituted":
        return Grade(None, "another model answered")
    if result.completed is not None and result.completed.outcome == "empty":
        return Grade(0.0, "the answer is empty")
    if result.answer is None:
        return Grade(None, "the answer was not stored, or is gone")
    return grade(item.prompt.check, result.answer.text, item.prompt.text)
