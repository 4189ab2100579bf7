"""The checks of ``tmqp.testing.reference``: the second codec, against the specification."""

from __future__ import annotations

import pytest

from tmqp import Limits
from tmqp.testing import header_block_bytes, read_frames, write_frame

FIELDS = (0x11, True, False, True, False, 16, "i", "s", "ü", 601, [("k", "v")], b"p")
DATA = b"\x91\xb0\x01\x01\x02\x59\x02\x01is\xc3\xbc\x05\x00k:v\r\np"


def test_a_frame_is_written_and_read_field_by_field() -> None:
    written = write_frame(
        0x11,
        first_acquirer=True,
        pending_response=True,
        message_id=b"i",
        source=b"s",
        target="ü".encode(),
        content_type=601,
        header_block=header_block_bytes([(b"k", b"v")]),
        payload=b"p",
    )
    assert written == DATA
    reading = read_frames(DATA * 2 + DATA[:-1])
    assert reading.frames == [FIELDS, FIELDS]
    assert reading.spans == [(0, len(DATA)), (len(DATA), 2 * len(DATA))]
    assert (reading.rest, reading.rule) == (len(DATA) - 1, None)


@pytest.mark.parametrize(
    ("size", "tier", "extended"),
    [
        (0, None, "00"),
        (252, None, "fc"),
        (253, None, "fdfd00"),
        (65_536, None, "fe00000100"),
        (1 << 32, None, "ff0000000001000000"),
        (4, 253, "fd0400"),
        (4, 254, "fe04000000"),
        (4, 255, "ff0400000000000000"),
    ],
)
def test_a_length_can_be_claimed_in_any_form(size: int, tier: int | None, extended: str) -> None:
    data = write_frame(payload=b"abcd", announced_payload_bytes=size, tier=tier)
    assert data[7:] == bytes.fromhex(extended) + b"abcd"


def test_a_block_can_be_claimed_longer_than_it_is() -> None:
    data = write_frame(header_block=b"k:v", announced_block_bytes=500)
    assert data == b"\x11\x30\0\0\0\0\0\0\xf4\x01k:v"
    assert write_frame(high_priority=True, pending_acknowledge=True)[:2] == b"\x51\x50"


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (write_frame(payload=b"p" * 11), "payload-limit"),
        (write_frame(source=b"p" * 11), "name-limit"),
        (write_frame(header_block=b"p" * 11), "header-limit"),
        (write_frame(source=b"\xff"), "utf8"),
        (write_frame(header_block=b"\xff"), "utf8"),
    ],
)
def test_a_broken_rule_ends_the_reading(data: bytes, rule: str) -> None:
    limits = Limits(max_payload_bytes=10, max_name_bytes=10, max_header_bytes=10)
    reading = read_frames(write_frame() + data + write_frame(), limits)
    assert (len(reading.frames), reading.rule, reading.rest) == (1, rule, 0)


@pytest.mark.parametrize("size", range(len(DATA)))
def test_what_is_incomplete_is_left(size: int) -> None:
    reading = read_frames(DATA[:size])
    assert (reading.frames, reading.rest, reading.rule) == ([], size, None)


def test_ping_and_pong_have_no_header() -> None:
    for kind in (0x09, 0x0A):
        (fields,) = read_frames(bytes([kind, 0xFF]) + bytes(6)).frames
        assert fields[5] == 63
        assert fields[10] == []


@pytest.mark.parametrize("tier", [253, 254, 255])
def test_an_extended_length_may_be_cut(tier: int) -> None:
    data = write_frame(payload=b"p", tier=tier)
    for size in range(len(data)):
        assert read_frames(data[:size]).rest == size
