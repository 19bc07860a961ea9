"""nats/server.conf and nats/users.conf on a real server: each user can do its work, and nothing beyond it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from schemas.errors import BusError
from schemas.events import WorkerReported
from schemas.streams import group_consumer
from schemas.subjects import BENCHMARKER_KEY
from schemas.work import Body
from services.benchmarker.asking import Asking, Work
from services.runtime.bus import Bus
from services.runtime.clock import SystemClock
from services.runtime.election import Election
from services.runtime.feed import Feed
from services.runtime.provision import ensure_consumer, provision
from services.runtime.server import find_binary
from services.runtime.stored import StoredMessage
from services.runtime.take import Taker
from services.worker.peers import Peers
from support.eventually import PATIENCE_S, eventually

CONFIG = Path(__file__).parents[3] / "nats" / "server.conf"
USERS = ("admin", "router", "projector", "benchmarker", "worker", "observer")


async def keep(_: StoredMessage) -> None:
    """A feed that only has to arrive."""


class Secured:
    """A server with passwords, and a connection for whoever is asked for."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.open: list[Bus] = []

    async def as_(self, user: str) -> Bus:
        bus = await Bus.connect(self.url, name=user, user=user, password=f"pw-{user}")
        self.open.append(bus)
        return bus


@pytest.fixture
async def secured(tmp_path: Path) -> AsyncIterator[Secured]:
    ports = tmp_path / "ports"
    ports.mkdir()
    command = [
        find_binary(),
        "-c",
        str(CONFIG),
        "-a",
        "127.0.0.1",
        "-p",
        "-1",
        "-m",
        "-1",
        "--ports_file_dir",
        str(ports),
    ]
    passwords = {f"NATS_PASSWORD_{user.upper()}": f"pw-{user}" for user in USERS}
    with subprocess.Popen(command, cwd=tmp_path, env={**os.environ, **passwords}, stderr=subprocess.DEVNULL) as process:
        try:
            server = Secured(await eventually(lambda: _client_url(ports)))
            yield server
            await asyncio.gather(*(bus.close() for bus in server.open))
        finally:
            process.terminate()


def _client_url(ports: Path) -> str:
    for file in ports.glob("*.ports"):
        try:
            return str(json.loads(file.read_text())["nats"][0])
        except ValueError:
            return ""
    return ""


async def denied(bus: Bus, request: str) -> bool:
    try:
        await bus.api(request, deadline_s=1)
    except BusError as error:
        return "may not publish there" in str(error)
    return False


async def test_a_task_goes_through_with_each_part_as_its_own_user(secured: Secured) -> None:
    router, worker = await secured.as_("router"), await secured.as_("worker")
    projector = await secured.as_("projector")
    await provision(router)
    await ensure_consumer(router, group_consumer("chat", "m", cap=1, members=1))

    told: asyncio.Queue[str] = asyncio.Queue()
    await worker.listen("ctl.w1", lambda m: told.put(m.subject))
    await router.listen("credit.*", lambda m: told.put(m.subject))
    await router.listen("note.ev.>", lambda m: told.put(m.subject))
    assert await worker.fence() and await router.fence()

    round_ = await Taker(worker).arm([("g~chat~m", 0)], 1, 10)
    await worker.send("credit.w1", b"{}")
    assert await told.get() == "credit.w1"
    await router.send("ctl.w1", b"{}")
    assert await told.get() == "ctl.w1"
    await router.publish_stored("task.in.me.t1", b"body", "t1")
    await router.publish_stored("task.q.chat.m.any.t1.1", b"item", "t1.1")
    (item,) = await round_.items()
    assert await worker.last_for("TASKS", "task.in.me.t1") is not None
    for fact in ("paused", "resumed"):
        await router.publish_stored(f"ev.worker.{fact}.router", b"{}", fact)
        assert await told.get() == f"note.ev.worker.{fact}.router"
    await worker.publish_stored("ev.task.started.w1", b"{}", "t1.1.start")
    assert await told.get() == "note.ev.task.started.w1"
    await worker.publish_stored("task.out.me.t1.1", b"answer", "t1.out")
    assert await item.ack()

    async with Feed(projector, "EVENTS", keep) as feed, Feed(router, "EVENTS", keep) as fold:
        await asyncio.gather(feed.caught_up.wait(), fold.caught_up.wait())
    await projector.kv_put("stats", "mdw.m.general.w1", b"{}")
    async with Feed(worker, "KV_stats", keep, last_per_subject=True) as stats:
        await stats.caught_up.wait()
        assert stats.position == 1


