"""Notifies systemd, or another supervisor with its protocol, of the service's state: sd_notify(3).

A supervisor names a datagram socket in ``NOTIFY_SOCKET`` and reads assignments from it.  Without
it, nothing is sent.  The library libsystemd is not needed.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Final, final

import anyio

__all__ = ["Notifier", "supervised"]

logger = logging.getLogger("tmqp_server")

#: Of the watchdog's time: how often it is fed (sd_watchdog_enabled(3) recommends this).
_SHARE: Final = 0.5


@final
class Notifier:
    """Notifies a supervisor of the service's state; see :func:`supervised`.

    Attributes: ``watchdog_s``, the interval of the watchdog; 0 without one.

    :param environment: has the supervisor's socket and settings.
    :param status: one human-readable line, while the service runs.
    """

    def __init__(self, environment: Mapping[str, str], status: str) -> None:
        name = environment.get("NOTIFY_SOCKET", "")
        # A leading @ means the zero byte of Linux's abstract names; other kinds are not supported.
        self._address = "\0" + name[1:] if name[:1] == "@" else name if name[:1] == "/" else ""
        self._status = status
        self.watchdog_s = 0.0
        wanted = environment.get("WATCHDOG_USEC", "")
        # The environment is inherited; the wish may be for a parent of this process.
        ours = environment.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
        if self._address and wanted.isdecimal() and ours:
            self.watchdog_s = int(wanted) / 1_000_000

    def ready(self) -> None:
        """Report that the service is ready, after its start or after a reload."""
        self._send("READY=1", f"STATUS={self._status}")

    def stopping(self) -> None:
        """Report that the service has begun to stop."""
        self._send("STOPPING=1", "STATUS=stopping")

    @contextmanager
    def reloading(self) -> Iterator[None]:
        """Report that the service reloads its configuration, and afterwards that it is ready, in
        any case.
        """
        # What systemd compares with the time at which it asked for this.
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1_000}")
        try:
            yield
        finally:
            self.ready()

    async def feed(self) -> None:
        """Report that the event loop runs, at the watchdog's interval, for ever."""
        while self.watchdog_s > 0.0:
            self._send("WATCHDOG=1")
            await anyio.sleep(self.watchdog_s * _SHARE)

    def _send(self, *assignments: str) -> None:
        if not self._address:
            return
        # A line end would begin another assignment.
        text = "\n".join(each.replace("\n", " ") for each in assignments)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
                # A supervisor that does not read must not stop the event loop.
                sock.setblocking(False)
                sock.sendto(text.encode(), self._address)
        except OSError as error:
            logger.warning("cannot notify the supervisor of %s: %s", assignments[0], error)


@asynccontextmanager
async def supervised(status: str) -> AsyncIterator[Notifier]:
    """Notify the supervisor, if there is one, that the service is ready, alive, and then stopping.

    :param status: one human-readable line.
    """
    notifier = Notifier(os.environ, status)
    async with anyio.create_task_group() as tasks:
        notifier.ready()
        tasks.start_soon(notifier.feed)
        yield notifier
        # From now on systemd expects no watchdog messages.
        notifier.stopping()
        tasks.cancel_scope.cancel()
