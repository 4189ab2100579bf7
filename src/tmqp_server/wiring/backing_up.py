"""Backups that operators request from a running server.

A separate process makes the copy, with the command ``tmqp-server backup``: it needs only the
server's files, and takes no time of its event loop.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, final

import anyio

__all__ = ["Backups", "run_backup"]

logger = logging.getLogger("tmqp_server.backup")

_Start = Callable[[Callable[[], Coroutine[Any, Any, None]]], None]


@final
class Backups:
    """The backups of one server.

    :param data: its data directory; empty if it stores nothing.
    :param start: runs a coroutine function in the background.

    Attributes: ``last``, the state of the last backup, None if there was none; ``complete_s``, when
    the last complete one ended, in Unix time.
    """

    def __init__(self, data: str, start: _Start) -> None:
        self._data = data
        self._start = start
        self.last: dict[str, Any] | None = None
        self.complete_s: float | None = None

    @property
    def possible(self) -> bool:
        """Whether there is anything to copy."""
        return self._data != ""

    def begin(self, directory: str) -> bool:
        """Begin a backup in a new subdirectory; return False while another one is made."""
        if self.last is not None and self.last["running"]:
            return False
        now = time.time()
        name = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        target = Path(directory) / name
        for count in range(2, 100):
            if not target.exists():
                break
            target = Path(directory) / f"{name}-{count}"
        made = self.last = {
            "name": target.name,
            "running": True,
            "began_at_ms": int(now * 1_000),
            "ended_at_ms": None,
            "complete": False,
            "said": "",
        }

        async def run() -> None:
            await self._copy(target, made)

        self._start(run)
        return True

    async def _copy(self, target: Path, made: dict[str, Any]) -> None:
        made["complete"], made["said"] = await run_backup(self._data, target)
        made["running"] = False
        ended_s = time.time()
        made["ended_at_ms"] = int(ended_s * 1_000)
        if made["complete"]:
            self.complete_s = ended_s
            logger.info("backup %s is complete: %s", target, made["said"])
        else:
            logger.error("the backup %s failed: %s", target, made["said"])


async def run_backup(data: str, target: Path) -> tuple[bool, str]:
    """Copy a store in a separate process.

    :return: whether the copy is complete, and the output of the command.
    """
    command = [sys.executable, "-m", "tmqp_server", "backup", data, str(target)]
    try:
        done = await anyio.run_process(command, check=False)
    except OSError as error:
        return False, str(error)
    said = (done.stdout + b"\n" + done.stderr).decode("utf-8", "replace").split("\n")
    lines = [line.strip() for line in said if line.strip()]
    return done.returncode in (0, 1), "\n".join(lines)[-2_000:]
