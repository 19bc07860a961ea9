"""The table of policy plugins: a name in ``routes.toml``, its function, and the weight that it has where none is given.

A new plugin is a file, a row here, a line in README.md and docs/routes.md; tests/contract/ finds it by itself.
"""

from __future__ import annotations

from services.router.policy import (
    decision_service,
    least_completion,
    least_in_flight,
    legacy,
    saved_prefill,
    session_affinity,
)
from services.router.policy.plugin import Plugin

DECISION_SERVICE = "decision_service"

PLUGINS: dict[str, Plugin] = {
    "session_affinity": Plugin(session_affinity.vote),
    "least_in_flight": Plugin(least_in_flight.vote),
    DECISION_SERVICE: Plugin(decision_service.vote, weight=10.0),
    "legacy_mended": Plugin(legacy.vote),
    "saved_prefill": Plugin(saved_prefill.vote),
    "least_completion": Plugin(least_completion.vote),
}
