"""``make story-faults``: put each old fault back into a copy of this tree, and require that its story fails there.

Answers "would the stories notice?". Each ``sN.patch`` brings one fault of the first fleet back into the product. A story must
pass in the copy as it is, and fail by an assertion of its own with the patch; a patch that does not apply is an error. It never
touches this tree. ``put_back.py s1 s7`` tries only those.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
ASSERTED = re.compile(r"AssertionError\b|assert\b")


class Ran(NamedTuple):
    """One story's test. ``failure`` is the first line of what it failed with, None where it passed."""

    test: str
    failure: str | None

    @property
    def asserted(self) -> bool:
        """Whether the story itself said no; an import that fails or a part that does not start proves nothing."""
        return self.failure is not None and ASSERTED.match(self.failure) is not None


def stories() -> dict[str, Path]:
    """``s1`` -> its patch, in order."""
    return {path.stem: path for path in sorted(HERE.glob("s*.patch"), key=lambda path: int(path.stem[1:]))}


def fault_of(patch: Path) -> str:
    """The first line above the diff."""
    return patch.read_text(encoding="utf-8").partition("\n")[0]


def end_to_end(story: str, root: Path = ROOT) -> list[str]:
    """The tests that tell the story on real processes: those that carry its number in their names."""
    found = []
    for path in sorted((root / "tests" / "story").glob(f"test_{story}_*.py")):
        names = re.findall(rf"(?m)^async def (test_{story}_\w+)", path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(root)}::{name}" for name in names]
    return found


def copy_tree(to: Path) -> None:
    """What git knows of and what it does not ignore, as it lies here."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)


def apply(patch: Path, tree: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "apply", *options, str(patch)], cwd=tree, capture_output=True, text=True)


def run(tests: Iterable[str], tree: Path) -> list[Ran]:
    """The tests in the copy, with the copy's own product."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    where = subprocess.run(
        [sys.executable, "-c", "import schemas, services; print(schemas.__file__, services.__file__)"],
        cwd=tree, env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert all(Path(file).is_relative_to(tree) for file in where.stdout.split()), f"not the copy: {where.stdout}"
    report = tree / "report.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    done = subprocess.run([*command, *tests], cwd=tree, env=environment, capture_output=True, text=True)
    if not report.exists():
        raise SystemExit(f"pytest did not run:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return list(results(report))


def results(report: Path) -> Iterator[Ran]:
    for case in ElementTree.parse(report).iter("testcase"):
        failed = [case.find(kind) for kind in ("error", "failure", "skipped")]
        told = next((kind for kind in failed if kind is not None), None)
        yield Ran(
            str(case.get("name")), None if told is None else str(told.get("message") or told.text).partition("\n")[0]
        )


def try_one(story: str, patch: Path) -> tuple[bool, str]:
    """(whether the fault was noticed, what happened)."""
    with tempfile.TemporaryDirectory(prefix=f"headrace-{story}-") as folder:
        tree = Path(folder).resolve()
        copy_tree(tree)
        tests = end_to_end(story, tree)
        if not tests:
            return False, "there is no end-to-end test of this story"
        refused = [ran for ran in run(tests, tree) if ran.failure is not None]
        if refused:
            return False, f"fails without the fault: {refused[0].test}: {refused[0].failure}"
        applied = apply(patch, tree)
        if applied.returncode:
            return False, f"the patch does not apply: {applied.stderr.strip()}"
        ran = run(tests, tree)
        passed = [one.test for one in ran if one.failure is None]
        if passed:
            return False, f"passes with the fault: {', '.join(passed)}"
        strange = [one for one in ran if not one.asserted]
        if strange:
            return False, f"fails for another reason: {strange[0].failure}"
        return True, str(ran[0].failure)


def main(wanted: list[str]) -> int:
    tried = {story: patch for story, patch in stories().items() if not wanted or story in wanted}
    if not tried:
        raise SystemExit(f"no such story: {' '.join(wanted)}; there are {' '.join(stories())}")
    missed = []
    print(f"{'story':<6} {'noticed':<8} fault, and what its test said")
    for story, patch in tried.items():
        noticed, told = try_one(story, patch)
        print(f"{story:<6} {'yes' if noticed else 'NO':<8} {fault_of(patch)}\n{'':<15} {told[:160]}", flush=True)
        missed += [] if noticed else [story]
    print(f"{len(tried) - len(missed)} of {len(tried)} faults were noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
