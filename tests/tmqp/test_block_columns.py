"""Columns of a block: what is wanted of each message, and nothing else."""

from __future__ import annotations

import struct
from zlib import crc32

import pytest

from tmqp.block_columns import (
    COLUMN_ATTEMPTS,
    COLUMN_FLAGS,
    COLUMN_HOPS,
    COLUMN_PUT_BACKS,
    COLUMN_SEQUENCES,
    COLUMN_TIMESTAMP,
    COLUMN_VALUE,
    ColumnBlock,
    block_columns,
    split_columns,
)
from tmqp.block_writing import encode_block
from tmqp.blocks import BlockError, StoredMessage, decode_block, head_of

ALL = 63


def stored(sequence: int, payload: bytes) -> StoredMessage:
    body = b"head" * (sequence % 3) + payload + b"tail"
    offset = 4 * (sequence % 3)
    return StoredMessage(
        sequence, 1_000 + sequence, 7, 8, 257, sequence, 2, 3, offset, len(payload), body
    )


def projected(messages: list[StoredMessage], columns: int) -> bytes:
    return block_columns(decode_block(encode_block(9, messages)), columns)


def numbers(data: bytes, found: ColumnBlock, bit: int, kind: str) -> list[int]:
    return list(struct.unpack_from(f"<{found.count}{kind}", data, found.places[bit]))


@pytest.mark.parametrize("gap", [0, 5])
def test_each_column_holds_what_the_block_did(gap: int) -> None:
    payloads = [b"%d" % number * number for number in range(20)]
    messages = [
        stored(number + 1 + gap * (number > 9), payload) for number, payload in enumerate(payloads)
    ]
    data = projected(messages, ALL)
    (found,) = split_columns(data)
    assert head_of(data)[:4] == (9, 1, 20 + gap, 20)
    assert found.columns == ALL | (COLUMN_SEQUENCES if gap else 0)
    if gap:
        assert numbers(data, found, COLUMN_SEQUENCES, "Q") == [m.sequence for m in messages]
    assert numbers(data, found, COLUMN_TIMESTAMP, "q") == [m.timestamp_us for m in messages]
    assert numbers(data, found, COLUMN_FLAGS, "H") == [257] * 20
    assert numbers(data, found, COLUMN_ATTEMPTS, "H") == [m.attempts for m in messages]
    assert numbers(data, found, COLUMN_PUT_BACKS, "H") == [2] * 20
    assert numbers(data, found, COLUMN_HOPS, "H") == [3] * 20
    assert numbers(data, found, COLUMN_VALUE, "I") == [len(payload) for payload in payloads]
    assert data[found.payloads : found.end] == b"".join(payloads)


def test_what_is_not_wanted_is_not_there() -> None:
    messages = [stored(number, b"x" * 100) for number in range(1, 1_001)]
    whole = len(encode_block(1, messages))
    data = projected(messages, COLUMN_VALUE)
    assert len(data) == 64 + 1_000 * 104
    assert len(data) < whole * 0.65
    assert len(projected(messages, 0)) == 64
    both = data + projected(messages, COLUMN_TIMESTAMP)
    assert [found.columns for found in split_columns(both)] == [COLUMN_VALUE, COLUMN_TIMESTAMP]


def test_every_damaged_bit_is_found() -> None:
    data = projected([stored(1, b"ab"), stored(4, b"")], COLUMN_VALUE | COLUMN_TIMESTAMP)
    for place in range(len(data) * 8):
        broken = bytearray(data)
        broken[place // 8] ^= 1 << place % 8
        with pytest.raises(BlockError):
            split_columns(bytes(broken))
    for size in range(1, len(data)):
        with pytest.raises(BlockError):
            split_columns(data[:size])


def test_a_message_outside_of_its_block_is_damage() -> None:
    data = bytearray(encode_block(1, [stored(1, b"ab")]))
    data[64 + 44] = 200  # the size of its payload
    data[60:64] = struct.pack("<I", crc32(data[64:120], crc32(data[:60])))
    with pytest.raises(BlockError, match="its place is invalid"):
        block_columns(decode_block(bytes(data)), COLUMN_VALUE)
