"""Reloads the certificates of a running server when an operator requests it, or their files change.

Existing connections keep their certificates; new ones get the new certificates.  If the new files
cannot be used, nothing changes, and one line in the log says why.
"""

from __future__ import annotations

import logging
from typing import Final, Protocol

import anyio
import anyio.to_thread

from tmqp_server.config import ConfigError, ServerConfig
from tmqp_server.io.tls import TlsContexts, digest_of
from tmqp_server.wiring.auditing import Audit

__all__ = ["Certified", "follow_files", "renew"]

logger = logging.getLogger("tmqp_server.config")

#: How often to check whether the configuration now says to follow files, in seconds.
_IDLE_S: Final = 30.0
#: Seconds for which files must not change any more: there are two of them, and links between.
_SETTLED_S: Final = 1.0


class Certified(Protocol):
    """The parts of a server that concern its certificates.

    Attributes: ``config``, the current configuration; ``tls``; ``audit``.
    """

    config: ServerConfig
    tls: TlsContexts
    audit: Audit


def renew(server: Certified) -> str:
    """Read the files again.  Return what is wrong with them; empty if they are used now."""
    try:
        contexts = server.tls.renewed(server.config.tls)
    except (ConfigError, ValueError) as error:
        return str(error)
    server.tls.replace(server.config.tls, contexts)
    return ""


async def follow_files(server: Certified) -> None:
    """Renew the certificates whenever the contents of their files change, for ever."""
    seen = server.tls.digest
    while True:
        every_s = server.config.tls.watch_interval_s
        await anyio.sleep(every_s or _IDLE_S)
        if not every_s or not server.config.tls.certificate:
            continue
        found = await _digest(server)
        if found == seen:
            continue
        while True:
            await anyio.sleep(min(every_s, _SETTLED_S))
            before, found = found, await _digest(server)
            if found == before:
                break
        seen = found
        wrong = renew(server)
        server.audit.own("files", "renew-tls", 409 if wrong else 200, anyio.current_time())
        if wrong:
            logger.error(
                "the new certificate cannot be used, the old one stays in use: %s",
                wrong,
            )
        else:
            logger.info("the certificate files changed and were read again")


async def _digest(server: Certified) -> bytes:
    return await anyio.to_thread.run_sync(digest_of, server.config.tls)
