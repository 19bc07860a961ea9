"""What a request needs of a model beyond its text, and what a backend says of its model about that.

Answers "can it call tools, does it see images, does it fetch them?" with yes, no or unknown. Unknown is never good, and
never a no: a llama.cpp that declares nothing still serves where nobody declares it.
"""

from __future__ import annotations

from schemas.events import ModelInfo, Sizes

TOOLS, VISION, IMAGE_URLS = "tools", "vision", "image_urls"
WORDS = {TOOLS: "tools", VISION: "images", IMAGE_URLS: "images by URL (send them as data: URIs)"}


def needs_of(sizes: Sizes) -> tuple[str, ...]:
    """In the words of backends' capabilities."""
    counts = ((TOOLS, sizes.tools), (VISION, sizes.images), (IMAGE_URLS, sizes.image_urls))
    return tuple(need for need, count in counts if count)


def says(info: ModelInfo, need: str) -> bool | None:
    """What its backend says; None where it says nothing. Which servers fetch images is known of each kind: no is in ``lacks``."""
    if need in info.capabilities or (need == IMAGE_URLS and need not in info.lacks):
        return True
    return False if need in info.lacks else None
