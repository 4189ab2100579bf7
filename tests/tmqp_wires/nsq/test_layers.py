"""The layers of NSQ's connections: recorded bytes, cuts, growth, damage; and kept messages."""

from __future__ import annotations

import zlib
from typing import Final

import cramjam
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from tmqp_wires.nsq import DeflateLayer, Layer, LayerError, SnappyLayer, stored, writing

#: What the original sent behind its answer to IDENTIFY: an OK in each form.
SNAPPY_OK: Final = bytes.fromhex("ff060000734e61507059010e000026982bcf00000006000000004f4b")
DEFLATE_OK: Final = bytes.fromhex("6260606063606060f0f7060000 00ffff000000ffff")


def deflate(level: int = 6) -> DeflateLayer:
    return DeflateLayer(
        zlib.compressobj(level, zlib.DEFLATED, -15),
        zlib.decompressobj(-15),
        zlib.Z_SYNC_FLUSH,
        zlib.error,
    )


def _compress(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def _decompress(data: bytes) -> bytes:
    return bytes(cramjam.snappy.decompress_raw(data))


def snappy(*, plain: bool = False) -> SnappyLayer:
    return SnappyLayer(None if plain else _compress, _decompress, crc32c)


def test_a_short_answer_is_sent_as_the_original_sent_it() -> None:
    assert snappy().encoded(writing.OK) == SNAPPY_OK
    assert snappy().decoded(SNAPPY_OK) == writing.OK
    assert deflate().decoded(DEFLATE_OK) == writing.OK


@pytest.mark.parametrize("kind", ["deflate", "snappy", "plain"])
@given(
    writes=st.lists(
        st.one_of(st.binary(min_size=1, max_size=300), st.just(b"ab" * 90_000)), max_size=4
    ),
    step=st.integers(1, 70_000),
)
def test_each_write_can_be_read_at_once_however_it_is_cut(
    kind: str, writes: list[bytes], step: int
) -> None:
    def make() -> Layer:
        return deflate() if kind == "deflate" else snappy(plain=kind == "plain")

    ours, theirs = make(), make()
    for data in writes:
        sent = ours.encoded(data)
        pieces = [sent[at : at + step] for at in range(0, len(sent), step)][:2_000]
        pieces.append(sent[2_000 * step :])
        assert b"".join([theirs.decoded(piece) for piece in pieces]) == data
    assert theirs.held_bytes == 0


def test_what_grows_too_much_is_refused_before_it_is_made() -> None:
    small = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = small.compress(b"\0" * 50_000_000) + small.flush(zlib.Z_SYNC_FLUSH)
    assert len(bomb) < 60_000
    with pytest.raises(LayerError, match="more than 100 times"):
        deflate().decoded(bomb)
    block = _compress(b"\0" * 65_536)
    chunk = bytes((0, *(len(block) + 4).to_bytes(3, "little")))
    chunk += snappy(plain=True).encoded(b"\0" * 65_536)[14:18] + block
    layer = snappy()
    layer.decoded(SNAPPY_OK[:10])
    assert layer.decoded(chunk) == b"\0" * 65_536
    assert len(layer.decoded(chunk * 3)) == 3 * 65_536


def test_one_message_of_zeros_is_no_bomb() -> None:
    data = b"\0" * 1_048_576
    assert deflate().decoded(deflate(9).encoded(data)) == data


@pytest.mark.parametrize(
    "bad",
    [
        SNAPPY_OK[10:],  # no identifier
        b"\xff\x05\x00\x00sNaPp",
        b"\xff\x06\x00\x00sNaPpX",
        SNAPPY_OK[:14] + b"\0\0\0\0" + SNAPPY_OK[18:],  # checksum
        SNAPPY_OK[:10] + b"\x02\x04\0\0abcd",  # a kind that must not be skipped
        SNAPPY_OK[:10] + b"\x01\x05\x00\x01",  # larger than a chunk
        SNAPPY_OK[:10] + b"\x00\x05\x2b\x01",
        SNAPPY_OK[:10] + b"\x01\x03\0\0abc",
        SNAPPY_OK[:10] + b"\x00\x08\0\0abcd\xff\xff\xff\x7f",  # tells a large size
        SNAPPY_OK[:10] + b"\x00\x09\0\0abcd\x80\x80\x80\x80\x80",  # tells no size
        SNAPPY_OK[:10] + b"\x00\x08\0\0abcd\x10abc",  # no block
    ],
)
def test_what_is_no_snappy_is_refused(bad: bytes) -> None:
    with pytest.raises(LayerError):
        snappy().decoded(bad)


def test_skipped_chunks_are_not_kept() -> None:
    layer = snappy()
    assert layer.decoded(SNAPPY_OK[:10] + b"\xfe\xff\xff\xff" + b"x" * 100) == b""
    assert layer.held_bytes == 0
    rest = 0xFFFFFF - 100
    assert layer.decoded(b"x" * rest + SNAPPY_OK[10:]) == writing.OK


def test_what_is_no_deflate_and_what_ends_is_refused() -> None:
    with pytest.raises(LayerError, match="not deflated data"):
        deflate().decoded(b"\xff\xff\xff\xff")
    ended = zlib.compressobj(6, zlib.DEFLATED, -15)
    with pytest.raises(LayerError, match="have ended"):
        deflate().decoded(ended.compress(b"x") + ended.flush())


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for layer in (deflate(), snappy()):
        for piece in (SNAPPY_OK[:10] + data, data):
            try:
                layer.decoded(piece)
            except LayerError:
                break


@given(
    st.integers(-(2**63), 2**63 - 1),
    st.binary(min_size=16, max_size=16),
    st.binary(max_size=64),
    st.binary(max_size=255),
    st.binary(max_size=50),
)
def test_what_is_kept_is_read_again(
    timestamp_ns: int, name: bytes, topic: bytes, source: bytes, body: bytes
) -> None:
    data = stored.stored_head(timestamp_ns, name, topic, source) + body
    found = stored.read(data)
    assert (found.timestamp_ns, found.message_id) == (timestamp_ns, name)
    assert (found.topic, found.source, found.body) == (topic, source, body)


@given(st.binary(max_size=60))
def test_what_is_no_kept_message_is_refused(data: bytes) -> None:
    whole = stored.stored_head(1, b"i" * 16, b"topic", b"source")
    for bad in (whole[:-1], b"\0" + whole[1:], b""):
        with pytest.raises(ValueError, match="of NSQ"):
            stored.read(bad)
    try:
        stored.read(data)
    except ValueError:
        return
    assert data[0] == 1
