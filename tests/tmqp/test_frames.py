"""The checks of ``tmqp.frames``: building, reading, replacing and printing one message."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp import Frame, FrameDecoder, LocalProtocolError, MessageType, encode
from tmqp.frames import encode_headers, parse_headers
from tmqp.testing import header_block_bytes, read_frames, write_frame
from tmqp.testing.strategies import frames, header_blocks, header_pairs, odd_frames

PING, PONG = int(MessageType.PING), int(MessageType.PONG)
PUSH = int(MessageType.QUEUE_MESSAGE)

FULL: dict[str, Any] = {
    "message_type": PUSH,
    "target": "orders",
    "content_type": 0x1234,
    "payload": b"tea",
    "message_id": "id-1",
    "source": "ünï",
    "headers": [("Key", "Value"), ("key", " a:b ")],
    "first_acquirer": True,
    "high_priority": True,
    "pending_response": True,
    "pending_acknowledge": True,
    "ttl": 31,
}


def decode(data: bytes) -> Frame:
    """The one frame of these bytes."""
    decoder = FrameDecoder()
    (frame,) = decoder.feed(data)
    assert decoder.error is None
    return frame


# --- Making --------------------------------------------------------------------------------------


def test_every_field_has_its_place_on_the_wire() -> None:
    frame = Frame.build(**FULL)
    block = b"Key:Value\r\nkey: a:b \r\n"
    names = "id-1ünïorders".encode()
    assert frame.raw == (
        bytes([0x80 | 0x40 | 0x11, 0x80 | 0x40 | 0x20 | 31, 4, 5, 6, 0x34, 0x12, 3])
        + names
        + bytes([len(block), 0])
        + block
        + b"tea"
    )


def test_every_field_reads_back() -> None:
    frame = Frame.build(**FULL)
    for read in (frame, decode(frame.raw)):
        assert read.type == PUSH
        assert read.first_acquirer
        assert read.high_priority
        assert read.pending_response
        assert read.pending_acknowledge
        assert read.has_header
        assert read.canonical
        assert read.ttl == 31
        assert read.message_id == "id-1"
        assert read.source == "ünï"
        assert read.target == "orders"
        assert read.content_type == 0x1234
        assert read.headers == FULL["headers"]
        assert read.header_block == b"Key:Value\r\nkey: a:b \r\n"
        assert read.payload == b"tea"
        assert read.payload_size == 3


def test_a_frame_of_nothing_has_the_defaults() -> None:
    frame = Frame.build(PUSH)
    assert frame.raw == b"\x11\x10\0\0\0\0\0\0"
    assert frame.fields() == ((PUSH, False, False, False, False, 16, "", "", "", 0, [], b""))
    assert not frame.has_header
    assert frame.header_block == b""
    assert frame.header("any") is None
    assert frame.last_header("any") is None


@pytest.mark.parametrize(
    ("size", "extended"),
    [
        (0, b"\0"),
        (252, b"\xfc"),
        (253, b"\xfd\xfd\0"),
        (65_535, b"\xfd\xff\xff"),
        (65_536, b"\xfe\0\0\1\0"),
        (70_000, b"\xfe\x70\x11\1\0"),
    ],
)
def test_the_payload_length_takes_the_smallest_form(size: int, extended: bytes) -> None:
    frame = Frame.build(PUSH, payload=b"z" * size)
    assert frame.raw[7 : 7 + len(extended)] == extended
    assert len(frame.raw) == 7 + len(extended) + size
    assert decode(frame.raw).payload_size == size
    assert frame.canonical


@pytest.mark.cold
@pytest.mark.parametrize("size", [0xFFFF_FFFF, 0x1_0000_0000, 2**63 - 1])
def test_a_payload_that_no_test_can_hold_takes_the_largest_form(size: int) -> None:
    """Only its length is asked, so a fake will do; the compiler asks the bytes themselves."""

    class Huge(bytes):
        def __len__(self) -> int:
            return size

    raw = Frame.build(PUSH, payload=Huge()).raw
    wide = size > 0xFFFF_FFFF
    assert raw[7:] == (b"\xff" if wide else b"\xfe") + size.to_bytes(8 if wide else 4, "little")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"message_type": -1}, "0 to 63"),
        ({"message_type": 64}, "0 to 63"),
        ({"content_type": -1}, "0 to 65535"),
        ({"content_type": 65_536}, "0 to 65535"),
        ({"ttl": -1}, "TTL must be"),
        ({"ttl": 32}, "0 to 31"),
        ({"message_type": PING, "ttl": 64, "headers": ()}, "0 to 63"),
        ({"message_type": PING}, "ping and pong"),
        ({"message_type": PONG}, "ping and pong"),
        ({"message_id": "x" * 256}, "message id is 256 bytes"),
        ({"source": "ß" * 128}, "source is 256 bytes"),
        ({"target": "x" * 300}, "target is 300 bytes"),
        ({"target": "\ud800"}, "target is not valid Unicode"),
        ({"headers": [("", "v")]}, "header key"),
        ({"headers": [("a:b", "v")]}, "header key"),
        ({"headers": [("a\r", "v")]}, "header key"),
        ({"headers": [("a\n", "v")]}, "header key"),
        ({"headers": [("a", "v\r\nforged:yes")]}, "value of header a"),
        ({"headers": [("a", "v\n")]}, "value of header a"),
        ({"headers": [("a", "\udfff")]}, "header block is not valid Unicode"),
        ({"headers": [("k", "v" * 65_532)]}, "65536 bytes, at most 65,535"),
    ],
)
def test_what_does_not_fit_the_wire_is_refused(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(LocalProtocolError, match=sentence.replace("(", r"\(")):
        Frame.build(**{**FULL, **wrong})


def test_the_largest_of_everything_fits() -> None:
    headers = [("k", "v" * 65_531)]
    frame = Frame.build(
        63, "t" * 255, 65_535, message_id="i" * 255, source="ß" * 127 + "s", headers=headers, ttl=31
    )
    read = decode(frame.raw)
    assert read == frame
    assert (read.message_id, read.source, read.target) == ("i" * 255, "ß" * 127 + "s", "t" * 255)
    assert read.headers == headers
    assert len(read.header_block) == 65_535


@pytest.mark.parametrize("kind", [PING, PONG])
def test_ping_and_pong_have_six_bits_of_hops_and_no_header(kind: int) -> None:
    frame = Frame.build(kind, ttl=63, pending_response=True, pending_acknowledge=True)
    assert frame.raw == bytes([kind, 0xFF, 0, 0, 0, 0, 0, 0])
    assert frame.ttl == 63
    assert not frame.has_header
    assert frame.fields()[5] == 63
    assert decode(frame.raw).canonical


# --- Headers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", []),
        ("a:b", [("a", "b")]),
        ("a:b\r\n", [("a", "b")]),
        ("a:b\r\nc:d\r\n", [("a", "b"), ("c", "d")]),
        ("a:b\r\na:c", [("a", "b"), ("a", "c")]),
        ("K: v ", [("K", " v ")]),
        ("k:", [("k", "")]),
        ("k:a:b", [("k", "a:b")]),
        (":v\r\n\r\nnothing\r\nk:v", [("k", "v")]),
        ("k:a\nb", [("k", "a\nb")]),
    ],
)
def test_a_header_block_is_read_line_by_line(text: str, pairs: list[tuple[str, str]]) -> None:
    assert parse_headers(text) == pairs


@given(header_pairs())
def test_headers_that_are_written_are_read_again(pairs: list[tuple[str, str]]) -> None:
    block = encode_headers(pairs)
    assert parse_headers(block.decode()) == pairs
    assert block == header_block_bytes([(key.encode(), value.encode()) for key, value in pairs])


def test_headers_are_found_whatever_their_case_and_the_first_or_last_wins() -> None:
    frame = Frame.build(PUSH, headers=[("A", "1"), ("b", "2"), ("a", "3")])
    assert frame.header("a") == frame.header("A") == "1"
    assert frame.last_header("a") == frame.last_header("A") == "3"
    assert frame.header("c") is frame.last_header("c") is None


@given(header_blocks())
def test_any_block_is_read_as_the_plain_reader_reads_it(block: bytes) -> None:
    data = write_frame(PUSH, header_block=block)
    reading = read_frames(data)
    decoder = FrameDecoder()
    read = decoder.feed(data)
    assert [frame.headers for frame in read] == [fields[10] for fields in reading.frames]
    assert all(frame.has_header and frame.header_block == block for frame in read)
    assert (None if decoder.error is None else decoder.error.rule) == reading.rule


# --- All at once ---------------------------------------------------------------------------------


@given(st.one_of(frames().map(encode), odd_frames()))
def test_fields_agree_with_the_properties_and_the_plain_reader(data: bytes) -> None:
    reading = read_frames(data)
    for frame, expected in zip(FrameDecoder().feed(data), reading.frames, strict=True):
        assert frame.fields() == expected
        assert expected == (
            frame.type,
            frame.first_acquirer,
            frame.high_priority,
            frame.pending_response,
            frame.pending_acknowledge,
            frame.ttl,
            frame.message_id,
            frame.source,
            frame.target,
            frame.content_type,
            frame.headers,
            frame.payload,
        )


@given(frames())
def test_a_frame_can_be_made_again_from_its_fields(frame: Frame) -> None:
    kind, first, high, response, acknowledge, ttl, *names, content_type, headers, payload = (
        frame.fields()
    )
    message_id, source, target = names
    assert frame == Frame.build(
        kind,
        target,
        content_type,
        payload,
        message_id=message_id,
        source=source,
        headers=headers,
        first_acquirer=first,
        high_priority=high,
        pending_response=response,
        pending_acknowledge=acknowledge,
        ttl=ttl,
    )


# --- Changing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"message_type": 0x12},
        {"target": "elsewhere"},
        {"target": ""},
        {"content_type": 0},
        {"message_id": "another-id"},
        {"source": "ß" * 127},
        {"ttl": 0},
        {"pending_response": False},
    ],
)
def test_replace_changes_that_field_and_no_other(change: dict[str, Any]) -> None:
    frame = Frame.build(**FULL)
    assert frame.replace(**change) == Frame.build(**{**FULL, **change})
    assert decode(frame.replace(**change).raw) == frame.replace(**change)


def test_replace_sets_the_wish_for_a_response() -> None:
    frame = Frame.build(PUSH)
    assert frame.replace(pending_response=True).pending_response
    assert not frame.replace(pending_response=True).replace(pending_response=False).pending_response
    assert frame.replace() == frame


def test_replace_appends_headers_and_keeps_the_block_as_it_came() -> None:
    block = b"odd line\r\nk: v\r\n"
    frame = decode(write_frame(PUSH, header_block=block, payload=b"p"))
    more = frame.replace(more_headers=[("Request-Id", "r")])
    assert more.header_block == block + b"Request-Id:r\r\n"
    assert more.headers == [("k", " v"), ("Request-Id", "r")]
    assert more.payload == b"p"
    assert Frame.build(PUSH).replace(more_headers=[("a", "b")]).headers == [("a", "b")]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"message_type": 64}, "0 to 63"),
        ({"content_type": 65_536}, "0 to 65535"),
        ({"ttl": 32}, "0 to 31"),
        ({"ttl": -1}, "0 to 31"),
        ({"target": "x" * 256}, "256 bytes"),
        ({"message_id": "\ud800"}, "not valid Unicode"),
        ({"source": "x" * 256}, "256 bytes"),
        ({"more_headers": [("a\r\n", "b")]}, "header key"),
        ({"more_headers": [("k", "v" * 65_520)]}, "at most 65,535"),
        ({"message_type": PING}, "ping and pong"),
    ],
)
def test_replace_refuses_what_does_not_fit(wrong: dict[str, Any], sentence: str) -> None:
    frame = Frame.build(**FULL)
    before = frame.raw
    with pytest.raises(LocalProtocolError, match=sentence):
        frame.replace(**wrong)
    assert frame.raw == before


def test_replace_keeps_the_six_bits_of_a_ping_and_no_others() -> None:
    ping = Frame.build(PING, ttl=63)
    assert ping.replace() == ping
    assert ping.replace(message_id="x").ttl == 63
    assert ping.replace(ttl=40).ttl == 40
    assert ping.replace(message_type=PONG).raw == b"\x0a\x3f" + bytes(6)
    with pytest.raises(LocalProtocolError, match=r"0 to 63"):
        ping.replace(ttl=64)
    with pytest.raises(LocalProtocolError, match="ping and pong"):
        ping.replace(more_headers=[("a", "b")])
    pushed = ping.replace(message_type=PUSH)
    assert (pushed.ttl, pushed.has_header) == (31, False)
    assert decode(pushed.raw) == pushed
    assert Frame.build(PUSH, ttl=7).replace(message_type=PING).raw == b"\x09\x07" + bytes(6)


@given(frames(), st.booleans(), st.booleans(), st.integers(0, 31))
def test_forwarding_rewrites_two_bytes_and_nothing_else(
    frame: Frame, first: bool, acknowledge: bool, ttl: int
) -> None:
    if frame.type in (PING, PONG):
        return
    data = frame.forwarded(first, acknowledge, ttl)
    assert data[2:] == frame.raw[2:]
    read = decode(data)
    assert (read.first_acquirer, read.pending_acknowledge, read.ttl) == (first, acknowledge, ttl)
    assert read.type == frame.type
    assert read.high_priority == frame.high_priority
    assert read.pending_response == frame.pending_response
    assert read.headers == frame.headers


def test_forwarding_unchanged_copies_nothing() -> None:
    frame = Frame.build(PUSH, payload=b"z" * 1000, first_acquirer=True, pending_acknowledge=True)
    assert frame.forwarded(True, True, 16) is frame.raw


# --- Canonical form ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "canonical"),
    [
        (write_frame(payload=b"p"), True),
        (write_frame(payload=b"p", tier=253), False),
        (write_frame(payload=b"p", tier=254), False),
        (write_frame(payload=b"p", tier=255), False),
        (write_frame(payload=b"p" * 252), True),
        (write_frame(payload=b"p" * 252, tier=253), False),
        (write_frame(payload=b"p" * 253), True),
        (write_frame(payload=b"p" * 65_535, tier=254), False),
        (write_frame(payload=b"p" * 65_536), True),
        (write_frame(payload=b"p" * 65_536, tier=255), False),
        (write_frame(header_block=b""), False),
        (write_frame(header_block=b"x"), True),
        (write_frame(PING, ttl=0x3F), True),
        (write_frame(PONG, ttl=0x3F, tier=253), False),
    ],
)
def test_canonical_is_what_encode_would_write(data: bytes, canonical: bool) -> None:
    frame = decode(data)
    assert frame.canonical is canonical
    assert (encode(frame) == data) is canonical
    assert decode(encode(frame)).fields() == frame.fields()
    assert decode(encode(frame)).canonical


# --- Being an object -----------------------------------------------------------------------------


def test_frames_are_equal_when_their_bytes_are() -> None:
    one, two = Frame.build(**FULL), decode(Frame.build(**FULL).raw)
    assert one == two
    assert hash(one) == hash(two)
    assert one != Frame.build(PUSH)
    assert one != one.raw
    assert len({one, two, Frame.build(PUSH)}) == 2


@pytest.mark.parametrize("frame", [Frame.build(**FULL), Frame.build(PUSH), Frame.build(PING)])
def test_a_frame_survives_copying_and_pickling(frame: Frame) -> None:
    pickled = pickle.loads(pickle.dumps(frame))  # noqa: S301 - our own bytes
    for again in (copy.copy(frame), copy.deepcopy(frame), pickled):
        assert again == frame
        assert again.fields() == frame.fields()


def test_a_frame_prints_what_matters() -> None:
    assert repr(Frame.build(**FULL)) == (
        "<Frame QUEUE_MESSAGE FHRA ttl=31 content_type=4660 id='id-1' source='ünï'"
        " target='orders' headers=[('Key', 'Value'), ('key', ' a:b ')] payload=b'tea'>"
    )
    assert repr(Frame.build(0x3F)) == (
        "<Frame 0x3f - ttl=16 content_type=0 id='' source='' target='' headers=[] payload=b''>"
    )


def test_a_hostile_frame_prints_short_and_without_control_characters() -> None:
    frame = Frame.build(
        PUSH,
        "\x1b[2J" * 60,
        payload=b"\x1b" * 100_000,
        message_id="\n" * 255,
        source="\x00" * 255,
        headers=[("k", "\x1b" * 60_000)],
    )
    printed = repr(frame)
    assert len(printed) < 1_200
    assert printed.isprintable()
    assert "60004 bytes" in printed
    assert "... 100000 bytes" in printed
    nearly = Frame.build(PUSH, headers=[("k", "\x1b" * 196)])
    assert len(repr(nearly)) < 1_200


def test_a_hello_prints_without_its_token() -> None:
    hello = Frame.build(MessageType.SERVER, "", 101, b"CONNECT /\r\nClient-Token: s3cret\r\n")
    assert "s3" not in repr(hello)
    assert "payload=33 bytes" in repr(hello)
