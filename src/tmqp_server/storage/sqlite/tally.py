"""The tally of a database: how many records each table has, and the sum of their checksums.

Theory of operation.  A damaged record is detected by its own checksum.  A record that is *missing*,
is present twice, or comes from an older copy of a page is detected by the tally: it is updated with
every change and written with it, in the same transaction.  When a store is opened, the tables are
counted again; a table whose count or sum differs is damaged.
"""

from __future__ import annotations

import sqlite3
from typing import Final

__all__ = ["TABLES", "Tally", "count_records"]

#: The tables whose records are counted.
TABLES: Final = ("channels", "queues", "routers", "cursors", "counters", "marks", "blocks")

_MOST: Final = (1 << 64) - 1


class Tally:
    """The number of records of each table, and the sum of their checksums modulo 2**64."""

    __slots__ = ("_counts", "_sums")

    def __init__(self) -> None:
        self._counts = dict.fromkeys(TABLES, 0)
        self._sums = dict.fromkeys(TABLES, 0)

    def add(self, table: str, crc: int) -> None:
        """Count a record that was written."""
        self.count(table, 1, crc)

    def remove(self, table: str, crc: int) -> None:
        """Count a record that was deleted or replaced."""
        self.count(table, -1, -crc)

    def count(self, table: str, number: int, total: int) -> None:
        """Count several records with a sum of checksums; a negative number if they were deleted."""
        self._counts[table] += number
        self._sums[table] = self._sums[table] + total & _MOST

    def text(self) -> str:
        """The tally as it is stored."""
        return " ".join([f"{name}:{self._counts[name]}:{self._sums[name]}" for name in TABLES])

    def differences(self, written: str) -> list[str]:
        """Say what is wrong with each table, in one sentence each.

        :param written: the stored tally, from :meth:`text`.
        """
        expected: dict[str, tuple[int, int]] = {}
        for part in written.split():
            table, count, total = part.split(":")
            expected[table] = (int(count), int(total))
        found: list[str] = []
        for name in TABLES:
            there = (self._counts[name], self._sums[name])
            wanted = expected.get(name, (0, 0))
            if there[0] != wanted[0]:
                found.append(f"the table {name} has {there[0]} of {wanted[0]} records")
            elif there != wanted:
                found.append(f"the table {name} has records that are not the latest ones")
        return found


def count_records(db: sqlite3.Connection) -> Tally:
    """Count the tables of a database."""
    tally = Tally()
    for name in TABLES:
        # The sum makes SQLite read the table itself and not one of its indexes.
        count, total = db.execute(f"SELECT count(*), sum(crc) FROM {name}").fetchone()
        tally.count(name, count, int(total or 0))
    return tally
