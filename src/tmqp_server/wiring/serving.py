"""A server in its own process, controlled by signals.

The first SIGTERM drains and stops the server, the first SIGINT stops it; after a second one of
either, it no longer waits for clients.  SIGHUP makes it reload its configuration.
"""

from __future__ import annotations

import functools
import logging
import signal
from collections.abc import AsyncIterator, Callable
from typing import Final

import anyio

from tmqp_server.config import ServerConfig
from tmqp_server.io.notifying import Notifier, supervised
from tmqp_server.wiring.app import Server
from tmqp_server.wiring.reloading import reload_config
from tmqp_server.wiring.running import running

__all__ = ["serve_forever"]

logger = logging.getLogger("tmqp_server")

#: The signals that stop a server.
_ENDING: Final = (signal.SIGINT, signal.SIGTERM)
#: The signal that reloads the configuration; not every system has it.
_RELOAD: Final[signal.Signals | None] = getattr(signal, "SIGHUP", None)


async def serve_forever(
    config: ServerConfig,
    started: Callable[[Server], None],
    read: Callable[[], ServerConfig] | None = None,
) -> None:
    """Run a server until SIGINT or SIGTERM, or until a client makes it drain and stop; the process
    should then end, because it ignores further signals.

    :param started: called once, when the server listens.
    :param read: reloads the configuration on SIGHUP; if None, SIGHUP ends the process.

    A supervisor is notified when the server is ready, reloads and stops (:class:`Notifier`).
    """
    reloading = [] if read is None or _RELOAD is None else [_RELOAD]
    with anyio.open_signal_receiver(*_ENDING, *reloading) as signals:
        async with running(config) as server:
            if read is not None and _RELOAD is not None:
                # By the signal, so that it is not done in the middle of a turn.
                server.world.reload = functools.partial(signal.raise_signal, _RELOAD)
            started(server)
            async with (
                supervised(f"serving on {server.served}") as notifier,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(_heed, signals, server, read, notifier)
                await server.wait_until_over()
                tasks.cancel_scope.cancel()
        if hasattr(signal, "pthread_sigmask"):
            # Another one may come when they are no longer received, and not yet ignored.
            signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)


async def _heed(
    signals: AsyncIterator[signal.Signals],
    server: Server,
    read: Callable[[], ServerConfig] | None,
    notifier: Notifier,
) -> None:
    """Carry out what signals request, until the process ends."""
    is_ending = False
    async for number in signals:
        name = signal.Signals(number).name
        if read is not None and number == _RELOAD:
            with notifier.reloading():
                reload_config(server, read)
        elif is_ending:
            logger.warning("%s: ending at once", name)
            server.stop(at_once=True)
        else:
            is_ending = True
            logger.info("%s: stopping", name)
            notifier.stopping()
            action = "drain" if number == signal.SIGTERM else "stop"
            server.audit.own(name, action, 200, anyio.current_time())
            if number == signal.SIGTERM:
                server.drain(stops=True)
            else:
                server.stop()
