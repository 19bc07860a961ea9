"""Permits as real processes see them: what backends really ran at once is counted at the backends."""

from __future__ import annotations

from pathlib import Path

from schemas.events import AnyEvent, TaskCompleted, TaskReleased
from services.router.dispatch.permits import Limit, Limits
from simulation.check import check_log
from support.eventually import eventually
from support.proving import Json, Proof
from support.stub_server import Pace, StubServer
from support.told_fleets import Machine, told_fleet

MODELS = ("a", "b", "c")


def box(token_s: float = 0.02) -> StubServer:
    return StubServer(dict.fromkeys(MODELS, Pace(token_s=token_s)))


def limited(tmp_path: Path, text: str) -> None:
    """As an editor saves it: another file in its place."""
    new = tmp_path / "headrace.toml.new"
    new.write_text(text)
    new.replace(tmp_path / "headrace.toml")


async def running(proof: Proof) -> int:
    return int((await proof.http.get("/queue")).json()["running"])


async def ready(proof: Proof) -> Json:
    body: Json = (await proof.http.get("/readyz")).json()
    return body


async def test_three_models_of_two_each_are_never_more_than_the_four_that_their_backend_bears(tmp_path: Path) -> None:
    """Whoever asks: the limits of models and clients do not multiply past it."""
    server = box()
    settings = "[limits.model]\ndefault = 2\n[limits.backend]\ndefault = 4\n[limits.client]\ndefault = 3\n"
    async with told_fleet(tmp_path, {"box": Machine(server, slots=9)}, settings) as proof:
        tasks = [await proof.submit(model=MODELS[n % 3], max_tokens=25, client=f"c{n % 4}") for n in range(18)]
        await proof.all_ended(tasks)
        assert server.most == 4
        log = [entry.event for entry in await proof.log()]
        limits = Limits(model=Limit(2), client=Limit(3), backend=Limit(4))
        assert check_log(log, limits)[0] == []


async def test_two_workers_over_one_backend_share_its_permit(tmp_path: Path) -> None:
    server = box()
    machines = {"one": Machine(server, slots=2), "two": Machine(server, slots=2)}
    async with told_fleet(tmp_path, machines, "[limits.backend]\ndefault = 1\n") as proof:
        tasks = [await proof.submit(model="a", max_tokens=15) for _ in range(8)]
        await proof.all_ended(tasks)
        released = [e.event for e in await proof.log() if isinstance(e.event, TaskReleased)]
        assert len({p for event in released for p in event.permits if p.startswith("backend:")}) == 1
        assert server.most == 1


async def test_a_backends_own_limit_is_written_and_told_by_the_name_of_the_machine_beside_it(tmp_path: Path) -> None:
    """A permit calls the server by an id that nobody could write into a settings file."""
    server = box()
    settings = "[limits.backend]\ndefault = 4\nnames = { one = 1 }\n"
    async with told_fleet(tmp_path, {"one": Machine(server, slots=3)}, settings) as proof:
        tasks = [await proof.submit(model="a", max_tokens=15) for _ in range(4)]

        async def told() -> bool:
            reasons = [row["reason"] for row in (await proof.http.get("/queue")).json()["tasks"]]
            return "backend_full: one has 1 running, which is its limit" in reasons

        await eventually(told)
        await proof.all_ended(tasks)
        assert server.most == 1


async def test_limits_change_while_tasks_run(tmp_path: Path) -> None:
    """Lowered, nothing is ended and nothing new begins until enough has; raised, what waits begins; refused, all stays."""
    server = box(0.03)
    async with told_fleet(tmp_path, {"box": Machine(server, slots=6)}, "[limits.backend]\ndefault = 3\n") as proof:
        long = [await proof.submit(model="a", max_tokens=200) for _ in range(3)]
        await until_running(proof, 3)
        limited(tmp_path, "[limits.backend]\ndefault = 'one'\n")
        problem = await eventually(lambda: refused(proof))
        assert problem is not None and "limits.backend.default" in problem

        limited(tmp_path, "[limits.backend]\ndefault = 1\n")
        await eventually(lambda: in_force(proof))
        assert await running(proof) == 3
        later = [await proof.submit(model="b", max_tokens=60) for _ in range(5)]
        ends = await proof.all_ended([*long, later[0]])
        assert {end["status"]["state"] for end in ends} == {"completed"}
        assert together_at_release([e.event for e in await proof.log()], later[0]) == 0

        limited(tmp_path, "[limits.backend]\ntotal = 2\n")
        await until_running(proof, 2)
        await proof.all_ended(later)
        assert server.most == 3


async def test_a_backend_of_somebody_elses_takes_permits_of_model_and_client_only(tmp_path: Path) -> None:
    server = box()
    settings = "[worker]\nlocal = false\n[limits.model]\ndefault = 2\n[limits.backend]\ndefault = 1\n"
    async with told_fleet(tmp_path, {"cloud": Machine(server, slots=6)}, settings) as proof:
        tasks = [await proof.submit(model=MODELS[n % 2], max_tokens=25) for n in range(8)]
        await proof.all_ended(tasks)
        released = [e.event for e in await proof.log() if isinstance(e.event, TaskReleased)]
        assert {permit.partition(":")[0] for event in released for permit in event.permits} == {"model", "client"}
        assert server.most == 4


async def until_running(proof: Proof, count: int) -> None:
    async def look() -> bool:
        return await running(proof) == count

    await eventually(look)


async def refused(proof: Proof) -> str | None:
    return (await ready(proof)).get("settings")


async def in_force(proof: Proof) -> bool:
    return (await ready(proof))["settings"] is None


def together_at_release(log: list[AnyEvent], task: str) -> int:
    """How many attempts were live when ``task`` was released for the first time."""
    live: set[str] = set()
    for event in log:
        if isinstance(event, TaskReleased):
            if event.task == task:
                return len(live)
            live.add(event.task)
        elif isinstance(event, TaskCompleted):
            live.discard(event.task)
    raise AssertionError(f"{task} was never released")
