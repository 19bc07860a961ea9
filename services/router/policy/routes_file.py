"""``routes.toml`` to routes, every fault with its line.

Answers "what does the file say, and if it is wrong, where?". Pure: it is given the text; ``services.runtime.watch`` reads it.
Each table is a virtual model; docs/routes.md explains the keys.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from schemas.errors import SettingsError
from services.router.nearest import nearest
from services.router.policy.plugins import DECISION_SERVICE, PLUGINS
from services.router.policy.routes import DecisionService, Route, Routes, Target, default_weights, route_by

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
Weight = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
Key = str | int
NO_WEIGHT = (
    "0 beside weights of other targets: it would never be drawn; leave the target out, or give it a weight above 0"
)
EXPLICIT = ("target_weight", "round_robin")


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class _Target(_Table, frozen=True, kw_only=True):
    model: Name
    worker: Name | None = None
    weight: Weight = 0.0
    criterion: str | None = None


class _Decision(_Table, frozen=True, kw_only=True):
    url: Name | None = None
    model: Name | None = None
    instructions: Name = DecisionService().instructions
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=30)] = DecisionService().timeout_s


class _Route(_Table, frozen=True, kw_only=True):
    targets: tuple[_Target, ...] = ()
    fallback: tuple[_Target, ...] = ()
    route_by: str | tuple[str, ...] | dict[str, Weight] | None = None
    slider: Annotated[float, msgspec.Meta(ge=0, le=1e6)] | None = None
    decision_service: _Decision | None = None


class _Fault(Exception):
    """What is wrong, and at which keys."""

    def __init__(self, words: str, *keys: Key) -> None:
        super().__init__(words)
        self.keys = keys


def parse_routes(text: str, path: str = "routes.toml") -> Routes:
    """Raises SettingsError ``<path>, line <n>: <key>: <what is wrong, and what would do>``."""
    try:
        tree = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(_syntax(str(error), text, path)) from error
    routes: dict[str, Route] = {}
    for name, table in tree.items():
        try:
            routes[name] = _route(name, table)
        except _Fault as fault:
            keys = (name, *fault.keys)
            shown = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")
            raise SettingsError(f"{path}, line {line_of(text, keys)}: {shown}: {fault}") from fault
    return Routes(routes=routes)


def _route(name: str, table: Any) -> Route:
    if not isinstance(table, dict):
        raise _Fault(f"expected a table, [{name}]: each table of this file is a virtual model")
    try:
        raw = msgspec.convert(table, _Route)
    except msgspec.ValidationError as error:
        raise _fault_of(error) from error
    plugins, explicit = _plugins(raw)
    targets = tuple(Target(**msgspec.structs.asdict(each)) for each in raw.targets)
    fallback = tuple(Target(**msgspec.structs.asdict(each)) for each in raw.fallback)
    _check_targets(targets, fallback)
    try:
        by = route_by(targets, plugins)
    except ValueError as mixture:
        bare = next(at for at, target in enumerate(targets) if not target.weight > 0)
        if "weight" in table["targets"][bare]:
            raise _Fault(NO_WEIGHT, "targets", bare, "weight") from mixture
        raise _Fault(str(mixture), "targets", bare) from mixture
    if explicit is not None and explicit != by:
        raise _Fault(f"the targets' weights say {by}, this says {explicit}; change one", "route_by")
    if not targets and by != "policy":
        raise _Fault("has no targets; name some, or policy plugins in route_by to choose among the whole fleet")
    decision = None
    if raw.decision_service is not None or DECISION_SERVICE in plugins:
        decision = DecisionService(**msgspec.structs.asdict(raw.decision_service or _Decision()))
        _check_url(decision)
    return Route(
        name=name, by=by, targets=targets, fallback=fallback, plugins=plugins if by == "policy" else {},
        slider=raw.slider, decision=decision if by == "policy" and DECISION_SERVICE in plugins else None,
    )  # fmt: skip


def _plugins(raw: _Route) -> tuple[dict[str, float], str | None]:
    """(weights by plugin, what was said in words instead)."""
    match raw.route_by:
        case None:
            named: dict[str, float] = {}
        case str() as word if word in EXPLICIT:
            return {}, word
        case str() as word:
            named = _defaults((word,))
        case tuple() as words:
            named = _defaults(words)
        case weights:
            _defaults(tuple(weights))
            named = {name: weight for name, weight in weights.items() if weight > 0}
    return named, None


def _defaults(names: tuple[str, ...]) -> dict[str, float]:
    for name in names:
        if name not in PLUGINS:
            close = ", ".join(nearest(name, (*PLUGINS, *EXPLICIT)))
            raise _Fault(f"{name!r} is no policy plugin; nearest: {close}", "route_by", name)
    return default_weights(names)


def _check_targets(targets: tuple[Target, ...], fallback: tuple[Target, ...]) -> None:
    seen: set[str] = set()
    for at, target in enumerate(targets):
        if target.name in seen:
            raise _Fault(f"{target.name} is a target twice", "targets", at)
        seen.add(target.name)
    for at, target in enumerate(fallback):
        if target.name in seen:
            raise _Fault(f"{target.name} is a target already; a fallback is never a candidate", "fallback", at)
        if target.weight > 0:
            raise _Fault("a fallback has no weight: the first that can answer is taken", "fallback", at, "weight")


def _check_url(service: DecisionService) -> None:
    """The address itself is not repeated: a password may be in it."""
    if service.url is not None and service.public_url is None:
        raise _Fault("is no address of a service; expected http://host or https://host", "decision_service", "url")


def _fault_of(error: msgspec.ValidationError) -> _Fault:
    """msgspec says ``Expected `float`, got `str` - at `$.targets[0].weight```."""
    words, _, at = (
        str(error).replace("[...]", "").partition(" - at `$")
    )  # which value of a table it is, it does not say
    keys: list[Key] = [int(n) if n else key for key, n in re.findall(r"\.([^.\[`]+)|\[(\d+)\]", at)]
    if unknown := re.search(r"unknown field `(.*)`", words):
        kind = {"targets": _Target, "fallback": _Target, "decision_service": _Decision}.get(
            str(keys[0]) if keys else ""
        )
        fields = (kind or _Route).__struct_fields__
        return _Fault(f"is not a setting; nearest: {', '.join(nearest(unknown[1], fields))}", *keys, unknown[1])
    return _Fault(words[:1].lower() + words[1:], *keys)


def line_of(text: str, keys: Sequence[Key]) -> int:
    """The line on which ``keys`` is set; where it is not to be found, that of the table or array around it."""
    best, line, table = 0, 1, ()  # type: int, int, tuple[Key, ...]
    counts: dict[tuple[Key, ...], int] = {}
    for number, row in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?$", row):
            table = _header(header[2], header[1] == "[[", counts)
            place = table
        elif found := re.match(r"\s*((?:\"[^\"]*\"|'[^']*'|[\w.-])+)\s*=", row):
            place = (*table, *_split(found[1]))
        else:
            continue
        common = _common(place, keys)
        if common == len(place) and common > best:
            best, line = common, number
    return line


def _header(name: str, is_array: bool, counts: dict[tuple[Key, ...], int]) -> tuple[Key, ...]:
    """The path of a table; elements of an array are counted, and a table inside one belongs to its last element."""
    place: tuple[Key, ...] = ()
    parts = _split(name)
    for at, part in enumerate(parts):
        place = (*place, part)
        last = at == len(parts) - 1
        if is_array and last:
            counts[place] = counts.get(place, -1) + 1
        if place in counts:
            place = (*place, counts[place])
    return place


def _split(dotted: str) -> list[str]:
    return [a or b or c for a, b, c in re.findall(r"\"([^\"]*)\"|'([^']*)'|([\w-]+)", dotted)]


def _common(place: Sequence[Key], keys: Sequence[Key]) -> int:
    n = 0
    while n < min(len(place), len(keys)) and place[n] == keys[n]:
        n += 1
    return n


def _syntax(message: str, text: str, path: str) -> str:
    """tomllib names the line at the end of its words, except at the end of the document."""
    found = re.search(r" \(at line (\d+), column \d+\)$", message)
    line = int(found[1]) if found else max(len(text.splitlines()), 1)
    words = re.sub(r" \(at .*\)$", "", message)
    return f"{path}, line {line}: not TOML: {words[:1].lower()}{words[1:]}"
