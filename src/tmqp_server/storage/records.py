"""The server's side of blocks: encodes runs, and reports damage as the port defines it.

The format and its codec are in :mod:`tmqp.blocks` and :mod:`tmqp.block_writing`.
"""

from __future__ import annotations

from tmqp import blocks
from tmqp.block_columns import block_columns
from tmqp.block_writing import assembled_block
from tmqp.blocks import AS_COLUMNS, AS_INDEXES, Block, StoredMessage, index_end, others_in
from tmqp_server.storage.port import DamageError
from tmqp_server.storage.stored_runs import StoredRun

__all__ = [
    "columns_of",
    "decode_block",
    "decode_index",
    "encode_runs",
    "in_form",
    "survey",
]


def encode_runs(key: int, runs: list[StoredRun]) -> bytes:
    """Encode runs as one block, including their settled messages.

    :raises ValueError: as :func:`encode_block`.
    """
    if not runs:
        raise ValueError("a block needs at least one message")
    parts: list[bytes] = [b""]
    position = 0
    count = 0
    before = -1
    try:
        for run in runs:
            if run.first <= before:
                raise ValueError(f"sequence {run.first} does not follow {before}")
            before = run.last
            parts.append(run.index(position))
            position += len(run.bodies)
            count += run.count
    except OverflowError as error:
        raise ValueError(f"a message does not fit the format: {error}") from None
    payload = b"".join([run.bodies for run in runs])
    return assembled_block(key, count, runs[0].first, before, parts, payload)


def in_form(data: bytes, count: int, form: int) -> bytes:
    """A block in a form of :mod:`tmqp.blocks` (``AS_BLOCKS``).

    :raises DamageError: when columns are wanted, and the block is damaged.
    """
    if form == AS_INDEXES:
        return data[: index_end(count)]
    if form >= AS_COLUMNS:
        return columns_of(decode_block(data), form)
    return data


def columns_of(block: Block, form: int) -> bytes:
    """The columns of a block that a form wants; the block itself if it has messages of other doors:
    those doors must translate them, and a column of payloads would be wrong.
    """
    return block.data if others_in(block.data) else block_columns(block, form - AS_COLUMNS)


def survey(messages: list[StoredMessage]) -> tuple[int, int, int]:
    """The total size of the bodies of some messages, the union of their flags, and the newest
    timestamp.
    """
    size = flags = newest_us = 0
    for message in messages:
        size += len(message.body)
        flags |= message.flags
        timestamp_us = message.timestamp_us
        newest_us = max(newest_us, timestamp_us)
    return size, flags, newest_us


def decode_block(data: bytes) -> Block:
    """Read a whole block.

    :raises DamageError: when it is not a block, or damaged; the text says why.
    """
    return blocks.decode_block(data, DamageError)


def decode_index(data: bytes) -> Block:
    """Read the head and index of a block: everything except the bodies, which need not be there.

    :raises DamageError: as :func:`decode_block`.
    """
    return blocks.decode_index(data, DamageError)
