"""Stored events that every later version must still read.

Answers "what did an older Headrace leave in somebody's stream?". A file is written once and never touched again:
``PYTHONPATH=tests python -m support.golden`` writes only the types and versions that have none, and adds their hashes.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from schemas import codec
from schemas.events import EVENT_TYPES, Event
from support.builders import build

HOME = Path(__file__).parents[1] / "golden"
MANIFEST = HOME / "SHA256SUMS"


def golden_files() -> list[Path]:
    return sorted(HOME.glob("v*/*.json"))


def current_file(kind: type[Event]) -> Path:
    """``v1/task.submitted.json``: the folder is the version of that type, a second example is ``task.submitted+note.json``."""
    tag = str(kind.__struct_config__.tag)
    return HOME / f"v{codec.CURRENT[tag]}" / f"{tag}.json"


def recorded() -> dict[str, str]:
    """File name -> SHA-256, in the form that ``sha256sum -c`` reads."""
    if not MANIFEST.exists():
        return {}
    lines = MANIFEST.read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> None:
    for kind in EVENT_TYPES:
        path = current_file(kind)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(codec.encode(build(kind, v=codec.CURRENT[path.stem])))
            print(f"wrote {path.relative_to(HOME)}")
    known = recorded()
    new = {str(path.relative_to(HOME)): digest(path) for path in golden_files()}
    with MANIFEST.open("a", encoding="utf-8") as manifest:
        manifest.writelines(f"{new[name]}  {name}\n" for name in new if name not in known)


if __name__ == "__main__":
    main()
