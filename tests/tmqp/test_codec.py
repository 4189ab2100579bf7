"""The checks of ``tmqp.codec``: cutting a stream into frames, by the rules, within bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp import AbuseError, Frame, FrameDecoder, Limits, MessageType, RemoteProtocolError, encode
from tmqp.testing import (
    Seeded,
    check_chunking,
    check_no_escape,
    check_refused_from_head,
    check_round_trip,
    odd_frame,
    pieces,
    plain_frame,
    read_frames,
    write_frame,
)
from tmqp.testing.strategies import chunkings, frames, hostile_bytes, odd_frames

PUSH = int(MessageType.QUEUE_MESSAGE)
SMALL = Limits(max_payload_bytes=300, max_header_bytes=40, max_name_bytes=20)


def small_decoder() -> FrameDecoder:
    """A decoder whose every limit is within reach."""
    return FrameDecoder(SMALL)


def rule_of(decoder: FrameDecoder) -> str | None:
    """The slug of what ended decoding."""
    return None if decoder.error is None else decoder.error.rule


# --- Round trip (A1) -----------------------------------------------------------------------------


@given(frames())
def test_what_is_built_is_read_again(frame: Frame) -> None:
    check_round_trip(encode, FrameDecoder, frame)


@pytest.mark.parametrize("part", range(5))
def test_fifty_thousand_messages_round_trip(part: int) -> None:
    draw = Seeded(part)
    different = 0
    for _ in range(10_000):
        frame = plain_frame(draw)
        (read,) = FrameDecoder().feed(encode(frame))
        different += read.fields() != frame.fields() or encode(read) != frame.raw
    assert different == 0


def test_odd_frames_are_written_in_canonical_form_with_the_same_meaning() -> None:
    draw = Seeded(1)
    odd = 0
    for _ in range(10_000):
        data = odd_frame(draw)
        (frame,) = FrameDecoder().feed(data)
        written = encode(frame)
        (again,) = FrameDecoder().feed(written)
        assert frame.raw == data
        assert again.fields() == frame.fields()
        assert again.canonical
        assert encode(again) == written
        odd += written != data
    assert odd > 5_000


def test_a_canonical_frame_is_written_without_a_copy() -> None:
    frame = Frame.build(PUSH, payload=b"z" * 1000)
    assert encode(frame) is frame.raw


# --- Chunking (A2) -------------------------------------------------------------------------------


@given(st.data())
def test_any_cuts_of_any_frames_give_the_same(data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.one_of(frames().map(encode), odd_frames()), max_size=4))
    stream = b"".join(parts)
    check_chunking(FrameDecoder, stream, [data.draw(chunkings(stream)) for _ in range(5)])


@given(st.data())
def test_any_cuts_of_hostile_bytes_give_the_same_verdict(data: st.DataObject) -> None:
    stream = data.draw(hostile_bytes(st.one_of(frames().map(encode), odd_frames())))
    check_chunking(small_decoder, stream, [data.draw(chunkings(stream)) for _ in range(5)])
    check_chunking(FrameDecoder, stream, [data.draw(chunkings(stream)) for _ in range(5)])


def test_every_cut_of_frames_that_touch_the_limits_gives_the_same() -> None:
    draw = Seeded(3)
    for _ in range(150):
        stream = write_frame(
            message_id=b"i" * (15 + draw.below(10)),
            header_block=(None, b"", b"k:" + b"v" * (30 + draw.below(20)))[draw.below(3)],
            payload=b"p" * (290 + draw.below(20) if draw.one_in(2) else draw.below(5)),
            tier=(253, 254, 255)[draw.below(3)],
        )
        check_chunking(small_decoder, stream + write_frame())


def test_ten_thousand_random_streams_give_the_same_however_cut() -> None:
    draw = Seeded(4)
    for _ in range(10_000):
        parts = [odd_frame(draw) if draw.one_in(2) else plain_frame(draw).raw for _ in range(3)]
        stream = b"".join(parts)
        whole = FrameDecoder().feed(stream)
        decoder = FrameDecoder()
        cut = [frame for piece in pieces(draw, stream) for frame in decoder.feed(piece)]
        assert [frame.raw for frame in whole] == parts
        assert cut == whole
        assert decoder.buffered == 0


def test_a_large_frame_in_pieces_of_every_kind() -> None:
    first = Frame.build(PUSH, payload=bytes(range(256)) * 1_000, message_id="large")
    second = Frame.build(PUSH, payload=b"tail")
    stream = first.raw + second.raw
    for size in (1, 7, 1_000, 4_095, 4_096, 5_000, 65_536, 100_000):
        decoder = FrameDecoder()
        read: list[Frame] = []
        for start in range(0, len(stream), size):
            read += decoder.feed(stream[start : start + size])
        assert read == [first, second]
        assert decoder.buffered == 0
    # Small pieces behind large ones, and the other way round.
    decoder = FrameDecoder()
    read = decoder.feed(stream[:70_000])
    for start in range(70_000, 70_100):
        read += decoder.feed(stream[start : start + 1])
    read += decoder.feed(stream[70_100:150_000])
    read += decoder.feed(stream[150_000:])
    assert read == [first, second]


def test_names_that_look_alike_are_told_apart() -> None:
    """Consecutive frames may share their texts, but only where the border is the same."""
    names = [("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", ""), ("", ""), ("abc", "")]
    stream = b"".join(Frame.build(PUSH, target, source=source).raw for source, target in names)
    for chunks in ([stream], [stream[at : at + 1] for at in range(len(stream))]):
        decoder = FrameDecoder()
        frames = [frame for chunk in chunks for frame in decoder.feed(chunk)]
        assert [(frame.source, frame.target) for frame in frames] == names


# --- Limits and faults ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (write_frame(payload=b"p" * 301), "payload-limit"),
        (write_frame(payload=b"p", tier=255, announced_payload_bytes=2**63), "payload-limit"),
        (write_frame(message_id=b"i" * 21), "name-limit"),
        (write_frame(source=b"i" * 21), "name-limit"),
        (write_frame(target=b"i" * 21), "name-limit"),
        (write_frame(header_block=b"k:" + b"v" * 39), "header-limit"),
        (write_frame(message_id=b"\xff"), "utf8"),
        (write_frame(source=b"\xc3"), "utf8"),
        (write_frame(target=b"\xed\xa0\x80"), "utf8"),
        (write_frame(header_block=b"k:\xc0\x80"), "utf8"),
        # A character may not begin in one name and end in the next.
        (write_frame(message_id=b"a\xc3", source=b"\xbc"), "utf8"),
        (write_frame(source=b"\xe2\x82", target=b"\xac"), "utf8"),
        # The first rule in the order of the bytes wins, whatever else is wrong.
        (write_frame(message_id=b"i" * 21, payload=b"p" * 301), "payload-limit"),
        (write_frame(message_id=b"i" * 21, header_block=b"k:" + b"v" * 99), "name-limit"),
        (write_frame(message_id=b"\xff", header_block=b"k:" + b"v" * 99), "header-limit"),
    ],
)
def test_a_broken_rule_ends_decoding_and_is_named(data: bytes, rule: str) -> None:
    good = write_frame(payload=b"good")
    decoder = small_decoder()
    frames_before = decoder.feed(good + data + good)
    assert [frame.raw for frame in frames_before] == [good]
    assert rule_of(decoder) == rule
    assert decoder.buffered == 0
    assert isinstance(decoder.error, AbuseError) is (rule != "utf8")
    assert isinstance(decoder.error, RemoteProtocolError)
    assert int(decoder.error.code) == (400 if rule == "utf8" else 482)
    assert decoder.feed(good) == []
    decoder.hold(good)
    assert decoder.buffered == 0
    assert read_frames(good + data + good, SMALL).rule == rule
    check_chunking(small_decoder, good + data + good)
    check_no_escape(small_decoder, data)


@pytest.mark.parametrize(
    "data",
    [
        write_frame(payload=b"p" * 300),
        write_frame(payload=b"p" * 300, tier=255),
        write_frame(message_id=b"i" * 20, source=b"s" * 20, target=b"t" * 20),
        write_frame(header_block=b"k:" + b"v" * 38),
    ],
)
def test_what_is_at_a_limit_is_taken(data: bytes) -> None:
    decoder = small_decoder()
    (frame,) = decoder.feed(data)
    assert frame.raw == data
    assert decoder.error is None


@pytest.mark.parametrize(
    ("head", "rule"),
    [
        # The length alone decides: nothing of the frame behind it is needed, or kept.
        (b"\x11\x10\0\0\0\0\0\xfd\x2d\x01", "payload-limit"),
        (b"\x11\x10\0\0\0\0\0\xfe\xff\xff\xff\xff", "payload-limit"),
        (b"\x11\x10\0\0\0\0\0\xff" + (2**63).to_bytes(8, "little"), "payload-limit"),
        (b"\x11\x10\0\0\0\0\0\xff" + b"\xff" * 8, "payload-limit"),
        (b"\x11\x10\0\x15\0\0\0\x01", "name-limit"),
        (b"\x11\x30\x02\0\0\0\0\x01id\x29\0", "header-limit"),
        (b"\x11\x30\0\0\0\0\0\0\xff\xff", "header-limit"),
    ],
)
def test_a_limit_is_judged_at_the_last_byte_of_its_length(head: bytes, rule: str) -> None:
    check_refused_from_head(small_decoder, head, rule)


def test_the_second_frames_limit_does_not_wait_for_its_body() -> None:
    decoder = small_decoder()
    good = write_frame()
    assert decoder.feed(good + b"\x11\x10\0\0\0\0\0\xfd\x2d\x01") == [Frame.build(PUSH)]
    assert rule_of(decoder) == "payload-limit"


# --- Bounds on the caller's request --------------------------------------------------------------


def test_as_many_frames_as_asked_for_and_the_rest_later() -> None:
    some = [Frame.build(PUSH, payload=bytes([n])) for n in range(5)]
    stream = b"".join(frame.raw for frame in some)
    decoder = FrameDecoder()
    assert decoder.feed(stream, 0) == []
    assert decoder.feed(b"", 2) == some[:2]
    assert decoder.buffered == len(stream) // 5 * 3
    assert decoder.feed(b"", 1) == some[2:3]
    assert decoder.feed(b"") == some[3:]
    assert decoder.feed(b"") == []
    assert decoder.buffered == 0


def test_one_frame_of_a_stream_that_comes_in_pieces() -> None:
    first, second = Frame.build(PUSH, payload=b"a" * 400), Frame.build(PUSH, payload=b"b")
    stream = first.raw + second.raw
    for cut in range(1, len(stream)):
        decoder = FrameDecoder()
        read = decoder.feed(stream[:cut], 1)
        read += decoder.feed(stream[cut:], 1 - len(read))
        assert read == [first]
        assert decoder.buffered == len(second.raw)
        assert decoder.feed(b"") == [second]


@pytest.mark.parametrize("size", [0, 252, 253, 70_000])
def test_what_is_wanted_is_enough_and_never_more_than_is_missing(size: int) -> None:
    frame = Frame.build(PUSH, "c", 1, b"p" * size, headers=[("k", "v")])
    for cut in (1, 7, 8, 9, 12, len(frame.raw) // 2, len(frame.raw) - 1):
        decoder = FrameDecoder()
        assert decoder.wanted == 0
        given = 0
        sizes = [cut]
        while not decoder.feed(frame.raw[given : given + sizes[-1]]):
            given += sizes[-1]
            assert 0 < decoder.wanted <= len(frame.raw) - given
            sizes.append(decoder.wanted)
        assert len(sizes) <= 5
        assert decoder.wanted == 0


def test_held_bytes_are_not_looked_at_until_asked_for() -> None:
    frame = Frame.build(PUSH, payload=b"p" * 300)
    decoder = small_decoder()
    decoder.hold(b"")
    assert decoder.buffered == 0
    decoder.hold(frame.raw[:5])
    decoder.hold(frame.raw[5:])
    decoder.hold(b"\x11\x10\0\0\0\0\0\xff" + b"\xff" * 8)
    assert decoder.buffered == len(frame.raw) + 16
    assert decoder.error is None
    assert decoder.feed(b"") == [frame]
    assert rule_of(decoder) == "payload-limit"


def test_held_bytes_go_behind_what_is_left_of_a_chunk() -> None:
    some = [Frame.build(PUSH, payload=bytes([n])) for n in range(3)]
    stream = b"".join(frame.raw for frame in some)
    decoder = FrameDecoder()
    assert decoder.feed(stream[:12], 1) == some[:1]
    decoder.hold(stream[12:20])
    decoder.hold(stream[20:])
    assert decoder.feed(b"") == some[1:]


def test_new_bounds_hold_from_the_next_frame_on() -> None:
    decoder = FrameDecoder()
    big = write_frame(payload=b"p" * 400, header_block=b"k:" + b"v" * 100)
    decoder.restrict(400, 102, 502)
    assert len(decoder.feed(big)) == 1
    decoder.restrict(400, 102, 501)
    assert decoder.feed(big) == []
    assert rule_of(decoder) == "header-limit"
    decoder = FrameDecoder()
    assert decoder.feed(big[:-1]) == []
    decoder.restrict(399, 102, 502)
    assert decoder.feed(big[-1:]) == []
    assert rule_of(decoder) == "payload-limit"


def test_clearing_forgets_what_was_put_aside() -> None:
    decoder = FrameDecoder()
    decoder.feed(b"\x11\x10\0")
    assert decoder.buffered == 3
    decoder.clear()
    assert decoder.buffered == 0
    assert len(decoder.feed(write_frame())) == 1


# --- Verdicts on what is unusual (A8) and names (A9) ---------------------------------------------


@pytest.mark.parametrize("kind", range(64))
def test_every_type_is_cut_by_the_same_layout(kind: int) -> None:
    bare = kind in (MessageType.PING, MessageType.PONG)
    data = write_frame(kind, message_id=b"i", header_block=None if bare else b"k:v", payload=b"p")
    (frame,) = FrameDecoder().feed(data)
    assert (frame.type, frame.message_id, frame.payload) == (kind, "i", b"p")
    assert frame.has_header is not bare


@pytest.mark.parametrize(
    ("data", "hops", "payload"),
    [
        ("89ff000000000000", 63, b""),
        ("0900000000000000", 0, b""),
        ("0920000000000000", 32, b""),
        ("8aff000000000002ffff", 63, b"\xff\xff"),
        ("89ff01010100000168690a70", 63, b"p"),
        ("89ff000000ffff00", 63, b""),
    ],
)
def test_the_header_bit_of_ping_and_pong_is_time_to_live(
    data: str, hops: int, payload: bytes
) -> None:
    (frame,) = FrameDecoder().feed(bytes.fromhex(data))
    assert (frame.ttl, frame.payload, frame.has_header) == (hops, payload, False)
    assert encode(frame) == bytes.fromhex(data)


NAMES = [
    b"",
    b"a",
    b"x" * 255,
    "ß".encode() * 127 + b"s",
    b"a b",
    b"a;b",
    b"a\0b",
    b"a\r\nb",
    b"../../etc/passwd",
    b"@name:x",
    b"@type:*",
    "\N{LEFT-TO-RIGHT OVERRIDE}".encode(),
    "🐇".encode(),
    b"\xef\xbf\xbf",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("field", ["message_id", "source", "target"])
def test_a_name_is_any_text_to_the_codec(field: str, name: bytes) -> None:
    """What a name may be is the business of who uses it (F47); the wire carries any text."""
    data = write_frame(**{field: name})  # type: ignore[arg-type]
    (frame,) = FrameDecoder().feed(data)
    assert getattr(frame, field) == name.decode()
    assert Frame.build(PUSH, **{field: name.decode()}).raw == data  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", [b"\xff", b"\xc3", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"a\x80"]
)
@pytest.mark.parametrize("field", ["message_id", "source", "target"])
def test_a_name_that_is_not_utf_8_is_refused(field: str, name: bytes) -> None:
    decoder = FrameDecoder()
    assert decoder.feed(write_frame(**{field: name})) == []  # type: ignore[arg-type]
    assert rule_of(decoder) == "utf8"
