"""``routes.toml`` on disk: read at the start, looked at each second, refused with its line where it is wrong.

Answers "which virtual models are in force, and is the file as it is now among them?". It decides nothing about tasks.
"""

from __future__ import annotations

from pathlib import Path

from schemas.errors import SettingsError
from services.router.policy.routes import Routes
from services.router.policy.routes_file import parse_routes
from services.router.port import RoutesInForce
from services.runtime.watch import Watched

NAME = "routes.toml"


def watch_routes(path: Path) -> Watched[Routes]:
    """Raises SettingsError: a router does not start with routes that it cannot read. No file is no route but ``auto``."""
    return Watched(path, lambda content: _parse(content, path))


def default_path(config: Path | None, data: Path) -> Path:
    """Beside the settings file; without one in the data directory."""
    return (config.parent if config is not None else data) / NAME


def in_force(watched: Watched[Routes] | None) -> RoutesInForce:
    if watched is None:
        return RoutesInForce()
    return RoutesInForce(routes=watched.value, path=str(watched.path), problem=watched.problem)


def _parse(content: bytes | None, path: Path) -> Routes:
    if content is None:
        return Routes()
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from error
    return parse_routes(text, str(path))