async def test_a_worker_meets_its_peers_as_its_own_user(secured: Secured) -> None:
    router, worker = await secured.as_("router"), await secured.as_("worker")
    await provision(router)
    report = WorkerReported(id="r1", at=1.0, by="w2", worker="w2", boot="b", name="desk", backend="ollama")
    admin = await secured.as_("admin")
    await admin.publish_event(report, "r1")
    heard = asyncio.Event()
    peers = Peers(worker, "w1", SystemClock(), heard.set)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await peers.start()
        assert heard.is_set()
    finally:
        await peers.stop()


async def test_the_benchmarker_asks_holds_its_key_reads_answers_and_cancels(secured: Secured) -> None:
    router, mine = await secured.as_("router"), await secured.as_("benchmarker")
    await provision(router)
    told: asyncio.Queue[str] = asyncio.Queue()
    heard: asyncio.Queue[str] = asyncio.Queue()
    await router.listen("rpc.router.*", lambda m: told.put(m.subject))
    await mine.listen("rpc.benchmarker.*", lambda m: m.respond(b"done"))
    await mine.listen("hb.*", lambda m: heard.put(m.subject))
    assert await router.fence() and await mine.fence()
    assert await Election(mine, "b1", BENCHMARKER_KEY).campaign(0.0)
    async with Asking(mine) as asking, Feed(mine, "KV_stats", keep, last_per_subject=True):
        work = Work(purpose="probe", model="m", worker="w1", domain="general", body=Body(prompt="Hi"))
        running = asyncio.create_task(asking.run(work))
        submitted = await eventually(lambda: router.last_for("EVENTS", "ev.task.submitted.benchmarker"))
        assert submitted is not None
        running.cancel()
        assert await told.get() == "rpc.router.cancel"
    assert await mine.last_for("TASKS", "task.out.>") is None
    assert await mine.last_for("HEARTBEATS", "hb.w1") is None
    assert await router.request("rpc.benchmarker.bench", b"") == b"done"
    for verdict in ("bench.completed", "quality.judged"):
        await mine.publish_stored(f"ev.{verdict}.benchmarker", b"{}", verdict)
    worker = await secured.as_("worker")
    await worker.publish_stored("hb.w1", b"{}", "beat")
    assert await heard.get() == "hb.w1"


@pytest.mark.parametrize(
    ("user", "subject"),
    [
        ("worker", "ev.task.submitted.router"),
        ("worker", "ev.task.failed.w1"),
        ("worker", "ev.task.dead.w1"),
        ("worker", "ev.worker.paused.w1"),
        ("worker", "task.q.chat.m.any.t1.1"),
        ("worker", "$KV.router.dispatcher"),
        ("worker", "$KV.stats.mdw.m.d.w"),
        ("projector", "ev.task.completed.w1"),
        ("projector", "task.in.me.t1"),
        ("benchmarker", "ev.task.completed.b1"),
        ("benchmarker", "ev.task.released.b1"),
        ("benchmarker", "task.in.me.t1"),
        ("benchmarker", "task.q.chat.m.any.t1.1"),
        ("benchmarker", "task.out.benchmarker.t1.1"),
        ("benchmarker", "$KV.router.dispatcher"),
        ("benchmarker", "$KV.stats.mdw.m.d.w"),
        ("router", "$KV.stats.mdw.m.d.w"),
        ("observer", "ev.task.started.w1"),
    ],
)
async def test_nobody_stores_what_is_not_theirs_to_say(secured: Secured, user: str, subject: str) -> None:
    await provision(await secured.as_("router"))
    with pytest.raises(BusError, match="may not publish there"):
        await (await secured.as_(user)).publish_stored(subject, b"{}", "x", deadline_s=5)


@pytest.mark.parametrize("user", ["router", "projector", "benchmarker", "worker", "observer"])
async def test_only_the_admin_may_empty_or_remove_the_log(secured: Secured, user: str) -> None:
    admin = await secured.as_("admin")
    await provision(admin)
    bus = await secured.as_(user)
    assert await denied(bus, "STREAM.PURGE.EVENTS")
    assert await denied(bus, "STREAM.DELETE.EVENTS")
    assert (await admin.api("STREAM.PURGE.EVENTS"))["success"]


@pytest.mark.parametrize("user", ["projector", "benchmarker", "worker", "observer"])
async def test_only_routers_make_and_remove_the_consumers_of_tasks(secured: Secured, user: str) -> None:
    await provision(await secured.as_("router"))
    bus = await secured.as_(user)
    assert await denied(bus, "CONSUMER.CREATE.TASKS.g~chat~m")
    assert await denied(bus, "CONSUMER.DELETE.TASKS.g~chat~m")
