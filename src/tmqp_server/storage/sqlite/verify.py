"""Owns the verification of a whole database: each row, each block, and that each has its other."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from tmqp_server.storage.port import CheckReport, DamageError, StoreError
from tmqp_server.storage.records import decode_block
from tmqp_server.storage.sqlite import topology
from tmqp_server.storage.sqlite.extents import Extent, extent_of
from tmqp_server.storage.sqlite.schema import translated

__all__ = ["verify"]

_MOST_PROBLEMS: Final = 1_000


def verify(db: sqlite3.Connection, directory: Path) -> CheckReport:
    """Read everything and compare it with its checksums."""
    report = CheckReport(0, 0, 0, 0, [])
    try:
        with translated(directory, "read"):
            for (line,) in db.execute("PRAGMA integrity_check(100)"):
                if line != "ok":
                    report.problems.append(f"the database file: {line}")
    except StoreError as error:
        report.problems.append(str(error))
    keys: set[int] = set()
    for load in (
        topology.load_meta,
        topology.load_channels,
        topology.load_queues,
        topology.load_routers,
        topology.load_cursors,
        topology.load_counters,
        topology.load_marks,
    ):
        try:
            with translated(directory, "read"):
                found = load(db)
        except StoreError as error:
            report.problems.append(str(error))
            continue
        if load is topology.load_channels:
            report.channels = len(found)
        elif load is topology.load_queues:
            report.queues = len(found)
            keys = {queue.key for queue in topology.load_queues(db)}
    try:
        with translated(directory, "read the blocks of"):
            _verify_blocks(db, keys, report)
    except StoreError as error:
        report.problems.append(str(error))
    return report


def _verify_blocks(db: sqlite3.Connection, keys: set[int], report: CheckReport) -> None:
    ids: set[int] = set()
    rows = db.execute(
        "SELECT blocks.id, key, first, last, count, size, newest_us, present, owed, high,"
        " transient, notes, crc, block"
        " FROM blocks LEFT JOIN bodies ON bodies.id = blocks.id ORDER BY blocks.id"
    )
    for *row, data in rows:
        if len(report.problems) >= _MOST_PROBLEMS:
            report.problems.append("more problems are not listed")
            return
        ids.add(row[0])
        try:
            extent = extent_of(tuple(row))
        except DamageError as error:
            report.problems.append(str(error))
            continue
        try:
            _verify_block(extent, data)
        except DamageError as error:
            report.problems.append(
                f"messages {extent.first} to {extent.last} of queue {extent.key}"
                f" (block {extent.id}): {error}"
            )
            continue
        if extent.key in keys:
            report.messages += extent.owed.bit_count()
            report.bytes += extent.size
    for (number,) in db.execute("SELECT id FROM bodies"):
        if number not in ids:
            report.problems.append(f"block {number} is there, its record of what is owed is not")


def _verify_block(extent: Extent, data: object) -> None:
    if not isinstance(data, bytes):
        raise DamageError("the block is missing")
    block = decode_block(data)
    told = (extent.key, extent.first, extent.last, extent.count, extent.size)
    if (block.key, block.first, block.last, block.count, block.body_size) != told:
        raise DamageError("another block stands in its place")
    before = -1
    for place in range(block.count):
        message = block.message(place)
        if message.sequence <= before:
            raise DamageError(f"sequence {message.sequence} does not follow {before}")
        before = message.sequence
