"""Routes on a real nats-server: shares over a restart, a file that changes, a decision service that answers or does not."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from schemas.errors import SettingsError, UnknownRoute
from schemas.events import TaskRouted, TaskSubmitted, Verdict, Wants
from schemas.subjects import submit_id
from services.router.decider import CLIENT
from services.router.fullness import Places
from services.router.port import Busy
from services.router.routes_file import watch_routes
from services.router.service import RouterService
from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from support.backends import Hang, Script, Stub, ollama_done, ollama_frame, ollama_stand_in
from support.eventually import eventually
from support.llama import llama
from support.routers import MODEL, dispatching, end_of, question, running_router, whole_log, with_workers
from support.worker_bench import WORKER, running_worker

BIG = "big:70b"
CANARY = f'[canary]\ntargets = [{{model = "{MODEL}", weight = 95}}, {{model = "{BIG}", weight = 5}}]\n'
DECIDES = f"""\
[smart]
route_by = {{decision_service = 10, least_completion = 1}}
targets = [
  {{model = "{MODEL}", criterion = "greetings"}},
  {{model = "{BIG}", criterion = "proofs"}},
]
[smart.decision_service]
"""


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    async with ollama_stand_in() as server:
        yield server


@asynccontextmanager
async def router_with(natsd: EmbeddedServer, file: Path, text: str, **options: Any) -> AsyncIterator[RouterService]:
    file.write_text(text, encoding="utf-8")
    async with running_router(natsd.url, routes=watch_routes(file), **options) as service:
        await dispatching(service)
        yield service


async def submitted(bus: Bus, task: str) -> TaskSubmitted:
    found = [event for event in await whole_log(bus) if isinstance(event, TaskSubmitted) and event.task == task]
    assert found, submit_id(task)
    return found[0]


async def verdict_on(router: RouterService, bus: Bus, text: str) -> tuple[Verdict | None, str]:
    """(the verdict in the log, the model chosen)."""
    accepted = await router.submit(question(text, model="smart"))
    assert accepted.decision is not None and accepted.decision.choice is not None
    return (await submitted(bus, accepted.task)).verdict, accepted.decision.choice.model


async def test_case_20_of_1_000_requests_at_95_to_5_the_stored_decisions_show_950_and_50_over_a_restart(
    natsd: EmbeddedServer, stub: Stub, bus: Bus, tmp_path: Path
) -> None:
    file = tmp_path / "routes.toml"
    async with running_worker(natsd.url, stub.url):
        for half in range(2):
            async with router_with(natsd, file, CANARY) as router:
                await with_workers(router, 1)
                if half == 0:
                    await router.pause(WORKER, None, "decisions are all that is wanted")
                for _ in range(20):
                    asked = (question("Hi", model="canary", client=f"c{n}") for n in range(25))
                    await asyncio.gather(*(router.submit(task) for task in asked))
                await eventually(lambda: sum(router.desk.state.draws["canary"].counts.values()) == 500 * (half + 1))  # noqa: B023
    drawn = Counter(event.target for event in await whole_log(bus) if isinstance(event, TaskRouted))
    assert sum(drawn.values()) == 1_000
    assert abs(drawn[MODEL] - 950) <= 1
    assert abs(drawn[BIG] - 50) <= 1


async def test_a_file_that_changes_is_in_force_soon_and_one_that_is_wrong_leaves_the_former(
    natsd: EmbeddedServer, stub: Stub, tmp_path: Path
) -> None:
    file = tmp_path / "routes.toml"
    async with router_with(natsd, file, CANARY) as router, running_worker(natsd.url, stub.url):
        await with_workers(router, 1)
        with pytest.raises(UnknownRoute, match="no route is called 'chat'; nearest: auto"):
            await router.submit(msgspec.structs.replace(question("Hi"), wants=Wants(route="chat")))
        text = f'[chat]\nroute_by = "least_in_flight"\ntargets = [{{model = "{MODEL}"}}]\n'  # the other one is only listed there
        file.write_text(text, encoding="utf-8")
        await eventually(lambda: router.routes().routes.names == ("auto", "chat"))
        assert (
            await end_of(router, (await router.submit(question("Hi", model="chat"))).task)
        ).status.state == "completed"
        file.write_text('[chat]\nroute_by = "least_busy"\n', encoding="utf-8")
        await eventually(lambda: router.routes().problem is not None)
        assert "routes.toml, line 2: chat.route_by.least_busy: 'least_busy' is no" in (router.readiness().routes or "")
        assert router.routes().routes.names == ("auto", "chat")
        assert router.readiness().ready
        file.unlink()
        await eventually(lambda: router.routes().routes.names == ("auto",))
        assert router.readiness().routes is None


def test_a_router_does_not_start_with_a_file_that_it_cannot_use(tmp_path: Path) -> None:
    file = tmp_path / "routes.toml"
    file.write_bytes(b"[a\xff]")
    with pytest.raises(SettingsError, match="not UTF-8"):
        watch_routes(file)
    file.write_text("[a]\nslyder = 1\n", encoding="utf-8")
    with pytest.raises(SettingsError, match="line 2: a.slyder"):
        watch_routes(file)


@asynccontextmanager
async def service_that(says: Any) -> AsyncIterator[Stub]:
    """A decision service: its answer as a JSON value or a status, or steps of a script."""
    streams = frozenset({"/decide"}) if isinstance(says, Script) else frozenset()
    stub = Stub({"/decide": says}, streams, lambda path, body: says)
    await stub.start()
    try:
        yield stub
    finally:
        await stub.stop()


def by_the_words(body: dict[str, Any]) -> dict[str, Any]:
    """What a good classifier would say of the two example requests."""
    proofs = "prove" in body["request"].lower()
    return {"probabilities": {MODEL: 0.1 if proofs else 0.9, BIG: 0.9 if proofs else 0.1}, "confidence": 0.8}


async def test_a_decision_service_over_http_sends_a_greeting_to_the_small_and_a_proof_to_the_large_model(
    natsd: EmbeddedServer, stub: Stub, bus: Bus, tmp_path: Path
) -> None:
    async with service_that(by_the_words) as service, running_worker(natsd.url, stub.url):
        text = f'{DECIDES}url = "{service.url}/decide"\ninstructions = "Choose."\n'
        async with router_with(natsd, tmp_path / "routes.toml", text) as router:
            await with_workers(router, 1, BIG)
            verdict, model = await verdict_on(router, bus, "Write a one-line greeting card.")
            assert (verdict and verdict.probabilities, model) == ({MODEL: 0.9, BIG: 0.1}, MODEL)
            proof = "Prove that there are infinitely many primes, then implement the proof sketch in Python."
            verdict, model = await verdict_on(router, bus, proof)
            assert (verdict and verdict.confidence, model) == (0.8, BIG)
            seen = service.requests[-1].body
            assert seen == {
                "instructions": "Choose.",
                "targets": [{"id": MODEL, "criterion": "greetings"}, {"id": BIG, "criterion": "proofs"}],
                "request": proof,
            }
            long = await router.submit(question("é" * 40_000, model="smart"))
            assert len(service.requests[-1].body["request"].encode()) <= 65_536
            assert long.decision is not None


async def test_where_the_queue_is_full_no_decision_service_is_asked(
    natsd: EmbeddedServer, stub: Stub, tmp_path: Path
) -> None:
    async with service_that(by_the_words) as service, running_worker(natsd.url, stub.url):
        text = f'{DECIDES}url = "{service.url}/decide"\n'
        async with router_with(natsd, tmp_path / "routes.toml", text, places=Places(total=0)) as router:
            await with_workers(router, 1, BIG)
            with pytest.raises(Busy):
                await router.submit(question("Hi", model="smart"))
            assert service.requests == []


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        (Script([Hang()]), "no answer within 0.2 s"),
        (500, "it answered 500"),
        ({"advice": "the large one"}, "neither probabilities nor an option"),
        ({"probabilities": {"elsewhere": 1.0}}, "none of"),
        (None, "All connection attempts failed"),
    ],
)
async def test_a_service_that_is_late_gone_or_talks_nonsense_is_no_vote_and_the_request_goes_on(
    natsd: EmbeddedServer, stub: Stub, bus: Bus, tmp_path: Path, says: Any, reason: str
) -> None:
    async with service_that(says) as service, running_worker(natsd.url, stub.url):
        if says is None:
            await service.stop()
        timeout_s = 0.2 if "within" in reason else 30.0
        text = f'{DECIDES}url = "{service.url}/decide"\ntimeout_s = {timeout_s}\n'
        async with router_with(natsd, tmp_path / "routes.toml", text) as router:
            await with_workers(router, 1, BIG)
            verdict, _ = await verdict_on(router, bus, "Hi")
            assert verdict is not None and verdict.reason is not None
            assert reason in verdict.reason
            assert verdict.probabilities == {}


def says(option: int) -> Script:
    return Script([ollama_frame(json.dumps({"option": option, "confidence": 0.9})), ollama_done()])


async def test_a_model_of_the_fleet_decides_as_an_ordinary_task_of_its_own_client(
    natsd: EmbeddedServer, stub: Stub, bus: Bus, tmp_path: Path
) -> None:
    stub.scripts += [says(2), says(1)]
    async with router_with(natsd, tmp_path / "routes.toml", DECIDES) as router, running_worker(natsd.url, stub.url):
        await with_workers(router, 1, BIG)
        verdict, model = await verdict_on(router, bus, "Prove it.")
        assert verdict is not None
        assert (verdict.by, verdict.probabilities, verdict.confidence) == (MODEL, {BIG: 1.0}, 0.9)
        assert model == BIG
        question_asked = stub.chats()[0]
        assert question_asked["format"]["properties"]["option"] == {"enum": [1, 2]}
        tasks = [event for event in await whole_log(bus) if isinstance(event, TaskSubmitted)]
        assert [task.client for task in tasks] == [CLIENT, CLIENT, "local"]


async def test_a_model_of_the_fleet_that_always_takes_the_first_option_has_no_vote(
    natsd: EmbeddedServer, stub: Stub, bus: Bus, tmp_path: Path
) -> None:
    stub.scripts += [says(1), says(1)]
    async with router_with(natsd, tmp_path / "routes.toml", DECIDES) as router, running_worker(natsd.url, stub.url):
        await with_workers(router, 1, BIG)
        verdict, _ = await verdict_on(router, bus, "Prove it.")
        assert verdict is not None and verdict.reason is not None
        assert verdict.reason.startswith("it went by the order of the options: ")
        assert verdict.probabilities == {}


async def test_a_model_of_the_fleet_that_is_too_late_is_no_vote_and_its_task_is_cancelled(
    natsd: EmbeddedServer, stub: Stub, bus: Bus, tmp_path: Path
) -> None:
    stub.scripts.append(Script([Hang()]))
    text = f"{DECIDES}timeout_s = 2.0\n"
    async with router_with(natsd, tmp_path / "routes.toml", text) as router, running_worker(natsd.url, stub.url):
        await with_workers(router, 1, BIG)
        verdict, _ = await verdict_on(router, bus, "Prove it.")
        assert verdict is not None and verdict.reason == "no answer within 2 s"
        known = [*router.desk.state.tasks.values(), *router.desk.state.recent.values()]
        asked = [task.submitted.task for task in known if task.submitted.client == CLIENT]

        async def cancelled() -> bool:
            """Whichever of its two questions came first to the server hangs; the other is answered, or late."""
            states = [status.state for task in asked if (status := await router.status(task)) is not None]
            return "cancelled" in states and set(states) <= {"cancelled", "completed", "failed"}

        await eventually(cancelled)


async def test_a_real_model_of_135m_either_means_it_or_has_no_vote_and_the_request_is_answered(
    natsd: EmbeddedServer, stub: Stub, bus: Bus, tmp_path: Path
) -> None:
    """SmolLM2 135M takes the first option whatever it is asked (docs/routes.md says so); a model that can read decides."""
    text = DECIDES.replace(MODEL, "smollm2:135m") + 'model = "smollm2:135m"\ntimeout_s = 20.0\n'
    async with (
        llama() as server,
        router_with(natsd, tmp_path / "routes.toml", text) as router,
        running_worker(natsd.url, server.url, worker="w-real"),
        running_worker(natsd.url, stub.url),
    ):
        await with_workers(router, 1, BIG)
        await with_workers(router, 1, "smollm2:135m")
        for asked in ("Write a one-line greeting card.", "Prove that there are infinitely many primes."):
            accepted = await router.submit(
                msgspec.structs.replace(question(asked), wants=Wants(route="smart", worker="w-real"))
            )
            verdict = (await submitted(bus, accepted.task)).verdict
            assert verdict is not None and verdict.by == "smollm2:135m"
            assert (verdict.reason or "").startswith("it went by the order") or set(verdict.probabilities) <= {
                "smollm2:135m",
                BIG,
            }
            assert (await end_of(router, accepted.task)).status.state == "completed"
