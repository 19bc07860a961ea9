"""How many wrong keys may come from one address? Ten, then one for each six seconds.

A bucket for each address, as one number: the moment at which it will be full again. It must never grow without bound, and it
knows nothing of keys: whoever asks it has found the key to be wrong. So a right key never waits, whatever else comes from its
address (a whole house behind one proxy); what keeps a key from being guessed is its length.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

BURST = 10
STEP_S = 6.0
ADDRESSES_MAX = 4096
"""Half a megabyte. The address whose last try is the longest ago is forgotten first."""


class Tries:
    """In memory, of one router: a restart forgives."""

    def __init__(self, addresses_max: int = ADDRESSES_MAX) -> None:
        self._full_at: dict[str, float] = {}
        self._max = addresses_max

    def wait_s(self, host: str, now: float) -> float:
        """Counts one wrong key; 0 where it was within the limit, else the seconds until the next one will be."""
        address = neighbourhood(host)
        full_at = max(self._full_at.pop(address, now), now)
        over_s = full_at + STEP_S - now - BURST * STEP_S
        self._full_at[address] = full_at if over_s > 0 else full_at + STEP_S
        while len(self._full_at) > self._max:
            del self._full_at[next(iter(self._full_at))]
        return max(0.0, over_s)

    def __len__(self) -> int:
        return len(self._full_at)


def neighbourhood(host: str) -> str:
    """Who has one IPv6 address has 2^64: its first half counts. IPv4 as it is, also where it comes as IPv6."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(IPv6Address(int(address) >> 64 << 64))
