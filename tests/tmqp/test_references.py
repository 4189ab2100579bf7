"""References to blocks say which block, of which database, and that nothing was damaged."""

from __future__ import annotations

import pytest

from tmqp.blocks import BlockError, head_of
from tmqp.references import (
    REFERENCE_SIZE,
    database_mark,
    encode_reference,
    is_reference,
    read_reference,
)


def test_a_reference_tells_what_the_head_of_its_block_does() -> None:
    data = encode_reference(77, 5, key=9, first=3, last=12, count=8, body_size=1_000)
    assert len(data) == REFERENCE_SIZE
    assert is_reference(data, 0)
    assert head_of(data) == (9, 3, 12, 8, 1_000)
    found = read_reference(b"before" + data, 6)
    assert (found.number, found.mark) == (77, 5)
    assert (found.key, found.first, found.last) == (9, 3, 12)
    assert (found.count, found.body_size) == (8, 1_000)


def test_every_damaged_bit_of_a_reference_is_found() -> None:
    data = encode_reference(77, 5, 9, 3, 12, 8, 1_000)
    for place in range(REFERENCE_SIZE * 8):
        broken = bytearray(data)
        broken[place // 8] ^= 1 << place % 8
        with pytest.raises(BlockError):
            read_reference(bytes(broken), 0)
    with pytest.raises(BlockError, match="cut short"):
        read_reference(data[:-1], 0)


def test_a_copy_of_a_store_has_another_mark() -> None:
    assert len({database_mark("a", 1, 2), database_mark("a", 1, 3), database_mark("b", 1, 2)}) == 3
