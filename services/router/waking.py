"""Wakes a sleeping machine as the settings say: a command of the user's, or a Wake-on-LAN packet.

Answers "how is it told?". Whom to wake and when is the dispatcher's (``dispatch.absent``). What a command says goes to the log;
that the machine is awake is heard from its worker, never assumed.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Mapping
from contextlib import suppress

from services.runtime.logs import logger
from services.runtime.settings import Wake

log = logger("router")

COMMAND_S = 60.0
"""After this a command is ended: it should send something, not wait for the machine."""
SAID_MAX = 500
PACKETS = 3
"""A broadcast is not acknowledged, and a sleeping card listens at 10 Mbit/s: one may be missed."""


class Waker:
    """``targets`` are the settings' ``[wake.<worker name>]``."""

    def __init__(self, targets: Mapping[str, Wake]) -> None:
        self._targets = dict(targets)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._targets)

    async def wake(self, name: str) -> None:
        """Never raises for what a command or the network does: the task waits either way, and the log says why in vain."""
        target = self._targets[name]
        try:
            if target.mac is not None:
                # off the loop: the address may be a name, and asking for it may take seconds
                await asyncio.to_thread(send_magic, target.mac, target.broadcast, target.port)
            if target.command is not None:
                await _run(name, target.command)
        except OSError as error:
            log.warning("a machine could not be woken", action="wake_failed", worker=name, error=str(error))
        else:
            log.info("told a machine to wake", action="wake_sent", worker=name)


def magic_packet(mac: str) -> bytes:
    """Six bytes of ones, then the address sixteen times (AMD's Magic Packet Technology white paper, 1995)."""
    return b"\xff" * 6 + bytes.fromhex(re.sub("[:-]", "", mac)) * 16


def send_magic(mac: str, broadcast: str, port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        for _ in range(PACKETS):
            out.sendto(magic_packet(mac), (broadcast, port))


async def _run(name: str, command: str) -> None:
    """Raises OSError where it cannot start, says so or takes too long."""
    process = await asyncio.create_subprocess_shell(
        command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(COMMAND_S):
            said, _ = await process.communicate()
    except TimeoutError:
        raise OSError(f"the command was not done after {COMMAND_S:.0f} s and was ended") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        words = said[-SAID_MAX:].decode(errors="replace").strip()
        raise OSError(f"the command ended with {process.returncode}: {words or 'it said nothing'}")
