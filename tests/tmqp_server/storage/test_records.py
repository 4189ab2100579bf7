"""The block: written and read, cut, flipped, lied about, and read by another tool."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.project import ROOT
from tests.tmqp_server.storage.stores import message
from tmqp.block_writing import encode_block
from tmqp.blocks import (
    ENTRY_SIZE,
    HEAD_SIZE,
    MAX_COUNT,
    BlockError,
    StoredMessage,
    index_end,
    split_blocks,
    split_indexes,
)
from tmqp_server.storage.port import DamageError
from tmqp_server.storage.records import decode_block, decode_index

U16 = st.integers(0, 2**16 - 1)
TIMES = st.integers(-(2**63), 2**63 - 1)


@st.composite
def some_messages(draw: st.DrawFn) -> list[StoredMessage]:
    sequences = sorted(draw(st.sets(st.integers(0, 2**62), min_size=1, max_size=40)))
    made = []
    for sequence in sequences:
        body = draw(st.binary(max_size=60))
        offset = draw(st.integers(0, len(body)))
        size = draw(st.integers(0, len(body) - offset))
        made.append(
            StoredMessage(
                sequence,
                draw(TIMES),
                draw(TIMES),
                draw(TIMES),
                draw(U16),
                draw(U16),
                draw(U16),
                draw(U16),
                offset,
                size,
                body,
            )
        )
    return made


@given(key=st.integers(0, 2**62), messages=some_messages())
def test_what_is_read_is_what_was_written(key: int, messages: list[StoredMessage]) -> None:
    data = encode_block(key, messages)
    block = decode_block(data)
    assert (block.key, block.count) == (key, len(messages))
    assert (block.first, block.last) == (messages[0].sequence, messages[-1].sequence)
    assert [repr(m) for m in block.messages()] == [repr(m) for m in messages]
    assert encode_block(key, block.messages()) == data
    for place, each in enumerate(messages):
        assert block.sequence(place) == each.sequence
        assert block.find(each.sequence) == place
        assert block.find(each.sequence + 1) == place + 1
        assert block.size(place) == len(each.body)
        assert block.timestamp_us(place) == each.timestamp_us
    assert block.find(0) == 0


@given(some=st.lists(some_messages(), max_size=4))
def test_blocks_one_after_another_are_told_apart(some: list[list[StoredMessage]]) -> None:
    data = b"".join(encode_block(3, messages) for messages in some)
    found = [[repr(m) for m in block.messages()] for block in split_blocks(data)]
    assert found == [[repr(m) for m in messages] for messages in some]
    for cut in range(1, min(len(data), 200)):
        if some and cut < len(encode_block(3, some[-1])):
            with pytest.raises(BlockError):
                split_blocks(data[:-cut])


@given(some=st.lists(some_messages(), max_size=4))
def test_heads_and_indexes_tell_all_but_the_bodies(some: list[list[StoredMessage]]) -> None:
    blocks = [encode_block(3, messages) for messages in some]
    data = b"".join(
        block[: index_end(len(messages))] for block, messages in zip(blocks, some, strict=True)
    )
    found = split_indexes(data)
    assert [
        (each.sequence, each.timestamp_us, each.payload_size, block.size(place))
        for block in found
        for place in range(block.count)
        for each in [block.message(place)]
    ] == [
        (each.sequence, each.timestamp_us, each.payload_size, len(each.body))
        for messages in some
        for each in messages
    ]
    for cut in range(1, index_end(len(some[-1])) if some else 1):
        with pytest.raises(BlockError):
            split_indexes(data[:-cut])
    if data:
        spoilt = data[:70] + bytes([data[70] ^ 1]) + data[71:]
        with pytest.raises(BlockError, match="the checksum of head and index"):
            split_indexes(spoilt)


def test_a_payload_is_a_part_of_the_body() -> None:
    assert StoredMessage(1, 0, 0, 0, 0, 0, 0, 0, 2, 3, b"..abc..").payload == b"abc"


def sample() -> bytes:
    chance = random.Random(1)
    messages = [message(n * n, chance.randbytes(n)) for n in range(1, 9)]
    return encode_block(77, messages)


def test_every_flipped_bit_is_detected() -> None:
    """D3: and said to be in this queue, unless the flip is where the queue is told."""
    data = sample()
    for place in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[place] ^= 1 << bit
            with pytest.raises(DamageError) as caught:
                decode_block(bytes(flipped))
            if place >= HEAD_SIZE:
                assert "messages 1 to 64 of queue 77" in str(caught.value)


def test_every_cut_is_detected() -> None:
    """D2."""
    data = sample()
    for size in range(len(data)):
        with pytest.raises(DamageError):
            decode_block(data[:size])
    with pytest.raises(DamageError, match="bytes, not"):
        decode_block(data + b"x")


def test_the_index_can_be_judged_alone() -> None:
    data = sample()
    end = index_end(8)
    block = decode_index(data[:end])
    assert [block.size(place) for place in range(8)] == list(range(1, 9))
    with pytest.raises(DamageError, match="the index has"):
        decode_index(data[: end - 1])
    with pytest.raises(DamageError, match="a head of 64 bytes"):
        decode_index(data[:63])


def test_a_lie_with_a_good_checksum_is_found() -> None:
    def lie(place: int, layout: str, value: int) -> bytes:
        data = bytearray(sample())
        struct.pack_into(layout, data, place, value)
        count = min(struct.unpack_from("<I", data, 8)[0], 8)
        crc = crc32(data[HEAD_SIZE : index_end(count)], crc32(data[:60]))
        struct.pack_into("<I", data, 60, crc)
        return bytes(data)

    for place, layout, value, reason in (
        (0, "<I", 0, "not a block"),
        (4, "<H", 2, "version 2"),
        (8, "<I", 0, "invalid"),
        (8, "<I", MAX_COUNT + 1, "invalid"),
        (8, "<I", 1000, "the index has"),
        (12, "<I", 57, "invalid"),
        (40, "<Q", 2**63, "bytes, not"),
    ):
        with pytest.raises(DamageError, match=reason):
            decode_block(lie(place, layout, value))
    for offset in (32, 36, 40, 44):
        block = decode_block(lie(HEAD_SIZE + ENTRY_SIZE * 7 + offset, "<I", 2**32 - 1))
        block.message(6)
        with pytest.raises(DamageError, match="message 64 of queue 77: its place is invalid"):
            block.message(7)


def test_what_has_no_place_is_refused() -> None:
    def changed(**fields: int) -> StoredMessage:
        made = message(5)
        for name, value in fields.items():
            setattr(made, name, value)
        return made

    for bad in (
        [],
        [message(2), message(2)],
        [message(2), message(1)],
        [message(-1)],
        [changed(flags=2**16)],
        [changed(attempts=2**16)],
        [changed(put_backs=-1)],
        [changed(hops=2**16)],
        [changed(payload_offset=2**32)],
        [changed(payload_size=-1)],
        [changed(timestamp_us=2**63)],
        [changed(sequence=2**64)],
    ):
        with pytest.raises(ValueError):
            encode_block(1, bad)


def test_another_tool_reads_it_as_the_guide_says(tmp_path: Path) -> None:
    pytest.importorskip("numpy", reason="numpy is not installed")
    text = (ROOT / "docs" / "storage.md").read_text(encoding="utf-8")
    code = text.split("```python\n")[1].split("```")[0]
    path = tmp_path / "block"
    messages = [message(n, b"%d" % n, attempts=n) for n in range(1, 100)]
    path.write_bytes(encode_block(9, messages))
    names: dict[str, object] = {"path": path}
    exec(code, names)  # noqa: S102 - the guide's own example
    index, bodies = names["index"], names["bodies"]
    assert index["sequence"].tolist() == list(range(1, 100))  # type: ignore[index]
    assert index["attempts"].tolist() == list(range(1, 100))  # type: ignore[index]
    assert bodies[41] == b"42"  # type: ignore[index]
