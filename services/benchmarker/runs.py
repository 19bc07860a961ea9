"""One run of the suites: what is asked where, what came of it, and what can be said of it so far.

Answers "which prompts for which model on which machine?", "how long will it still take?" and "which model is better?". It asks
nobody and reads no clock: ``on_demand`` does. A machine's failure is never a model's bad grade: what was not answered has none.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from schemas.demands import Demand, RunAsked, RunRow, RunShown, RunState, RunVersus
from schemas.errors import CannotRun
from services.benchmarker.grades import by_prompt, compare, mean, wilson
from services.benchmarker.suites import Prompt, Suite

ASKED_MAX = 200
"""Of a whole fleet's run the worst: all of them might not fit into one message."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A model at a worker that is there. Workers of one ``machine`` would measure each other. ``loaded`` None: its backend
    does not say."""

    model: str
    worker: str
    worker_name: str
    machine: str
    loaded: bool | None = True


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt for one model on one machine."""

    place: Place
    suite: str
    domain: str
    prompt: Prompt


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an item after ``took_s``, waiting included. ``grade`` None for the reason ``why``."""

    item: Item
    took_s: float
    task: str | None = None
    grade: float | None = None
    why: str = ""
    output_tokens: int | None = None
    decode_s: float | None = None


class Run(msgspec.Struct, kw_only=True):
    """``items`` by machine, in the order in which they are asked there, one after the other."""

    id: str
    items: Mapping[str, tuple[Item, ...]]
    judged: int
    outcomes: list[Outcome] = []
    state: RunState = "running"


def plan(run: str, demand: Demand, places: Sequence[Place], suites: Mapping[str, Suite]) -> Run:
    """Each machine gets one model after the other, so that none is loaded twice. Raises CannotRun in words."""
    if demand.domain is not None and demand.domain not in suites:
        raise CannotRun(f"no suite is about {demand.domain!r}; there are {', '.join(sorted(suites))}", "domain")
    chosen = [suite for domain, suite in sorted(suites.items()) if demand.domain in (None, domain)]
    items: dict[str, tuple[Item, ...]] = {}
    for place in sorted(_places(demand, places), key=lambda each: (each.worker, not each.loaded, each.model)):
        asked = tuple(
            Item(place=place, suite=suite.name, domain=suite.domain, prompt=prompt)
            for suite in chosen
            for prompt in spread(suite.checked, demand.limit)
        )
        items[place.machine] = items.get(place.machine, ()) + asked
    return Run(id=run, items=items, judged=sum(len(suite.judged) for suite in chosen))


def _places(demand: Demand, places: Sequence[Place]) -> list[Place]:
    there = [place for place in places if demand.worker in (None, place.worker)]
    if not there:
        raise CannotRun("no machine that could be measured is there; `headrace fleet` says why", "worker")
    if demand.model is not None:
        found = [place for place in there if place.model == demand.model]
        if not found:
            raise CannotRun(f"no machine that is there holds {demand.model!r} and can run it now", "model")
        return found
    loaded = [place for place in there if place.loaded is not False]
    if not loaded:
        raise CannotRun("no model is in memory, and a run drives none out unasked; name one to have it loaded", "model")
    return loaded


def spread(prompts: Sequence[Prompt], limit: int | None) -> tuple[Prompt, ...]:
    """``limit`` of them from all levels, always the same ones: a short run is compared with a short run."""
    if limit is None or limit >= len(prompts):
        return tuple(prompts)
    ordered = sorted(prompts, key=lambda prompt: prompt.level)
    return tuple(ordered[at * len(ordered) // limit] for at in range(limit))


def show(run: Run) -> RunShown:
    total = sum(map(len, run.items.values()))
    return RunShown(
        run=run.id,
        state=run.state,
        done=len(run.outcomes),
        total=total,
        eta_s=_eta_s(run) if run.state == "running" else 0.0,
        judged=run.judged,
        rows=tuple(_rows(run)),
        asked=tuple(_asked(run.outcomes)),
        versus=tuple(_versus(run.outcomes)),
    )


def _eta_s(run: Run) -> float | None:
    """Until the last machine has ended, if the others' and its own go on as they did; None while nothing has ended."""
    every = [outcome.took_s for outcome in run.outcomes]
    if not every:
        return None
    left_s = []
    for items in run.items.values():
        workers = Counter(item.place.worker for item in items)
        by_worker = {
            worker: [each.took_s for each in run.outcomes if each.item.place.worker == worker] for worker in workers
        }
        left_s.append(
            math.fsum(
                math.fsum(took or every) / len(took or every) * (workers[worker] - len(took))
                for worker, took in by_worker.items()
            )
        )
    return max(left_s)


