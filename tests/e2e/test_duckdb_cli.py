"""Case 55, with the tool that people have: DuckDB's own command line (1.5) reads a running projector's snapshot.

``make e2e-duckdb`` puts it into ``.parts``; a ``duckdb`` on the PATH does as well.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from services.projector.tables import APPENDED
from services.projector.views import VIEWS
from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from support.history import many
from support.projecting import ProjectorProcess, store_events

pytestmark = pytest.mark.e2e

PART = Path(__file__).parents[2] / ".parts" / "duckdb" / "duckdb_cli" / "duckdb"


@pytest.fixture
def duckdb_cli() -> str:
    found = str(PART) if PART.exists() else shutil.which("duckdb")
    if found is None:
        pytest.skip("no duckdb command line here; `make e2e-duckdb` installs one")
    return found


async def test_duckdbs_command_line_reads_every_table_and_view_while_the_projector_runs(
    duckdb_cli: str, natsd: EmbeddedServer, bus: Bus, tmp_path: Path
) -> None:
    last = await store_events(bus, many(1_000, tasks=200))
    async with ProjectorProcess(natsd.url, tmp_path, HEADRACE_PROJECTOR_SNAPSHOT_S="0.1") as projector:
        status = await projector.reached(bus, last)
        projector.stop()
        projector.start()
        await projector.reached(bus, last)
        for name in (*APPENDED, *VIEWS, "cells", "cell_key", "meta"):
            _ask(duckdb_cli, projector.snapshot, f"FROM {name}")
        assert _ask(duckdb_cli, projector.snapshot, "SELECT count(*) FROM samples") == str(status["samples"])
        refused = subprocess.run(
            [duckdb_cli, "-readonly", str(projector.directory / "live.duckdb"), "-c", "FROM speed"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Could not set lock" in refused.stderr + refused.stdout


def _ask(command: str, file: Path, query: str) -> str:
    done = subprocess.run(
        [command, "-readonly", "-csv", "-noheader", str(file), "-c", query], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{query}: {done.stderr}"
    return done.stdout.strip()
