"""What a request needs of a model beyond its text, and what a backend says of its model about that.

Answers "can it call tools, does it see images?" with yes, no or unknown. Unknown is never good, and never a no: a llama.cpp that
declares nothing still serves where nobody declares it.
"""

from __future__ import annotations

from schemas.events import ModelInfo, Sizes

TOOLS, VISION = "tools", "vision"
WORDS = {TOOLS: "tools", VISION: "images"}


def needs_of(sizes: Sizes) -> tuple[str, ...]:
    """In the words of backends' capabilities."""
    return tuple(need for need, count in ((TOOLS, sizes.tools), (VISION, sizes.images)) if count)


def says(info: ModelInfo, need: str) -> bool | None:
    """What its backend says; None where it says nothing."""
    if need in info.capabilities:
        return True
    return False if need in info.lacks else None