def _rows(run: Run) -> Iterator[RunRow]:
    totals: dict[tuple[str, str, str], list[Item]] = {}
    for item in (item for items in run.items.values() for item in items):
        totals.setdefault((item.place.model, item.domain, item.place.worker), []).append(item)
    came: dict[tuple[str, str, str], list[Outcome]] = {key: [] for key in totals}
    for outcome in run.outcomes:
        came[outcome.item.place.model, outcome.item.domain, outcome.item.place.worker].append(outcome)
    for key in sorted(totals):
        yield _row(key, came[key], totals[key])


def _asked(outcomes: Iterable[Outcome]) -> Iterator[RunAsked]:
    for each in sorted(outcomes, key=lambda each: -1.0 if each.grade is None else each.grade)[:ASKED_MAX]:
        place = each.item.place
        yield RunAsked(
            task=each.task, model=place.model, worker=place.worker, worker_name=place.worker_name, domain=each.item.domain,
            suite=each.item.suite, prompt=each.item.prompt.id, grade=each.grade, why=each.why,
        )  # fmt: skip


def _row(key: tuple[str, str, str], came: Sequence[Outcome], items: Sequence[Item]) -> RunRow:
    grades = _grades(came)
    value = mean(grades)
    interval = wilson(value, len(grades)) if value is not None else None
    timed = [(each.output_tokens, each.decode_s) for each in came if each.output_tokens and each.decode_s]
    ungraded = [outcome for outcome in came if outcome.grade is None]
    model, domain, worker = key
    return RunRow(
        model=model,
        domain=domain,
        worker=worker,
        worker_name=items[0].place.worker_name,
        grade=value,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        n=len(grades),
        total=len(items),
        ungraded=len(ungraded),
        why=ungraded[-1].why if ungraded else None,
        decode=sum(tokens for tokens, _ in timed) / math.fsum(decode_s for _, decode_s in timed) if timed else None,
    )


def _versus(outcomes: Iterable[Outcome]) -> Iterator[RunVersus]:
    """In each domain the model with the highest mean beside each of the others, wherever they ran. The seed is the names', so
    that the same grades always give the same words."""
    graded: dict[str, dict[str, list[Outcome]]] = {}
    for outcome in outcomes:
        graded.setdefault(outcome.item.domain, {}).setdefault(outcome.item.place.model, []).append(outcome)
    for domain, models in sorted(graded.items()):
        grades = {model: found for model, came in models.items() if (found := _grades(came))}
        best = max(sorted(grades), key=lambda model: mean(grades[model]) or 0.0, default=None)
        for other in sorted(grades):
            if best is None or other == best:
                continue
            said = compare(grades[best], grades[other], seed=zlib.crc32(f"{domain}:{best}:{other}".encode()))
            yield RunVersus(
                domain=domain,
                first=best,
                second=other,
                better={"a better": best, "b better": other}.get(said.verdict),
                difference=said.difference,
                low=said.low,
                high=said.high,
                n=said.n,
            )


def _grades(outcomes: Iterable[Outcome]) -> dict[str, float]:
    return by_prompt((each.item.prompt.id, each.grade) for each in outcomes if each.grade is not None)
