"""Was the body packed for its way? What comes as gzip or deflate is unpacked as far as a body may be large, and no further.

It never holds more than is asked for: a packed kilobyte can be a megabyte.
"""

from __future__ import annotations

import zlib

from schemas.errors import HeadraceError

KNOWN = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""How zlib calls each form."""


class UnknownEncoding(HeadraceError, ValueError):
    """A body that is packed in another way: 415."""


class BrokenEncoding(HeadraceError, ValueError):
    """A body that is not packed as it says."""


class Unpacked:
    """The pieces of one body, one after the other. Raises UnknownEncoding, and BrokenEncoding."""

    def __init__(self, encoding: str) -> None:
        self._name = encoding.strip().lower()
        form = KNOWN.get(self._name)
        if form is None and self._name not in ("", "identity"):
            raise UnknownEncoding(
                f"the body's content-encoding is {encoding[:64]!r}; send it as it is, or as gzip or deflate"
            )
        self._packed = zlib.decompressobj(form) if form is not None else None

    def piece(self, data: bytes, most: int) -> bytes:
        """At most ``most`` bytes: whoever gets so many has enough."""
        if self._packed is None:
            return data
        try:
            return self._packed.decompress(data, most)
        except zlib.error as error:
            raise BrokenEncoding(f"the body says that it is {self._name}, and is not: {error}") from error

    def end(self) -> None:
        if self._packed is not None and not self._packed.eof:
            raise BrokenEncoding(f"the body's {self._name} broke off before its end; send it again")
