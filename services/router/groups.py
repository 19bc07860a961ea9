"""Which groups and lanes exist in the server?

So that those whose holders left while no router ran are deleted some day too.
"""

from __future__ import annotations

from services.runtime.bus import Bus


async def existing(bus: Bus) -> list[str]:
    """Their durable names, page by page."""
    found: list[str] = []
    total = 1
    while len(found) < total:
        page = await bus.api("CONSUMER.NAMES.TASKS", {"offset": len(found)})
        names, total = page.get("consumers") or [], int(page["total"])
        found += names
        if not names:
            break
    return [name for name in found if name[:2] in ("g~", "l~")]
