"""The verification of a whole database: every row and every block, and whether any is missing."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from tmqp.blocks import HEAD_SIZE, head_of
from tmqp_server.storage.port import CheckReport, DamageError, StoreError
from tmqp_server.storage.records import decode_block
from tmqp_server.storage.sqlite import topology
from tmqp_server.storage.sqlite.extents import Extent, extent_of
from tmqp_server.storage.sqlite.schema import translated
from tmqp_server.storage.sqlite.tally import count_records

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
    for verify_part in (_verify_tally, _verify_blocks, _verify_bodies):
        try:
            with translated(directory, "read the blocks of"):
                verify_part(db, keys, report)
        except StoreError as error:
            report.problems.append(str(error))
    return report


def _verify_tally(db: sqlite3.Connection, keys: set[int], report: CheckReport) -> None:
    """Check that no record is missing; name the queues whose records are."""
    written = topology.load_meta(db).get("records")
    if written is None:
        return  # a store of an earlier release, that was not written to since
    problems = count_records(db).differences(str(written))
    report.problems.extend(problems)
    if any(problem.startswith("the table queues") for problem in problems):
        rows = db.execute("SELECT key, count(*), sum(count) FROM blocks NOT INDEXED GROUP BY key")
        for key, blocks, messages in rows:
            if key not in keys:
                report.problems.append(
                    f"queue {key} has no record; {blocks} blocks with {messages} messages belong"
                    " to it"
                )


def _verify_blocks(db: sqlite3.Connection, keys: set[int], report: CheckReport) -> None:
    rows = db.execute(
        "SELECT blocks.id, key, first, last, count, size, newest_us, present, owed, high,"
        " transient, notes, crc, block"
        " FROM blocks LEFT JOIN bodies ON bodies.id = blocks.id ORDER BY blocks.id"
    )
    for *row, data in rows:
        if len(report.problems) >= _MOST_PROBLEMS:
            report.problems.append("more problems are not listed")
            return
        try:
            extent = extent_of(tuple(row))
        except DamageError as error:
            report.problems.append(str(error))
            continue
        try:
            _verify_block(extent, data)
        except DamageError as error:
            report.problems.append(f"{extent.words} (block {extent.id}): {extent.why(error)}")
            continue
        if extent.key in keys:
            report.messages += extent.owed.bit_count()
            report.bytes += extent.size


def _verify_bodies(db: sqlite3.Connection, keys: set[int], report: CheckReport) -> None:
    """Name the bodies without a row, whose owed messages are unknown."""
    del keys
    rows = db.execute(
        "SELECT bodies.id, block FROM bodies LEFT JOIN blocks ON blocks.id = bodies.id"
        " WHERE blocks.id IS NULL"
    )
    for number, data in rows:
        if len(report.problems) >= _MOST_PROBLEMS:
            return
        what = ""
        if isinstance(data, bytes) and len(data) >= HEAD_SIZE:
            key, first, last, *_ = head_of(data)
            what = f" (messages {first} to {last} of queue {key})"
        report.problems.append(f"block {number}{what} has no record of its unsettled messages")


def _verify_block(extent: Extent, data: object) -> None:
    if not isinstance(data, bytes):
        raise DamageError("the block is missing")
    block = decode_block(data)
    told = (extent.key, extent.first, extent.last, extent.count, extent.size)
    if (block.key, block.first, block.last, block.count, block.body_size) != told:
        raise DamageError("another block is in its place")
    before = -1
    for place in range(block.count):
        message = block.message(place)
        if message.sequence <= before:
            raise DamageError(f"sequence {message.sequence} does not follow {before}")
        before = message.sequence
