"""Which questions does the benchmarker ask, and how is each answer checked? The suites, read from TOML files beside this one.

One file per domain, written for this project, in English and Japanese. A prompt without a check is one that only a judge can
weigh. A fault is told with the file and the prompt that it is in; a suite with a fault is never used in part.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from schemas.errors import HeadraceError
from schemas.events import Options
from schemas.work import Body
from services.benchmarker.graders import AnyCheck

FOLDER = Path(__file__).with_suffix("")
SEED = 1
"""With temperature 0 the same question to the same model gives the same answer, wherever the backend allows it."""
TOKENS_MAX = 512
"""A suite measures often, on the slowest machine too: what needs longer answers belongs elsewhere."""

Name = Annotated[str, msgspec.Meta(pattern="^[a-z0-9]+(-[a-z0-9]+)*$", max_length=40)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]


class SuiteFault(HeadraceError, ValueError):
    """A suite that cannot be used; names the file and the prompt."""


class Prompt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``level`` 1 is for the smallest models, 3 for the largest. The ``id`` stands for exactly this text and check: whoever
    changes one gives it a new id, or old grades would be compared with new ones."""

    id: Name
    level: Literal[1, 2, 3]
    language: Literal["en", "ja"]
    text: Text
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=TOKENS_MAX)] = 32
    check: AnyCheck | None = None

    @property
    def body(self) -> Body:
        return Body(messages=({"role": "user", "content": self.text},))

    @property
    def options(self) -> Options:
        return Options(max_tokens=self.max_tokens, temperature=0.0, seed=SEED)


class Suite(msgspec.Struct, frozen=True, kw_only=True):
    """``name`` is the file's."""

    name: str
    domain: str
    prompts: tuple[Prompt, ...]

    @property
    def checked(self) -> tuple[Prompt, ...]:
        return tuple(prompt for prompt in self.prompts if prompt.check is not None)

    @property
    def judged(self) -> tuple[Prompt, ...]:
        return tuple(prompt for prompt in self.prompts if prompt.check is None)


@cache
def suites() -> Mapping[str, Suite]:
    """The suites that come with Headrace, by domain."""
    return load(FOLDER)


def load(folder: Path) -> dict[str, Suite]:
    """Every ``*.toml`` of a folder, by domain. Raises SuiteFault with all faults of all files, one a line."""
    found: dict[str, Suite] = {}
    faults: list[str] = []
    for file in sorted(folder.glob("*.toml")):
        try:
            suite = read(file.stem, file.read_bytes())
            if suite.domain in found:
                raise SuiteFault(f"{file.name}: {found[suite.domain].name}.toml is already about {suite.domain}")
            found[suite.domain] = suite
        except SuiteFault as fault:
            faults.append(str(fault))
    if faults:
        raise SuiteFault("\n".join(faults))
    return found


def read(name: str, text: bytes) -> Suite:
    """One file's suite."""
    try:
        table = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SuiteFault(f"{name}.toml is no TOML: {error}") from error
    domain, entries = table.pop("domain", None), table.pop("prompts", None)
    if table or not isinstance(domain, str) or not isinstance(entries, list) or not entries:
        raise SuiteFault(f'{name}.toml: expected domain = "..." and at least one [[prompts]], and nothing else')
    faults: list[str] = []
    prompts = list(_prompts(name, entries, faults))
    counted = Counter(prompt.id for prompt in prompts)
    faults += [f"{name}.toml: the id {id!r} stands {count} times" for id, count in counted.items() if count > 1]
    if faults:
        raise SuiteFault("\n".join(faults))
    return Suite(name=name, domain=domain, prompts=tuple(prompts))


def _prompts(name: str, entries: list[Any], faults: list[str]) -> Iterator[Prompt]:
    for number, entry in enumerate(entries, 1):
        try:
            yield msgspec.convert(entry, type=Prompt)
        except msgspec.ValidationError as error:
            label = entry.get("id") if isinstance(entry, dict) else None
            faults.append(f"{name}.toml, prompt {label or number}: {error}")
