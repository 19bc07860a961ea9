"""``headrace pipe``: the function for Open WebUI, printed or installed.

Answers "what do I type to have Headrace in Open WebUI?". Installing again brings everything to what it should be and changes
nothing that already is; it must never touch a function or a model of somebody else's, nor a valve that was set by hand.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

import services
from services.cli.client import DEFAULT_ROUTER, RouterClient
from services.cli.exits import CommandFailed, Exit
from services.cli.openwebui import Json, OpenWebUI
from services.cli.output import emit
from services.cli.show_commands import AsJson

FOLDER = Path(services.__file__).parents[1] / "openwebui"
"""Beside our packages, in a checkout as in an installed wheel."""
PIPE, BRIDGE = "headrace", "headrace_ratings"
SOURCES = {PIPE: "auto_route_pipe.py", BRIDGE: "feedback_bridge.py"}
NAMES = {PIPE: "🧭 Headrace (Auto Route)", BRIDGE: "Headrace (ratings)"}
ABOUT = {
    PIPE: "The model and machine that the evidence says answers best, chosen for each question.",
    BRIDGE: "Thumbs become evidence in Headrace.",
}
EVERYBODY = {"principal_type": "user", "principal_id": "*", "permission": "read"}


def pipe(
    install: Annotated[
        str | None, typer.Option("--install", metavar="URL", help="Put it into the Open WebUI at this address.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", envvar="OPENWEBUI_KEY", help="An API key or token of an administrator there.")
    ] = None,
    router: Annotated[
        str | None,
        typer.Option("--router", envvar="HEADRACE_ROUTER", metavar="URL", help="The router, as Open WebUI reaches it."),
    ] = None,
    router_key: Annotated[
        str | None,
        typer.Option("--router-key", envvar="HEADRACE_KEY", help="One of the router's keys, if it has any."),
    ] = None,
    ratings: Annotated[bool, typer.Option("--ratings", help="Print the function for ratings instead.")] = False,
    json: AsJson = False,
) -> None:
    """Print the function for Open WebUI, or install it there with the one for ratings."""
    if install is None:
        sys.stdout.write(source(BRIDGE if ratings else PIPE))
        return
    if not key:
        raise CommandFailed(
            "--install needs the key of an administrator",
            hint="headrace pipe --install URL --key sk-..., or set OPENWEBUI_KEY",
            code=Exit.USAGE,
        )
    valves = {"ROUTER_URL": _url(router), "API_KEY": router_key}
    done = asyncio.run(_install(install, key, {name: value for name, value in valves.items() if value}))
    done["reached_from_here"] = asyncio.run(_is_router(done["router"]))
    emit(done, _said, as_json=json)


def source(name: str) -> str:
    """A function's file. Raises CommandFailed where it would not compile: Open WebUI would not say why it refuses it."""
    path = FOLDER / SOURCES[name]
    text = path.read_text(encoding="utf-8")
    try:
        compile(text, str(path), "exec")
    except SyntaxError as error:
        raise CommandFailed(
            f"{path} is damaged: line {error.lineno}: {error.msg}", hint="install headrace anew"
        ) from error
    return text


async def _install(url: str, key: str, valves: Json) -> Json:
    async with OpenWebUI(url, key) as there:
        return await install_into(there, valves)


async def _is_router(url: str) -> bool:
    """Open WebUI's machine may reach it where this one does not, and the other way round; a wrong port is missed by both."""
    try:
        async with RouterClient(url) as client:
            await client.ready()
    except CommandFailed:
        return False
    return True


async def install_into(there: OpenWebUI, valves: Json) -> Json:
    """What was done, in the order it was done; ``changes`` is empty where all was as it should be."""
    version, changes = await there.check(), list[str]()
    known = await there.functions()
    for name in SOURCES:
        changes += await _function(there, name, known.get(name))
        changes += await _valves(there, name, valves)
    models = [row for row in await there.models() if row["id"].partition(".")[0] == PIPE and row.get("pipe")]
    if not models:
        raise CommandFailed(
            "the function is switched on, but Open WebUI shows no model of it", hint="its own log says why"
        )
    for model in models:
        changes += await _entry(there, model["id"], model["name"])
    shown = (await there.valves(PIPE)).get("ROUTER_URL", DEFAULT_ROUTER)
    names = [model["name"] for model in models]
    return {"url": there.url, "version": version, "router": shown, "models": names, "changes": changes}


async def _function(there: OpenWebUI, name: str, known: Json | None) -> list[str]:
    text, changes = source(name), list[str]()
    form = {"id": name, "name": NAMES[name], "content": text, "meta": {"description": ABOUT[name]}}
    if known is None:
        await there.write(name, form, new=True)
        changes.append(f"created the function {name}")
    elif (now := await there.function(name))["content"] != text or now["name"] != NAMES[name]:
        await there.write(name, form, new=False)
        changes.append(f"updated the function {name}")
    if known is None or not known["is_active"]:
        if not (await there.toggle(name))["is_active"]:
            raise CommandFailed(
                f"{name} was switched on by somebody else at the same moment, and is off now", hint="try again"
            )
        changes.append(f"switched on {name}")
    return changes


async def _valves(there: OpenWebUI, name: str, wanted: Json) -> list[str]:
    """Beside those that were set before: Open WebUI replaces the whole set."""
    before = await there.valves(name)
    if before | wanted == before:
        return []
    await there.set_valves(name, before | wanted)
    return [f"set {', '.join(sorted(key for key in wanted if before.get(key) != wanted[key]))} of {name}"]


async def _entry(there: OpenWebUI, model: str, name: str) -> list[str]:
    """Without an entry only administrators see the model. Grants and settings of somebody's own stay."""
    now = await there.entry(model)
    meta: Json = dict((now or {}).get("meta") or {"description": ABOUT[PIPE]})
    before: dict[str, Any] = dict(meta.get("capabilities") or {})
    meta["capabilities"] = {"usage": True} | before | {"builtin_tools": False}
    grants = [{key: grant[key] for key in EVERYBODY} for grant in (now or {}).get("access_grants") or ()]
    if now is not None and EVERYBODY in grants and before == meta["capabilities"] and now["is_active"]:
        return []
    form = {
        "id": model,
        "base_model_id": (now or {}).get("base_model_id"),
        "name": (now or {}).get("name") or name,
        "params": (now or {}).get("params") or {},
        "meta": meta,
        "access_grants": grants if EVERYBODY in grants else [*grants, EVERYBODY],
        "is_active": True,
    }
    await there.write_entry(form, new=now is None)
    return [f"let everybody use {name}, without Open WebUI's built-in tools"]


def _url(router: str | None) -> str | None:
    return router if router is None or "://" in router else f"http://{router}"


def _said(done: Json) -> Text:
    changes = [f"  {words}" for words in done["changes"]] or ["  nothing to do: all is as it should be"]
    lines = [f"{', '.join(done['models'])}: ready, by the router at {done['router']}"]
    if not done["reached_from_here"]:
        lines.append(
            "  No router answers there from this machine. Does one from Open WebUI's? Else again with another --router URL."
        )
    return Text("\n".join([f"Open WebUI {done['version']} at {done['url']}", *changes, *lines]))
