"""The file ``witness``: the minimum that the database and the log of recent writes must have.

Theory of operation.  Database and log can each lose their end without a trace: SQLite ignores what
follows a damaged page of its own log, and the last write of ``recent.log`` could have been cut off
by a crash.  So a third file records their progress.  It is written after each synced write, and is
not synced itself: it costs no sync, survives the end of the process, and after a power cut it may
be some seconds old: then it requires less than there is, never more.

Each transaction that carries recent writes into the database has a number, its *generation*.  The
database records the last one, each write of the log records the one that it follows, and the
witness has both.  A witness that is missing or cannot be read requires nothing.

::

    0  4   magic "TMQE"        24 8   the turn that follows the generation
    4  u32 CRC-32 of the rest  32 u64 generation
    8  16  id of the store     40 u64 number of the last write
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final
from zlib import crc32

from tmqp_server.storage.writes import Write

__all__ = ["WITNESS_NAME", "Known", "Testimony", "Witness", "disagreements", "read_witness"]

WITNESS_NAME: Final = "witness"

_MAGIC: Final = b"TMQE"
_HEAD: Final = struct.Struct("<4sI")
_BODY: Final = struct.Struct("<16s8sQQ")
_SIZE: Final = _HEAD.size + _BODY.size


class Testimony:
    """The contents of a witness."""

    __slots__ = ("generation", "number", "store_id", "turn")

    def __init__(self, store_id: str, turn: bytes, generation: int, number: int) -> None:
        self.store_id = store_id
        self.turn = turn
        self.generation = generation
        self.number = number


class Known:
    """What the database knows about itself and about the log.

    ``number`` is the last write that it has, ``turn`` the turn of the log after it, ``before`` the
    turn until then.  ``clean`` says that the log was carried entirely when the store was closed;
    ``is_counted`` that the format is 2 or later.
    """

    __slots__ = (
        "before",
        "clean",
        "generation",
        "is_counted",
        "keys",
        "last_key",
        "number",
        "store_id",
        "turn",
    )

    def __init__(
        self,
        store_id: str,
        number: int,
        turn: bytes,
        before: bytes,
        generation: int,
        clean: bool,
        is_counted: bool,
        last_key: int,
        keys: set[int],
    ) -> None:
        self.store_id = store_id
        self.number = number
        self.turn = turn
        self.before = before
        self.generation = generation
        self.clean = clean
        self.is_counted = is_counted
        self.last_key = last_key
        self.keys = keys


def read_witness(directory: Path) -> Testimony | None:
    """Read the witness of a directory; None if there is none or it cannot be read."""
    try:
        data = (directory / WITNESS_NAME).read_bytes()[:_SIZE]
    except OSError:
        return None
    if len(data) < _SIZE:
        return None
    magic, crc = _HEAD.unpack_from(data)
    if magic != _MAGIC or crc32(data[_HEAD.size :]) != crc:
        return None
    store_id, turn, generation, number = _BODY.unpack_from(data, _HEAD.size)
    return Testimony(store_id.hex(), turn, generation, number)


class Witness:
    """Writes the witness of a directory."""

    __slots__ = ("_file", "_id", "_path")

    def __init__(self, directory: Path) -> None:
        self._path = directory / WITNESS_NAME
        self._file = -1
        self._id = b""

    def begin(self, store_id: str) -> None:
        """Note the id of the store; call this before :meth:`testify`."""
        self._id = bytes.fromhex(store_id)

    def testify(self, turn: bytes, generation: int, number: int) -> None:
        """Record the progress of database and log.  A failure is ignored: nothing depends on it."""
        body = _BODY.pack(self._id, turn, generation, number)
        data = _HEAD.pack(_MAGIC, crc32(body)) + body
        with suppress(OSError):
            if self._file < 0:
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
                self._file = os.open(self._path, flags, 0o600)
            os.pwrite(self._file, data, 0)

    def sync(self) -> None:
        """Sync the file, when the store is closed."""
        if self._file >= 0:
            with suppress(OSError):
                os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


# --- Comparing -----------------------------------------------------------------------------------


def disagreements(
    known: Known, writes: list[Write], witness: Testimony | None, has_log: bool
) -> list[str]:
    """The contradictions between database, log and witness, one sentence each.

    :param writes: the writes of the log that the database does not have.
    """
    found: list[str] = []
    last = writes[-1].number if writes else known.number
    if not has_log and known.is_counted and known.generation and not known.clean:
        found.append(f"recent.log is missing: writes after number {known.number} are lost")
    newest = max([write.generation for write in writes], default=0)
    if newest > known.generation:
        found.append(_older("recent.log", newest, known.generation))
    elif known.is_counted and any(w.turn not in (known.turn, known.before) for w in writes):
        found.append("recent.log does not belong to this database")
    if witness is not None:
        if witness.store_id != known.store_id:
            found.append(
                f"messages.sqlite3 is the database of the store {known.store_id}, witness belongs"
                f" to the store {witness.store_id}"
            )
        else:
            found.extend(_denied(known, last, newest, witness))
    return found + _unknown_queues(known, writes)


def _denied(known: Known, last: int, newest: int, witness: Testimony) -> list[str]:
    if witness.generation > known.generation:
        if newest >= witness.generation:
            return []  # the log has said so
        return [_older("witness", witness.generation, known.generation)]
    if witness.generation == known.generation and witness.turn != known.turn:
        return ["messages.sqlite3 and witness are from different copies of this store"]
    if witness.number > last:
        first = f"write {last + 1} is" if witness.number == last + 1 else ""
        first = first or f"writes {last + 1} to {witness.number} are"
        return [f"recent.log: {first} missing at its end"]
    return []


def _older(what: str, wanted: int, there: int) -> str:
    return (
        f"messages.sqlite3 is older than {what}: it has {there} of {wanted} transactions"
        " (messages.sqlite3-wal is missing or damaged, or the file is an old copy)"
    )


def _unknown_queues(known: Known, writes: list[Write]) -> list[str]:
    """Report writes for queues that the database does not have, and remove their messages.

    This release never makes such writes; earlier ones made them after a queue was deleted.
    """
    counts: dict[int, int] = {}
    numbers: dict[int, list[int]] = {}
    for write in writes:
        batch = write.batch
        for key in [*batch.appended, *batch.settled, *[note.key for note in batch.notes]]:
            if key not in known.keys and (known.is_counted or key > known.last_key):
                counts[key] = counts.get(key, 0) + len(batch.appended.pop(key, ()))
                numbers.setdefault(key, []).append(write.number)
    return [
        f"recent.log: writes {numbers[key][0]} to {numbers[key][-1]} have {count} messages of"
        f" queue {key}, which the database does not have"
        for key, count in counts.items()
    ]
