"""Letters: what a TMQP message says as one, and how one is written as a TMQP message."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_server.toy_door import ToyBodies, ToyWire
from tmqp.codec import FrameDecoder
from tmqp.constants import MAX_HEADER_BLOCK_BYTES, MessageType
from tmqp.frames import Frame
from tmqp.limits import Limits
from tmqp_server.doors.letter import (
    BOOLEAN,
    BYTE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    SHORT,
    Letter,
    Property,
)
from tmqp_server.doors.letter_frames import (
    OF_DEAD_LETTERS,
    RESERVED_HEADERS,
    frame_of_letter,
    letter_of_frame,
)
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.native.operations import PUSH_HEADERS
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import MARK_HIGH, Message

#: Headers on the wire, and the field that each is, with its value.
FIELDS: list[tuple[str, str, str, object]] = [
    ("Content-Type", "text/plain", "content_type", "text/plain"),
    ("CORRELATION-ID", "c 1", "correlation_id", "c 1"),
    ("Reply-To", "answers", "reply_to", "answers"),
    ("type", "order", "kind", "order"),
    ("Priority", "0", "priority", 0),
    ("Priority", "9", "priority", 9),
    ("Timestamp", "1732000000123", "timestamp_ms", 1732000000123),
    ("Expires", "1732000000999", "expires_ms", 1732000000999),
    ("Group-Key", "customer-7", "group_key", "customer-7"),
    ("traceparent", "00-0af7-b7ad-01", "traceparent", "00-0af7-b7ad-01"),
    ("tracestate", "a=1,b=2", "tracestate", "a=1,b=2"),
]


def _frame(*headers: tuple[str, str], high: bool = False) -> Frame:
    return Frame.build(
        MessageType.QUEUE_MESSAGE,
        "orders",
        7,
        b"body",
        message_id="m1",
        source="shop",
        headers=headers,
        high_priority=high,
    )


@pytest.mark.parametrize(("key", "value", "field", "found"), FIELDS)
def test_a_header_is_a_field(key: str, value: str, field: str, found: object) -> None:
    letter = letter_of_frame(_frame((key, value), ("Mine", "1")))
    assert getattr(letter, field) == found
    assert letter.headers == [("Mine", "1")]
    assert repr(letter_of_frame(frame_of_letter(letter))) == repr(letter)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("Priority", "10"),
        ("Priority", "-1"),
        ("Priority", "04"),
        ("Priority", "high"),
        ("Timestamp", "0"),
        ("Timestamp", "9223372036854775808"),
        ("Expires", "soon"),
        ("Expires", "1" * 30),
        ("Content-Type", ""),
        ("CC", "elsewhere;1"),
    ],
)
def test_what_is_no_field_stays_a_header(key: str, value: str) -> None:
    letter = letter_of_frame(_frame((key, value)))
    assert letter.headers == [(key, value)]
    assert repr(letter) == repr(letter_of_frame(_frame())).replace(
        "headers=[]", f"headers={letter.headers!r}"
    )


def test_the_first_of_repeated_fields_counts_and_the_others_stay_headers() -> None:
    letter = letter_of_frame(_frame(("Type", "a"), ("Type", "b"), ("x", "1"), ("x", "2")))
    assert letter.kind == "a"
    assert letter.headers == [("Type", "b"), ("x", "1"), ("x", "2")]


def test_a_message_without_headers() -> None:
    letter = letter_of_frame(_frame())
    assert (letter.body, letter.message_id, letter.source) == (b"body", "m1", "shop")
    assert (letter.channel, letter.queue_id, letter.priority) == ("orders", 7, 4)
    assert not letter.high_priority
    assert letter_of_frame(_frame(high=True)).priority == 9
    assert letter_of_frame(_frame(("Priority", "6"), high=True)).priority == 6


PROPERTIES = [
    (BOOLEAN, "true", True),
    (BOOLEAN, "false", False),
    (BYTE, "-128", -128),
    (SHORT, "32767", 32767),
    (INT, "0", 0),
    (LONG, "-9223372036854775808", -(1 << 63)),
    (FLOAT, "0.1", 0.1),
    (DOUBLE, "1e+300", 1e300),
    (DOUBLE, "inf", math.inf),
    (DOUBLE, "nan", math.nan),
]


@pytest.mark.parametrize(("kind", "text", "value"), PROPERTIES)
def test_a_property_has_its_type(kind: str, text: str, value: float) -> None:
    frame = _frame(("n", text), ("plain", text), ("Property-Types", f"n={kind}"))
    letter = letter_of_frame(frame)
    assert letter.properties == [Property("n", kind, value)]
    assert letter.headers == [("plain", text)]
    written = frame_of_letter(letter)
    assert dict(written.headers)["n"] == text
    assert letter_of_frame(written).properties == letter.properties


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (BOOLEAN, "True"),
        (BYTE, "128"),
        (BYTE, "-129"),
        (INT, "-0"),
        (INT, "1.0"),
        (INT, ""),
        (INT, "1" * 10_000),
        (LONG, "9223372036854775808"),
        (DOUBLE, "much"),
        ("q", "1"),
        ("uq", "1"),
    ],
)
def test_a_value_that_is_not_of_its_type_is_a_text(kind: str, text: str) -> None:
    letter = letter_of_frame(_frame(("n", text), ("Property-Types", f"n={kind}; ;x;=i")))
    assert letter.properties == []
    assert letter.headers == [("n", text)]


def test_properties_compare_by_kind_and_print() -> None:
    assert Property("n", INT, 1) != Property("n", LONG, 1)
    assert Property("n", INT, 1) != 1
    assert len({Property("n", INT, 1), Property("n", INT, 1)}) == 1
    assert repr(Property("n", INT, 1)) == "Property('n', 'i', 1)"


def test_no_header_of_another_protocol_becomes_one_that_the_server_reads() -> None:
    names = {name.decode() for name in PUSH_HEADERS._names}
    assert names - OF_DEAD_LETTERS <= RESERVED_HEADERS, "dead letters alone have those"
    letter = Letter(b"", "m", "s", "c", 1)
    for name in sorted(RESERVED_HEADERS):
        letter.headers += [(name.title(), "x;1"), (name.upper(), "y\r\nCC:z")]
    frame = frame_of_letter(letter)
    written = {key.lower() for key, _ in frame.headers}
    assert written & RESERVED_HEADERS == {"property-types"}
    assert letter_of_frame(frame).headers == letter.headers


def test_a_field_forges_no_header() -> None:
    letter = Letter(b"", "m", "s", "c", 1)
    letter.kind = "a\r\nCC:elsewhere\nx"
    assert frame_of_letter(letter).headers == [("Type", "a CC:elsewhere x")]


def test_what_does_not_fit_is_left_out() -> None:
    letter = Letter(b"body", "m", "s" * 300, "c", 1)
    letter.kind = "order"
    letter.properties = [Property(f"n{each}", INT, each) for each in range(3)]
    letter.headers = [("big", "x" * 65_000), ("bigger", "y" * 65_000), ("last", "z")]
    frame = frame_of_letter(letter)
    assert frame.source == ""
    assert len(frame.header_block) <= MAX_HEADER_BLOCK_BYTES
    found = letter_of_frame(frame)
    assert found.properties == letter.properties
    assert found.headers == [letter.headers[0], letter.headers[2]]


_TEXTS = st.text(max_size=8) | st.text("%:=;\r\n Type\ud800é", max_size=8)
_PROPERTIES = (
    st.builds(Property, _TEXTS, st.just(BOOLEAN), st.booleans())
    | st.builds(Property, _TEXTS, st.just(LONG), st.integers(-(1 << 63), (1 << 63) - 1))
    | st.builds(Property, _TEXTS, st.just(DOUBLE), st.floats())
)


@st.composite
def _letters(draw: st.DrawFn) -> Letter:
    letter = Letter(draw(st.binary(max_size=20)), "m", "s", "c", 1)
    line = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=6)
    for field in ("content_type", "correlation_id", "reply_to", "kind", "group_key"):
        setattr(letter, field, draw(line))
    letter.priority = draw(st.integers(0, 9))
    letter.timestamp_ms = draw(st.integers(0, (1 << 63) - 1))
    letter.expires_ms = draw(st.integers(0, (1 << 63) - 1))
    letter.headers = draw(st.lists(st.tuples(_TEXTS, _TEXTS), max_size=5))
    unique = {
        each.name.replace("\ud800", "?"): each for each in draw(st.lists(_PROPERTIES, max_size=5))
    }
    taken = {name.replace("\ud800", "?") for name, _ in letter.headers}
    letter.properties = [each for name, each in unique.items() if name not in taken]
    return letter


@given(_letters(), st.booleans())
def test_a_letter_survives_the_wire(letter: Letter, high: bool) -> None:
    frame = frame_of_letter(letter, high_priority=high)
    (read,) = FrameDecoder(Limits()).feed(frame.raw)
    found = letter_of_frame(read)
    if letter.priority == 9 and not high:
        assert dict(frame.headers)["Priority"] == "9"
    # A lone surrogate is no text that any wire can carry.
    assert repr(found) == repr(letter).replace("\\ud800", "?")


def test_letters_ask_the_owner_of_a_message() -> None:
    letters = Letters([ToyBodies()])
    wire = ToyWire({"kind": "order", "id": "x", "channel": "x"}, b"body")
    message = Message("m1", Origin(1, "shop", None, None, "toy"), "c", 3, 4, wire, MARK_HIGH, 1)
    letter = letters.of(message)
    assert (letter.message_id, letter.source, letter.channel) == ("m1", "shop", "c")
    assert (letter.queue_id, letter.kind, letter.priority) == (3, "order", 9)
    assert letter.expires_ms == 0
    frame = letters.frame_of(message)
    assert frame.headers == [("Type", "order")]
    assert (frame.high_priority, frame.payload) == (True, b"body")
    frame = _frame(("Priority", "2"), high=True)
    native = Message("m1", Origin(1, "shop", None, None, "tmqp"), "c", 3, 4, frame, MARK_HIGH, 1)
    assert letters.of(native).priority == 2
    assert letters.frame_of(native) is frame
    message.rarely().expires_at = 20.0
    assert Letters([ToyBodies()], 1_000.0).of(message).expires_ms == 1_020_000
    wire.head["expires_ms"] = 5
    assert letters.of(message).expires_ms == 5
    with pytest.raises(LookupError, match="'toy'"):
        Letters().of(message)
