"""Rebuilds a stopped server of a group: its disk gets a copy of another server's disk.

``replication.rebuilding`` decides what to ask the log, and whether a copy is usable.  The copy
comes from the HTTP API of another server of the group, in blocks; it is verified before it replaces
the old contents.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from tmqp.references import DATABASE_NAME
from tmqp_server.admin.api.table import PREFIX
from tmqp_server.replication.rebuilding import COPYING, READY, Rebuilding
from tmqp_server.settings.replication import ReplicationConfig
from tmqp_server.storage.log import Entries, ReadEntries, SharedLog, UnansweredError
from tmqp_server.storage.port import StoreError
from tmqp_server.storage.sqlite import FILES_BESIDE
from tmqp_server.storage.sqlite.replicated import ReplicatedStore
from tmqp_server.storage.sqlite.schema import (
    DirectoryLock,
    prepare_directory,
    sync_directory,
    translated,
)

__all__ = ["RebuildError", "Rebuilder", "can_follow"]

#: The subdirectory of the data directory in which a copy is collected.
_FOLDER: Final = "rebuilt"
#: The files that SQLite has beside a database.
_OF_SQLITE: Final = (f"{DATABASE_NAME}-wal", f"{DATABASE_NAME}-shm")
#: How long another server may take for an answer, in seconds; how often it is asked whether its
#: copy is complete; and how often the need for the log is reported.
_PATIENCE_S: Final = 30.0
_LOOK_S: Final = 0.2
_HOLD_S: Final = 5.0
#: Before what failed is tried again, in seconds, and how often that is done: for longer than a
#: server keeps a copy that nobody fetches.
_PAUSE_S: Final = 1.0
_MOST_FAILURES: Final = 100
#: An answer has a block, or says something short.
_MOST_BYTES: Final = 2 << 20
#: The other server has too many requests.
_TOO_MANY: Final = 429


class RebuildError(StoreError):
    """No copy could be fetched; the old contents are unchanged."""


class _SourceError(Exception):
    """A server could not supply a copy."""


class _Told:
    """What a server reports about its copy.

    :raises KeyError, TypeError, ValueError: when the report is not valid.
    """

    def __init__(self, told: Any) -> None:
        self.name = str(told["id"])
        self.group = str(told["group"])
        self.said = str(told["said"])
        self.bytes = int(told["bytes"])
        self.running = told["running"] is True
        self.complete = told["complete"] is True


class _AdminDoor:
    """A client of another server's admin door.

    :raises _SourceError: by all methods, when the server does not answer as it should.
    """

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = kind(parts.netloc, timeout=_PATIENCE_S)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def ask(self, method: str, path: str) -> bytes:
        """Send a request, and return the answer's body; waits and repeats it while there are too
        many.
        """
        while True:
            try:
                self._connection.request(method, PREFIX + path, headers=self._headers)
                answer = self._connection.getresponse()
                data = answer.read(_MOST_BYTES)
            except (OSError, HTTPException) as error:
                raise _SourceError(str(error) or type(error).__name__) from error
            if not answer.isclosed():
                raise _SourceError("its answer is too long")
            if answer.status < 300:
                return data
            if answer.status != _TOO_MANY:
                raise _SourceError(f"{answer.status} {_detail_of(data) or answer.reason}")
            time.sleep(_LOOK_S)

    def tell(self, method: str) -> _Told:
        """Send a request about the copy, and return its state."""
        try:
            return _Told(json.loads(self.ask(method, "/server/copy")))
        except (ValueError, KeyError, TypeError) as error:
            raise _SourceError(f"its answer cannot be read: {error!r}") from error


def _detail_of(data: bytes) -> str:
    with suppress(ValueError, AttributeError):
        return str(json.loads(data).get("detail", ""))
    return ""


class Rebuilder:
    """Replaces the store in a server's directory with a copy.

    :param config: the server's part in its group; the servers in its ``copies`` are asked in turn.
    :param address: where clients reach the server.
    :param told: gets progress messages.
    """

    def __init__(
        self,
        config: ReplicationConfig,
        address: str,
        directory: Path,
        log: SharedLog,
        told: Callable[[str], None],
    ) -> None:
        self._config = config
        self._directory = directory
        self._log = log
        self._tell = told
        self._run = Rebuilding(config.node, address)
        self._held_at = 0.0
        self._failures = 0

    def rebuild(self) -> int:
        """Fetch a copy and replace the store with it.

        :return: the last entry of the log that the copy has.
        :raises RebuildError: when no server supplies a copy, or the log does not answer.
        :raises StoreError: when the directory is in use, or cannot be written to.
        """
        part = self._directory / _FOLDER
        number = 0
        with _locked(self._directory), translated(self._directory, "rebuild"):
            try:
                while self._run.state != READY:
                    if self._run.state == COPYING:
                        number = self._copy(part)
                    else:
                        self._ask()
                self._put_in_place(part)
            finally:
                shutil.rmtree(part, ignore_errors=True)
        return number

    def _ask(self) -> None:
        run = self._run
        is_compared = run.state > COPYING
        try:
            run.answered(self._log.ask(run.request))
        except UnansweredError as error:
            self._failed(f"the log does not answer: {error}")
        else:
            if is_compared and run.state != READY:
                self._failed("the log has lost what follows the copy")

    def _failed(self, reason: str) -> None:
        self._tell(reason)
        self._failures += 1
        if self._failures >= _MOST_FAILURES:
            raise RebuildError(f"given up after {_MOST_FAILURES} attempts; last error: {reason}")
        time.sleep(_PAUSE_S)

    # --- The copy --------------------------------------------------------------------------------

    def _copy(self, part: Path) -> int:
        """Fetch a copy from the next server."""
        copies = self._config.copies
        url = copies[self._failures % len(copies)]
        shutil.rmtree(part, ignore_errors=True)
        prepare_directory(part)
        try:
            with closing(_AdminDoor(url, self._config.token)) as source:
                self._fetch(source, part / DATABASE_NAME)
            number = _verified(part)
        except (_SourceError, StoreError) as error:
            self._failed(f"no copy from {url}: {error}")
            return 0
        self._run.copied(number)
        return number

    def _fetch(self, source: _AdminDoor, file: Path) -> None:
        made = source.tell("POST")
        path = f"/server/copy/{quote(made.name, safe='')}"
        try:
            self._wait(source, made)
            with file.open("wb") as part:
                size = source.tell("GET").bytes
                while part.tell() < size:
                    self._hold_on()
                    block = source.ask("GET", f"{path}?offset={part.tell()}")
                    if not block:
                        raise _SourceError(f"its copy ends at {part.tell()} of {size} bytes")
                    part.write(block)
                part.flush()
                os.fsync(part.fileno())
        finally:
            with suppress(_SourceError):
                source.ask("DELETE", path)

    def _wait(self, source: _AdminDoor, made: _Told) -> None:
        """Wait until a copy is complete."""
        if made.group != self._config.group:
            raise _SourceError(f"it is in the group {made.group}")
        name = made.name
        while made.running:
            self._hold_on()
            time.sleep(_LOOK_S)
            made = source.tell("GET")
        if not made.complete or made.name != name:
            raise _SourceError(made.said or "its copy no longer exists")

    def _hold_on(self) -> None:
        """Report to the log from time to time, so that it keeps what this server needs."""
        now = time.monotonic()
        if now < self._held_at + _HOLD_S:
            return
        self._held_at = now
        self._run.hold_on()
        with suppress(UnansweredError):  # it is held for much longer
            self._log.ask(self._run.request)

    def _put_in_place(self, part: Path) -> None:
        """Replace the store with the copy; after an interruption here, begin again."""
        for name in (*_OF_SQLITE, *FILES_BESIDE):
            (self._directory / name).unlink(missing_ok=True)
        (part / DATABASE_NAME).rename(self._directory / DATABASE_NAME)
        sync_directory(self._directory)


def _verified(part: Path) -> int:
    """Verify a copy, and return the last entry of the log that it has.

    :raises StoreError: when it is damaged, or not a replicated store.
    """
    with closing(ReplicatedStore(part, floor_bytes=0)) as store:
        problems = store.check().problems
        if problems:
            raise StoreError(f"it is damaged: {problems[0]}")
        return store.carried


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    prepare_directory(directory)
    lock = DirectoryLock(directory)
    try:
        yield
    finally:
        lock.release()


def can_follow(directory: Path, log: SharedLog) -> bool:
    """Whether the log still has the entry after the last one that a server's disk has.

    :raises StoreError: when the directory is in use, or its store cannot be read.
    :raises UnansweredError: when the log does not answer.
    """
    with closing(ReplicatedStore(directory, floor_bytes=0)) as store:
        carried = store.carried
    answer = log.ask(ReadEntries(carried, 1))
    assert isinstance(answer, Entries), "a read has one kind of answer"
    return answer.first <= carried + 1
