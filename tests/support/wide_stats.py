"""Statistics of a fleet of any width: what pages, maps and their cost are tried on."""

from __future__ import annotations

from functools import cache

import msgspec

from schemas.cells import Cell, Rates, Sources, Sums, Tally
from schemas.events import ModelInfo
from schemas.evidence import Restart
from schemas.pools import Statistics
from schemas.weights import WEIGHT_ONE
from services.router.fleet import Fleet, WorkerView

DOMAINS = ("code", "general", "maths", "summarise", "translation", "writing", "extraction", "unknown")
GB = 1_000_000_000
NOW_US = 1_000_000_000_000


@cache
def wide(workers: int, models: int, domains: int) -> tuple[Statistics, Fleet]:
    """Every machine holds every model, and all of it was measured."""
    names = [f"org/model-{n:02d}:8b" for n in range(models)]
    infos = {name: ModelInfo(name=name, backend_name=name, bytes=(n + 1) * GB) for n, name in enumerate(names)}
    views = {
        f"w-{n:03d}": WorkerView(id=f"w-{n:03d}", name=f"gpu-{n:03d}", boot="b", models=infos) for n in range(workers)
    }
    cells = (
        measured(model, domain, worker, 5 + (n * 7) % 190, size=(n + 1) * GB)
        for n, model in enumerate(names)
        for domain in DOMAINS[:domains]
        for worker in views
    )
    return Statistics(cells), Fleet(workers=views)


def measured(model: str, domain: str, worker: str | None, rate: float, *, size: int = GB, n: int = 9) -> Cell:
    """Answers of 100 tokens at ``rate``, and three judgements."""
    w, us = n * WEIGHT_ONE, round(100e6 / rate)
    speed = Rates(
        n=n, w=w, wtok=100 * w, wus=us * w, wfree_us=us * w, w_told=w, p50=round(rate * 1000), p95=round(rate * 1100)
    )
    sums = Sums(n=n, w=w, wx=us * w, p50=us, p95=us)
    return Cell(
        model=model,
        domain=domain,
        worker=worker,
        model_bytes=size,
        decode=speed,
        prefill=speed,
        total=sums,
        first_token=sums,
        output=Sums(n=n, w=w, wx=100 * w, p50=100, p95=100),
        quality=Sums(n=3, w=3_000_000 * WEIGHT_ONE, wx=2_100_000_000_000 * WEIGHT_ONE, p50=700_000, p95=700_000),
        ok_n=n,
        last_seq=1,
        speed_at_us=NOW_US,
        quality_at_us=NOW_US,
    )


def _pairs(peer: str, *, won: int, n: int = 4) -> tuple[Tally, ...]:
    w = 1_000_000 * WEIGHT_ONE
    return (Tally(peer=peer, n=n, x=won * 1_000_000, w=n * w, wx=won * 1_000_000 * w),)


def household() -> tuple[Statistics, Fleet]:
    """Two machines of very different speed; a long name, a model that one of them lacks, and one that nobody measured."""
    names = ("qwen3", "Qwen/Qwen3-30B-A3B-Instruct-2507:Q4_K_M", "new-model")
    infos = {name: ModelInfo(name=name, backend_name=name, bytes=(5, 18, 3)[at] * GB) for at, name in enumerate(names)}
    laptop = {name: infos[name] for name in ("qwen3", "new-model")}
    views = {
        "w-1": WorkerView(id="w-1", name="desktop", boot="b", models=infos),
        "w-2": WorkerView(id="w-2", name="laptop", boot="b", models=laptop),
    }
    unjudged = {"quality": Sums(), "quality_at_us": None}
    changed = Restart(why="drift", seq=1, at_us=NOW_US - 7_200_000_000, n=40, rate=31_000)
    held = {"pairs": _pairs(names[1], won=3), "sources": Sources(judge=4, check=2, thumb=1, void=1)}
    cells = (
        msgspec.structs.replace(measured("qwen3", "code", "w-1", 83.0, size=5 * GB, n=30), restarted=changed, **held),
        msgspec.structs.replace(measured("qwen3", "maths", "w-1", 81.0, size=5 * GB, n=12), fail_n=1, **unjudged),
        msgspec.structs.replace(measured("qwen3", "code", "w-2", 7.2, size=5 * GB, n=4), **unjudged),
        msgspec.structs.replace(
            measured(names[1], "code", "w-1", 41.0, size=18 * GB, n=9), **unjudged | {"pairs": _pairs("qwen3", won=1)}
        ),
        Cell(
            model="qwen3",
            domain="writing",
            quality=measured("", "", "", 1.0).quality,
            quality_at_us=NOW_US,
            last_seq=1,
        ),
    )
    return Statistics(cells), Fleet(workers=views)
