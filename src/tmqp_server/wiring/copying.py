"""Copies of this server's store for other servers of its group, which fetch them in blocks.

A copy is made like a backup, in the data directory.  There is one at a time: it is removed on
request, when nobody has read from it for a while, and when the server starts.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, final

import anyio
import anyio.to_thread

from tmqp.references import DATABASE_NAME
from tmqp_server.wiring.backing_up import run_backup

__all__ = ["BLOCK_BYTES", "Copies"]

logger = logging.getLogger("tmqp_server.replication")

#: How many bytes are read at once.
BLOCK_BYTES: Final = 1 << 20
_FOLDER: Final = "copy"
#: A copy is removed after nobody has read from it for this long, in seconds.
_MOST_IDLE_S: Final = 60.0
_LOOK_S: Final = 5.0

_Start = Callable[[Callable[[], Coroutine[Any, Any, None]]], None]


@final
class _BlockRead:
    """A block that is being read: ``data`` is valid when ``done``; None if it cannot be read."""

    def __init__(self) -> None:
        self.done = False
        self.data: bytes | None = None


@final
class Copies:
    """The copies of one server.

    :param data: its data directory.
    :param group: the name of its group.
    :param start: runs a coroutine function in the background.

    Attributes: ``last``, the state of the current copy, None if there is none.
    """

    def __init__(self, data: str, group: str, start: _Start) -> None:
        self._data = data
        self._folder = Path(data) / _FOLDER
        self._group = group
        self._start = start
        self._used_at = 0.0
        self._is_given_up = False
        self.last: dict[str, Any] | None = None
        _discard(self._folder)  # of an earlier life

    def begin(self) -> bool:
        """Begin a copy; return False if there is one already."""
        if self.last is not None:
            return False
        made = self.last = {
            "id": uuid.uuid4().hex,
            "group": self._group,
            "running": True,
            "complete": False,
            "bytes": 0,
            "said": "",
        }
        self._used_at = time.monotonic()
        self._is_given_up = False

        async def run() -> None:
            await self._make(made)
            while self.last is made and self._is_wanted():  # noqa: ASYNC110 - time passes
                await anyio.sleep(_LOOK_S)
            self.remove(made["id"])

        self._start(run)
        return True

    def _is_wanted(self) -> bool:
        return not self._is_given_up and time.monotonic() < self._used_at + _MOST_IDLE_S

    async def _make(self, made: dict[str, Any]) -> None:
        complete, made["said"] = await run_backup(self._data, self._folder)
        if complete:
            made["bytes"] = (self._folder / DATABASE_NAME).stat().st_size
            logger.info("a copy for another server of the group is complete")
        else:
            logger.error("a copy for another server of the group failed: %s", made["said"])
        self._used_at = time.monotonic()
        made["complete"], made["running"] = complete, False

    def read(self, name: str, offset: int) -> _BlockRead | None:
        """Begin to read a block of a complete copy; return None if there is no such copy."""
        last = self.last
        if last is None or last["id"] != name or not last["complete"]:
            return None
        self._used_at = time.monotonic()
        block = _BlockRead()

        async def run() -> None:
            block.data = await anyio.to_thread.run_sync(_read, self._folder, offset)
            block.done = True

        self._start(run)
        return block

    def remove(self, name: str) -> bool:
        """Remove a copy, as soon as it is complete; return False if there is none of this name."""
        last = self.last
        if last is None or last["id"] != name:
            return False
        self._is_given_up = True
        if not last["running"]:
            _discard(self._folder)
            self.last = None
        return True


def _discard(folder: Path) -> None:
    """Remove a copy, if there is one."""
    if folder.exists():
        import shutil  # noqa: PLC0415 - it loads the compressors of archives

        shutil.rmtree(folder, ignore_errors=True)


def _read(folder: Path, offset: int) -> bytes | None:
    try:
        with (folder / DATABASE_NAME).open("rb") as file:
            return os.pread(file.fileno(), BLOCK_BYTES, offset)
    except OSError as error:
        logger.warning("a copy cannot be read: %s", error)
        return None
