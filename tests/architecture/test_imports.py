"""Which names mean what, and who may import whom. The traps were each reproduced; see STYLE.md, "Python traps"."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import nats

ROOT = Path(__file__).parents[2]


def test_import_nats_is_the_client_and_not_the_data_folder() -> None:
    assert nats.__file__ is not None
    assert ROOT / "nats" not in Path(nats.__file__).parents
    assert nats.__file__.endswith("nats/__init__.py")
    assert hasattr(nats, "connect")


def test_no_other_distribution_claims_our_package_names() -> None:
    owners = importlib.metadata.packages_distributions()
    for package in ("schemas", "services"):
        assert set(owners.get(package, [])) <= {"headrace"}
