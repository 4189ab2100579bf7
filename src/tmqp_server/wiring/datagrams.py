"""The UDP sockets of a server's doors."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import final

import anyio.abc

from tmqp.address import Address
from tmqp_server.io.datagram import DatagramListener, open_datagrams
from tmqp_server.io.shell import Shell
from tmqp_server.settings.doors import UdpSettings
from tmqp_server.shell.datagrams import DatagramMarks, Datagrams
from tmqp_server.wiring.doors import OpenDoor

__all__ = ["UdpSockets", "udp_name"]

logger = logging.getLogger("tmqp_server")


def udp_name(protocol: str, address: Address) -> str:
    """An address for datagrams as text: ``goms+udp://127.0.0.1:6543``."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{protocol}+udp://{host}:{address.port}"


def _marks_of(settings: UdpSettings) -> DatagramMarks:
    return DatagramMarks(
        settings.max_sessions,
        settings.max_sessions_per_address,
        settings.max_waiting_bytes,
        settings.idle_timeout_s,
    )


@final
class UdpSockets:
    """Opens, serves and closes the UDP sockets.

    :param doors: all doors; most of them do not use UDP.
    """

    def __init__(self, doors: list[OpenDoor]) -> None:
        self._doors = doors
        self._listeners: list[tuple[OpenDoor, DatagramListener]] = []
        self._datagrams: list[Datagrams] = []

    @property
    def sessions(self) -> int:
        """How many sources have a session."""
        return sum(each.count for each in self._datagrams)

    def addresses(self, protocol: str) -> list[str]:
        """The addresses on which the doors listen, with the actual ports; of all protocols if
        *protocol* is empty.
        """
        return [
            udp_name(door.protocol, listener.address)
            for door, listener in self._listeners
            if protocol in ("", door.protocol)
        ]

    async def listen(self) -> None:
        """Bind all sockets.

        :raises ListenError: when an address cannot be bound.
        """
        for door in self._doors:
            for address in door.settings.datagrams:
                self._listeners.append((door, await open_datagrams(address)))

    def serve(
        self, tasks: anyio.abc.TaskGroup, shell: Shell, new_number: Callable[[], int]
    ) -> None:
        """Start a task for each socket.

        :param new_number: returns the number of a new session.
        """
        for door, listener in self._listeners:
            assert door.by_datagrams is not None, "who listens for datagrams has a door for them"
            datagrams = Datagrams(shell.turn, door.by_datagrams, _marks_of(door.settings.udp))
            self._datagrams.append(datagrams)
            shell.turn.datagrams.append(datagrams)
            tasks.start_soon(
                functools.partial(
                    listener.serve,
                    shell,
                    datagrams,
                    new_number,
                    door.settings.allows,
                    door.settings.acts_as,
                )
            )
            logger.info("listening on %s", udp_name(door.protocol, listener.address))

    def close(self) -> None:
        """Stop reading; sessions can still say goodbye."""
        for _, listener in self._listeners:
            listener.close()

    def shut(self) -> None:
        """Close the sockets."""
        for _, listener in self._listeners:
            listener.shut()
