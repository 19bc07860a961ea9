"""Two real models of different quality: the checks tell which is better, and ``auto`` goes there. ``make e2e-quality``."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from schemas.events import BenchCompleted, QualityJudged
from services.benchmarker.grades import compare
from services.benchmarker.suites import suites
from services.cli.bench import table, versus
from services.cli.client import RouterClient, task_path
from services.cli.output import out
from services.cli.parts import BackendAt
from services.cli.stack import Stack
from services.runtime.bus import Bus
from services.runtime.llama_server import LlamaServer
from support.eventually import eventually
from support.gemma import MODEL as GEMMA, gemma_file
from support.llama import MODEL as SMOLLM, llama
from support.routers import whole_log

pytestmark = pytest.mark.e2e

Json = dict[str, Any]
SHUFFLES = 400
RATE_MOST = 0.05 + 3 * (0.05 * 0.95 / SHUFFLES) ** 0.5
"""What chance may decide, and three standard deviations of counting it."""
PROMPTS = {
    "general": "What is the capital of Italy?",
    "code": "Write a Python function that returns the smallest number of a list.",
    "maths": "What is 3 + 4?",
    "summarise": "Summarise in one sentence: The shop opens at nine. It closes at five. On Sundays it stays closed.",
}


class Fleet:
    """A whole Headrace with both models, each on a machine of its own, and a benchmarker that does only what it is asked."""

    def __init__(self, stack: Stack, router: RouterClient) -> None:
        self.stack, self.router = stack, router

    async def measured(self) -> Json:
        """Every checked prompt of every suite, to both models."""
        run = (await self.router.post("/bench", {}))["run"]

        async def over() -> Json | None:
            shown = dict(await self.router.get(f"/bench/{run}"))
            return shown if shown["state"] != "running" else None

        shown = await eventually(over, within_s=1500, every_s=1.0)
        assert shown is not None
        return shown

    async def preview(self, prompt: str, domain: str, slider: float | None = None) -> Json:
        return dict(await self.router.get("/route/preview", prompt=prompt, domain=domain, slider=slider, max_tokens=64))


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    config = tmp_path / "headrace.toml"
    config.write_text("[benchmarker]\non = false\n")
    async with AsyncExitStack() as stack:
        urls = {"small": (await stack.enter_async_context(llama())).url}
        urls["base"] = (await stack.enter_async_context(LlamaServer(gemma_file(), alias=GEMMA))).url
        backends = [BackendAt(name, url, folder=name) for name, url in urls.items()]
        whole = await stack.enter_async_context(
            Stack(tmp_path / "data", backends=backends, config=config, sync="10s", benchmarker=True)
        )
        yield Fleet(whole, await stack.enter_async_context(RouterClient(whole.router_url)))


async def test_the_checks_tell_which_model_is_better_and_auto_picks_it(fleet: Fleet) -> None:
    shown = await fleet.measured()
    out.print(table(shown))
    assert (shown["state"], shown["done"]) == ("done", shown["total"])
    check_rows(shown)
    better = {each["domain"]: each["better"] for each in shown["versus"]}
    assert set(better) == set(suites())
    assert better["general"] == better["code"] == SMOLLM, (
        "an instructed model follows instructions, a base model does not"
    )
    assert GEMMA not in better.values()
    assert None in better.values(), "neither knows Japanese: some domain must be left open"
    grades = await graded(fleet)
    check_shuffled(grades)
    for domain, prompt in PROMPTS.items():
        if better[domain] == SMOLLM:
            await check_routed(fleet, domain, prompt)


def check_rows(shown: Json) -> None:
    assert {(row["model"], row["domain"]) for row in shown["rows"]} == {
        (m, d) for m in (SMOLLM, GEMMA) for d in suites()
    }
    for row in shown["rows"]:
        assert row["n"] == row["total"] and row["ungraded"] == 0
        assert 0.0 <= row["low"] <= row["grade"] <= row["high"] <= 1.0
        assert row["decode"] > 0
    for each in shown["versus"]:
        assert (each["better"] is None) == (each["low"] <= 0.0 <= each["high"]), versus(each)


async def graded(fleet: Fleet) -> dict[str, dict[str, dict[str, float]]]:
    """domain -> model -> prompt -> grade, from the log; each grade stands there as a judgement too."""
    async with await Bus.connect(fleet.stack.nats_url, name="test") as bus:
        log = await whole_log(bus)
    found: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    judged = {event.tasks[0]: event for event in log if isinstance(event, QualityJudged)}
    for event in log:
        if isinstance(event, BenchCompleted):
            assert event.grade is not None
            assert judged[event.task].value == event.grade and judged[event.task].source == "check"
            found[event.domain][event.model][event.prompt] = event.grade
    return found


def check_shuffled(grades: dict[str, dict[str, dict[str, float]]]) -> None:
    """Whose grade is whose, thrown for each prompt: then nobody is better."""
    for domain, models in grades.items():
        chance = random.Random(domain)
        decided = 0
        for trial in range(SHUFFLES):
            sides: tuple[dict[str, float], dict[str, float]] = ({}, {})
            for prompt in models[SMOLLM]:
                first = chance.random() < 0.5
                sides[not first][prompt], sides[first][prompt] = models[SMOLLM][prompt], models[GEMMA][prompt]
            decided += compare(*sides, seed=trial, draws=799).verdict != "undecided"
        assert decided / SHUFFLES <= RATE_MOST, (domain, decided)


async def check_routed(fleet: Fleet, domain: str, prompt: str) -> None:
    """The better model is chosen, or the words say that the other's seconds outweigh its points."""

    async def learned() -> Json | None:
        seen = await fleet.preview(prompt, domain)
        known = {c["model"]: c["quality"]["n"] for c in seen["candidates"]}
        return seen if min(known.values()) >= 10 else None

    seen = await eventually(learned, within_s=30)
    assert seen is not None
    by_model = {c["model"]: c for c in seen["candidates"]}
    good, other = by_model[SMOLLM], by_model[GEMMA]
    assert good["quality"]["value"] > other["quality"]["value"]
    out.print(f"{domain}: {' '.join(seen['words'])}", markup=False)
    slider = seen["policy"]["weights"]["slider"]
    points = 100 * (good["quality"]["value"] - other["quality"]["value"])
    slower_s = good["predicted"]["total_s"] - other["predicted"]["total_s"]
    wanted = SMOLLM if slower_s < slider * points else GEMMA
    assert seen["choice"]["model"] == wanted, (slower_s, points)
    ended = await fleet.router.post("/route", {"prompt": prompt, "constraints": {"domain": domain, "max_tokens": 64}})

    async def over() -> Json | None:
        status = dict((await fleet.router.get(task_path(ended["task"])))["status"])
        return status if status["state"] in ("completed", "failed", "dead") else None

    status = await eventually(over, within_s=60)
    assert status is not None
    assert (status["state"], status["model"]) == ("completed", wanted)
    much = await fleet.preview(prompt, domain, slider=1000.0)
    assert much["choice"]["model"] == SMOLLM, "whoever only asks for quality gets it"
    fast = await fleet.preview(prompt, domain, slider=0.0)
    least = min(fast["candidates"], key=lambda c: c["cost_s"])
    assert fast["choice"]["model"] == least["model"]
