from __future__ import annotations

import socket
from pathlib import Path

import pytest

from services.cli.exits import CommandFailed
from services.cli.parts import (
    BackendAt,
    Surroundings,
    backend_url,
    benchmarker_part,
    name_of,
    projector_part,
    router_part,
    slug,
    worker_part,
)
from services.runtime.settings import Benchmarker

AROUND = Surroundings(Path("data"), "nats://127.0.0.1:1", "http://127.0.0.1:8421")
HERE = socket.gethostname().partition(".")[0]


@pytest.mark.parametrize("typed", ["localhost:11434", "http://localhost:11434/", "http://127.0.0.1:11434"])
def test_one_server_has_one_url_however_it_is_typed(typed: str) -> None:
    assert backend_url(typed) == "http://127.0.0.1:11434"


def test_a_path_and_another_host_stay() -> None:
    assert backend_url("https://gpu.lan/llm/") == "https://gpu.lan/llm"


@pytest.mark.parametrize("typed", ["", "ftp://x", "http://"])
def test_what_is_no_url_is_refused_with_an_example(typed: str) -> None:
    with pytest.raises(CommandFailed, match="no model server's URL"):
        backend_url(typed)


def test_a_machine_is_named_for_its_host_and_what_runs_there() -> None:
    assert name_of("http://127.0.0.1:11434", "ollama") == f"{HERE}-ollama"
    assert name_of("http://192.168.1.20:8080") == "192.168.1.20-8080"


def test_folders_have_no_slashes_and_keep_letters_of_any_script() -> None:
    assert slug("http://127.0.0.1:11434") == "127.0.0.1-11434"
    assert slug("猫の機械") == "猫の機械"


def test_a_worker_keeps_its_identity_by_its_servers_url_and_not_by_its_name() -> None:
    one = worker_part(AROUND, BackendAt("desktop", "http://127.0.0.1:11434"))
    renamed = worker_part(AROUND, BackendAt("tower", "http://127.0.0.1:11434"))
    other = worker_part(AROUND, BackendAt("desktop", "http://127.0.0.1:8080"))
    assert one.arguments == renamed.arguments != other.arguments


def test_a_router_is_not_taken_for_ready_by_what_answers_at_its_port_alone() -> None:
    assert router_part(AROUND).own_word


def test_workers_stop_before_the_router_that_serves_their_last_answers() -> None:
    worker = worker_part(AROUND, BackendAt("desktop", "http://127.0.0.1:11434"))
    assert worker.stop_order < router_part(AROUND).stop_order == projector_part(AROUND).stop_order


def test_the_router_is_told_how_its_server_syncs() -> None:
    assert router_part(AROUND._replace(sync="10s")).environment["HEADRACE_NATS_SYNC"] == "10s"


def test_every_part_knows_the_same_nats_and_the_settings_file() -> None:
    around = AROUND._replace(config=Path("headrace.toml"))
    for part in (
        router_part(around),
        projector_part(around),
        benchmarker_part(around, Benchmarker()),
        worker_part(around, BackendAt("w", "http://127.0.0.1:1")),
    ):
        assert part.arguments[:2] == ("--config", "headrace.toml")
        assert part.arguments[-2:] == ("--server", "nats://127.0.0.1:1")


async def test_the_benchmarker_says_what_it_may_do_and_stops_with_the_workers() -> None:
    part = benchmarker_part(AROUND, Benchmarker())
    assert part.stop_order < router_part(AROUND).stop_order
    assert part.ready is not None and "2 %" in str(await part.ready())
    switched_off = benchmarker_part(AROUND, Benchmarker(on=False)).ready
    assert switched_off is not None and "only what is asked for" in str(await switched_off())
