"""Reads the broker's database on the broker's machine: blocks to which the broker has referred.

Theory of operation.  The broker sends references to the blocks of a range (:mod:`tmqp.references`),
and each is fetched from its database.  That is a SQLite database in write-ahead mode, so readers
and the broker do not block each other: a fetch is a separate transaction, which sees one state of
the database and pins it until the block is read.  Nothing is pinned between fetches, however slow
the consumer of the rows is, so the broker's log can always be reset.

A block that no longer exists, because it was merged with others or dropped, is requested again.
Nothing is ever written: the connection is read-only, for SQLite and for the system.
"""

from __future__ import annotations

import logging
import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tmqp.blocks import head_of, index_end
from tmqp.references import (
    APPLICATION_ID,
    DATABASE_NAME,
    FORMAT_VERSION,
    OLDEST_VERSION,
    BlockReference,
    database_mark,
)
from tmqp_spark.errors import DatabaseUnusable
from tmqp_spark.options import SourceOptions

__all__ = ["BrokerDatabase", "check_database", "open_database"]

_LOG: Final = logging.getLogger("tmqp_spark")
_BUSY_S: Final = 10.0
#: A small cache, because no page of a block is needed again after the block was read.
_CACHE_KIB: Final = 1_024


def open_database(options: SourceOptions) -> BrokerDatabase | None:
    """Open the database that a task reads from; None if ranges are read over the network.

    They are if ``journalDir`` is not set, or if this machine does not have the directory, because
    it is not the broker's machine; that is logged.

    :raises DatabaseUnusable: if the directory exists, but its database cannot be read.
    """
    if not options.journal_dir:
        return None
    path = Path(options.journal_dir)
    try:
        is_here = path.is_dir()
    except OSError as error:
        raise DatabaseUnusable(_refused(path, error)) from None
    if not is_here:
        _LOG.warning(
            "journalDir: %s has no directory %s: it is not the broker's machine, so what is here is"
            " read over the network",
            socket.gethostname(),
            path,
        )
        return None
    return BrokerDatabase(options.journal_dir)


def check_database(options: SourceOptions) -> None:
    """Check before a query begins that the directory ``journalDir``, if it exists here, can be
    read.

    :raises DatabaseUnusable: as :func:`open_database`.
    """
    database = open_database(options)
    if database is not None:
        database.close()


class BrokerDatabase:
    """The database in a broker's data directory, open for reading; close it in the same process.

    :param directory: the broker's data directory, on this machine.
    :raises DatabaseUnusable: if it cannot be read; the text has the reason and a remedy.

    ``mark`` is the mark in references to its blocks.
    """

    def __init__(self, directory: str) -> None:
        self.path = Path(directory) / DATABASE_NAME
        try:
            found = self.path.stat()
            # SQLite has the same error for every file that it cannot open.
            os.close(os.open(self.path, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            raise DatabaseUnusable(_refused(self.path, error)) from None
        with self._explained():
            self._db = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=ro",
                uri=True,
                timeout=_BUSY_S,
                isolation_level=None,
                check_same_thread=False,
            )
        try:
            self.mark = database_mark(self._store_id(), found.st_dev, found.st_ino)
        except BaseException:
            self._db.close()
            raise

    def __repr__(self) -> str:
        return f"<BrokerDatabase {self.path}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database; a second call does nothing."""
        self._db.close()

    def block(self, wanted: BlockReference) -> bytes | None:
        """Return the block of a reference; None if it no longer exists.

        :raises DatabaseUnusable: if the database cannot be read.
        """
        size = index_end(wanted.count) + wanted.body_size
        with self._explained():
            try:
                blob = self._db.blobopen("bodies", "block", wanted.number, readonly=True)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:  # no such row
                    return None
                raise
            with closing(blob):
                data = blob.read(size)
        told = (wanted.key, wanted.first, wanted.last, wanted.count, wanted.body_size)
        if len(data) != size or head_of(data) != told:
            return None
        return data

    def _store_id(self) -> str:
        with self._explained():
            self._db.execute("PRAGMA query_only = ON")
            self._db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            (application,) = self._db.execute("PRAGMA application_id").fetchone()
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if application != APPLICATION_ID:
                raise DatabaseUnusable(f"{self.path} is a database of another program; {_REMEDY}")
            if not OLDEST_VERSION <= version <= FORMAT_VERSION:
                raise DatabaseUnusable(
                    f"{self.path} has the format version {version}, this program knows"
                    f" {OLDEST_VERSION} to {FORMAT_VERSION}: install the tmqp of the broker, or"
                    " omit the option journalDir to read over the network"
                )
            row = self._db.execute("SELECT value FROM meta WHERE name = 'store_id'").fetchone()
        if row is None:
            raise DatabaseUnusable(f"{self.path} has no id: it is damaged")
        return str(row[0])

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise DatabaseUnusable(
                f"{self.path} cannot be read: {error}; omit the option journalDir to read over the "
                f"network"
            ) from error


_REMEDY: Final = (
    "journalDir is the data directory of the broker, as its option --data has it; leave the option"
    " out to read over the network"
)


def _refused(path: Path, error: OSError) -> str:
    if isinstance(error, PermissionError):
        return (
            f"{path} can only be read by the user that the broker runs as, and the process here "
            f"has the user id {os.geteuid()}: run Spark as that user, or omit the option "
            f"journalDir to read over the network"
        )
    return f"{path} cannot be read: {error.strerror}; {_REMEDY}"
