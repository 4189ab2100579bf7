"""The lines of Simple MQ: the document's examples, every cut, silence, limits."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp_wires.smq import LineDecoder, LineReader
from tmqp_wires.smq.codec import (
    SILENCE_S,
    consume_line,
    done_line,
    message_line,
    publish_line,
    stats_line,
)
from tmqp_wires.smq.events import Publish

MOST = 1_000
NAMES = st.binary(max_size=20).filter(lambda name: not {58, 10} & set(name))
BODIES = st.binary(max_size=50).filter(lambda body: b"\n" not in body)


def said(*pieces: bytes, silent: bool = False) -> list[str]:
    """What pieces say, each message of a row by itself."""
    decoder = LineDecoder(MOST)
    events = [event for at, piece in enumerate(pieces) for event in decoder.receive(piece, at)]
    due = decoder.next_deadline()
    if silent and due is not None:
        events += decoder.on_deadline(due)
    found: list[str] = []
    for event in events:
        if isinstance(event, Publish):
            found += [f"Publish({event.queue!r}, {body!r})" for body in event.bodies]
        else:
            found.append(repr(event))
    return found


def test_messages_to_one_queue_in_a_row_are_one_event() -> None:
    decoder = LineDecoder(MOST)
    row = b"M:q:1\nM:q:\nM:q:M:q:\n"
    same = "Publish(b'q', [b'1', b'', b'M:q:'])"
    assert [repr(event) for event in decoder.receive(row, 0.0)] == [same]
    mixed = row + b"M:Q:2\n" + b"M:Q:3\nhello\nM:Q:4\n" + b"M:q:5"
    assert [repr(event) for event in decoder.receive(mixed, 0.0)] == [
        same,
        "Publish(b'Q', [b'2', b'3', b'4'])",
    ]


@pytest.mark.parametrize("line", [b"M:q\n", b"hello\n", b"M:q1:2\n", b"\n", b"D:q:1\n", b"S\n"])
@pytest.mark.parametrize("place", range(4))
def test_another_line_in_a_row_changes_only_itself(line: bytes, place: int) -> None:
    lines = [b"M:q:1\n", b"M:q:2\n", b"M:q:3\n"]
    lines.insert(place, line)
    assert said(b"".join(lines)) == [event for each in lines for event in said(each)]


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (
            b'M:users:{"id":1,"name":"Vagner"}\n',
            'Publish(b\'users\', b\'{"id":1,"name":"Vagner"}\')',
        ),
        (b"M:users:\n", "Publish(b'users', b'')"),
        (b"M::x\n", "Publish(b'', b'x')"),
        (b"M:users:a:b:c\n", "Publish(b'users', b'a:b:c')"),
        (b"M:users:not JSON\n", "Publish(b'users', b'not JSON')"),
        (b"C:users\n", "Consume(b'users')"),
        (b"C:users:\n", "Consume(b'users')"),
        (b"D:users:1000\n", "Done(b'users', 1000)"),
        (b"S\n", "Stats()"),
        (b"S:\n", "Stats()"),
        (b"S::\n", "Stats()"),
        (b"S:users:\n", "Stats()"),
        (b"X:users\n", "Unknown()"),
        (b"GET http://x\n", "Unknown()"),
        (b":\n", "Unknown()"),
    ],
)
def test_a_line_is_one_event(line: bytes, event: str) -> None:
    assert said(line) == [event]


@pytest.mark.parametrize(
    "line", [b"\n", b"hello\n", b"D:users:\n", b"D:users:x\n", b"D:users:-5\n", b"D:users:0\n"]
)
def test_what_means_nothing_is_ignored_and_nothing_with_it(line: bytes) -> None:
    assert said(line + b"M:q:1\n") == ["Publish(b'q', b'1')"]


def test_a_number_too_long_to_be_one_is_ignored() -> None:
    assert said(b"D:users:" + b"9" * 400 + b"\n") == []


@pytest.mark.parametrize(
    ("data", "event"),
    [
        (b"S", "Stats()"),
        (b"S::", "Stats()"),
        (b"C:users", "Consume(b'users')"),
        (b"D:users:3", "Done(b'users', 3)"),
    ],
)
def test_the_documents_unended_lines_count_after_a_silence(data: bytes, event: str) -> None:
    assert said(data) == []
    assert said(data, silent=True) == [event]


@pytest.mark.parametrize("data", [b"C:use", b"D:users:1"])
def test_half_a_line_does_not_act_later_on_a_connection(data: bytes) -> None:
    assert said(b"M:q:1\n", data, silent=True) == ["Publish(b'q', b'1')"]


@pytest.mark.parametrize("begun", [b"S", b"S:", b"S::", b"C:q"])
@pytest.mark.parametrize("rest", [b"::\n", b":\n", b"\n", b":"])
def test_what_ends_a_line_that_has_counted_is_no_other_line(begun: bytes, rest: bytes) -> None:
    """S, a silence, and two colons used to be answered with UNKNOWN_TYPE, too."""
    decoder = LineDecoder(MOST)
    decoder.receive(begun, 0.0)
    assert len(decoder.on_deadline(1.0)) == 1
    assert decoder.receive(rest, 2.0) == []
    assert [repr(event) for event in decoder.receive(b"M:q:1\n", 3.0)] == ["Publish(b'q', [b'1'])"]


def test_an_unended_message_never_counts() -> None:
    assert said(b"M:q:half", silent=True) == []
    assert said(b"M:q:half", b" and half\n") == ["Publish(b'q', b'half and half')"]


def test_a_silence_begins_with_the_last_byte() -> None:
    decoder = LineDecoder(MOST)
    assert decoder.receive(b"C:us", 10.0) == []
    assert decoder.receive(b"ers", 10.05) == []
    assert decoder.next_deadline() == 10.05 + SILENCE_S
    assert decoder.on_deadline(10.1) == []
    assert [repr(event) for event in decoder.on_deadline(10.2)] == ["Consume(b'users')"]
    assert decoder.next_deadline() is None


def test_a_line_is_as_long_as_it_may_be_and_no_longer() -> None:
    longest = b"M:q:" + b"x" * (MOST - 4)
    assert len(said(longest + b"\n")) == 1
    for pieces in ([longest + b"x\n"], [longest, b"x"], [longest + b"x"]):
        assert said(*pieces, b"M:q:1\n") == [f"Violation('a line has more than {MOST} bytes')"]


def test_an_unended_line_is_counted_and_dropped() -> None:
    decoder = LineDecoder(MOST)
    decoder.receive(b"M:q:12", 0.0)
    assert decoder.held_bytes == 6
    decoder.forget()
    assert decoder.held_bytes == 0


@given(st.lists(st.tuples(NAMES, BODIES), max_size=6), st.lists(st.integers(0, 400), max_size=8))
def test_any_cuts_give_the_same(messages: list[tuple[bytes, bytes]], cuts: list[int]) -> None:
    data = b"".join([publish_line(queue, body) for queue, body in messages])
    data += consume_line(b"q") + done_line(b"q", 7) + stats_line()
    whole = said(data)
    places = sorted({0, len(data), *[cut for cut in cuts if cut < len(data)]})
    assert said(*[data[a:b] for a, b in pairwise(places)]) == whole
    assert len(whole) == len(messages) + 3


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    assert len(said(data, silent=True)) <= data.count(b"\n") + 1


def test_a_client_reads_lines_however_they_are_cut() -> None:
    reader = LineReader(10)
    assert reader.receive(b"one\ntw") == [b"one"]
    assert reader.receive(b"o\n\n") == [b"two", b""]
    with pytest.raises(ValueError, match="more than 10 bytes"):
        reader.receive(b"x" * 11)


@pytest.mark.parametrize("name", [b"a:b", b"a\nb"])
def test_a_client_writes_no_name_that_would_be_read_otherwise(name: bytes) -> None:
    for write in (consume_line, lambda queue: publish_line(queue, b""), lambda q: done_line(q, 1)):
        with pytest.raises(ValueError, match="no colon and no newline"):
            write(name)
    with pytest.raises(ValueError, match="no newline"):
        message_line(b"a\nb")
