"""The codec of NSQ's TCP protocol: recorded answers, cuts, limits, ends, both roles together."""

from __future__ import annotations

import dataclasses
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_wires.nsq.exchanges import EXCHANGES, Exchange, body, identify, many, size
from tmqp_wires.nsq import CommandDecoder, FrameDecoder, ServerTerms, writing
from tmqp_wires.nsq.events import (
    Authenticate,
    Close,
    ErrorReceived,
    Event,
    Finish,
    Heartbeat,
    Identify,
    MessageReceived,
    Nop,
    Publish,
    PublishDeferred,
    PublishMany,
    Ready,
    Requeue,
    ResponseReceived,
    Subscribe,
    Touch,
    Violation,
)

TERMS: Final = ServerTerms()
TIGHT: Final = ServerTerms(
    max_line_bytes=64, max_identify_bytes=200, max_msg_size=50, max_body_size=100
)
ID: Final = b"0123456789abcdef"


def events_of(data: bytes, terms: ServerTerms = TERMS, cuts: tuple[int, ...] = ()) -> list[Event]:
    """What a decoder finds in bytes that come in pieces."""
    decoder = CommandDecoder(terms)
    found: list[Event] = []
    for start, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
        found += decoder.feed(data[start:end])
    return found


def answers_of(events: list[Event]) -> bytes:
    """What a server of an empty broker answers."""
    out: list[bytes] = []
    for event in events:
        if isinstance(event, Violation):
            out.append(event.answer)
        elif isinstance(event, Identify):
            out.append(writing.response_frame(event.answer))
        elif isinstance(event, (Publish, PublishMany, PublishDeferred, Subscribe)):
            out.append(writing.OK)
        elif isinstance(event, Close):
            out.append(writing.CLOSE_WAIT)
        elif isinstance(event, (Finish, Requeue, Touch)):
            word = {Finish: b"FIN", Requeue: b"REQ", Touch: b"TOUCH"}[type(event)]
            text = b"E_%s_FAILED %s %s failed ID not in flight" % (word, word, event.message_id)
            out.append(writing.error_frame(text))
    return b"".join(out)


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda each: each.name)
def test_answers_are_those_that_were_recorded(exchange: Exchange) -> None:
    # The recorder never asked for a compression that it would have had to read.
    terms = dataclasses.replace(TERMS, snappy=True, deflate=True)
    events = events_of(exchange.sent, terms)
    expected = b"".join(
        [
            len(data + b"    ").to_bytes(4, "big") + size(kind) + data
            for kind, data in exchange.frames
        ]
    )
    assert answers_of(events) == expected
    assert any(isinstance(event, Violation) for event in events) == exchange.closes


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda each: each.name)
def test_a_cut_changes_nothing(exchange: Exchange) -> None:
    sent = exchange.sent
    whole = events_of(sent)
    places = range(1, len(sent)) if len(sent) < 300 else (1, 5, 9, 100, len(sent) // 2)
    for place in places:
        assert events_of(sent, cuts=(place,)) == whole
    if len(sent) < 300:
        assert events_of(sent, cuts=tuple(range(1, len(sent)))) == whole


names = st.from_regex(rb"[.a-zA-Z0-9_-]{1,54}(#ephemeral)?", fullmatch=True)
ids = st.binary(min_size=16, max_size=16).filter(lambda each: not set(each) & set(b" \r\n"))
bodies = st.binary(min_size=1, max_size=60)


@st.composite
def commands(draw: st.DrawFn) -> tuple[bytes, list[Event]]:
    """Commands as a client writes them, and what they are."""
    written = [writing.MAGIC]
    meant: list[Event] = []

    def add(data: bytes, event: Event) -> None:
        written.append(data)
        meant.append(event)

    def publications() -> None:
        for kind in draw(st.lists(st.sampled_from("pmdn"), max_size=4)):
            topic = draw(names)
            if kind == "p":
                one = draw(bodies)
                add(writing.pub(topic, one), Publish(topic, one))
            elif kind == "m":
                some = draw(st.lists(bodies, min_size=1, max_size=5))
                add(writing.mpub(topic, some), PublishMany(topic, some))
            elif kind == "d":
                one, delay = draw(bodies), draw(st.integers(0, 3_600_000))
                add(writing.dpub(topic, delay, one), PublishDeferred(topic, one, delay))
            else:
                add(writing.NOP, Nop())

    publications()
    topic, channel = draw(names), draw(names)
    add(writing.sub(topic, channel), Subscribe(topic, channel))
    publications()
    for kind in draw(st.lists(st.sampled_from("rfqt"), max_size=6)):
        name = draw(ids)
        if kind == "r":
            count = draw(st.integers(0, 2_500))
            add(writing.rdy(count), Ready(count))
        elif kind == "f":
            add(writing.fin(name), Finish(name))
        elif kind == "q":
            delay = draw(st.integers(0, 10**12))
            add(writing.req(name, delay), Requeue(name, min(delay, 3_600_000)))
        else:
            add(writing.touch(name), Touch(name))
    add(writing.CLS, Close())
    return b"".join(written), meant


@given(commands(), st.lists(st.integers(0, 400), max_size=6))
def test_what_a_client_writes_a_server_reads(
    both: tuple[bytes, list[Event]], places: list[int]
) -> None:
    sent, meant = both
    cuts = tuple(sorted(place for place in places if place <= len(sent)))
    assert events_of(sent, cuts=cuts) == meant


@given(
    st.lists(
        st.one_of(
            st.builds(
                ResponseReceived, st.binary(max_size=40).filter(lambda b: b != b"_heartbeat_")
            ),
            st.builds(ErrorReceived, st.just(b"E_X"), st.binary(min_size=1, max_size=40)),
            st.builds(
                MessageReceived,
                st.integers(-(2**63), 2**63 - 1),
                st.integers(0, 65_535),
                st.binary(min_size=16, max_size=16),
                st.binary(max_size=40),
            ),
            st.builds(Heartbeat),
        ),
        max_size=8,
    ),
    st.lists(st.integers(0, 400), max_size=6),
)
def test_what_a_server_writes_a_client_reads(said: list[Event], places: list[int]) -> None:
    parts: list[bytes] = []
    for event in said:
        if isinstance(event, ResponseReceived):
            parts.append(writing.response_frame(event.data))
        elif isinstance(event, ErrorReceived):
            parts.append(writing.error_frame(event.code + b" " + event.text))
        elif isinstance(event, MessageReceived):
            head = (event.timestamp_ns, event.attempts, event.message_id)
            parts.append(writing.message_frame(*head, event.body))
        else:
            parts.append(writing.HEARTBEAT)
    sent = b"".join(parts)
    cuts = sorted(place for place in places if place <= len(sent))
    decoder = FrameDecoder()
    found: list[Event] = []
    for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
        found += decoder.feed(sent[start:end])
    assert found == said
    assert decoder.held_bytes == 0


@given(st.binary(max_size=200), st.integers(0, 200), st.booleans())
def test_any_bytes_are_read_or_refused(data: bytes, place: int, greeted: bool) -> None:
    sent = writing.MAGIC + data if greeted else data
    whole = events_of(sent, TIGHT)
    assert events_of(sent, TIGHT, (min(place, len(sent)),)) == whole
    for event in whole[:-1]:
        assert not isinstance(event, Violation)
    FrameDecoder(100).feed(data)


LIMITS: Final = {
    "message": (b"PUB t\n" + body(b"x" * 50), b"PUB t\n" + size(51)),
    "deferred message": (b"DPUB t 3600000\n" + body(b"x" * 50), b"DPUB t 1\n" + size(51)),
    "message of many": (b"MPUB t\n" + many(b"x" * 50), b"MPUB t\n" + size(90) + size(1) + size(51)),
    "body of many, as declared": (
        b"MPUB t\n" + many(b"x" * 44, b"x" * 44),
        b"MPUB t\n" + size(101),
    ),
    # The original takes any number of bytes here, whatever it was told before.
    "body of many, as it is": (
        b"MPUB t\n" + size(4) + size(2) + body(b"x" * 44) * 2,
        b"MPUB t\n" + size(4) + size(2) + body(b"x" * 44) + size(45),
    ),
    "count of many": (
        b"MPUB t\n" + size(100) + size(19) + body(b"x") * 19,
        b"MPUB t\n" + size(100) + size(20),
    ),
    "line": (b"PUB t " + b"x" * 57 + b"\n" + body(b"x"), b"PUB t " + b"x" * 58),
    "identification": (b"IDENTIFY\n" + body(b"{}" + b" " * 198), b"IDENTIFY\n" + size(201)),
    "topic": (b"PUB " + b"t" * 58 + b"\n" + body(b"x"), None),
    "ready count": (b"SUB t c\nRDY 2500\n", b"SUB t c\nRDY 2501\n"),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_holds_and_what_reaches_it_is_taken(name: str) -> None:
    good, bad = LIMITS[name]
    terms = dataclasses.replace(TIGHT, max_body_size=200) if name == "identification" else TIGHT
    assert not isinstance(events_of(writing.MAGIC + good, terms)[-1], Violation)
    if bad is not None:
        assert isinstance(events_of(writing.MAGIC + bad, terms)[-1], Violation)


def test_nothing_beyond_what_is_allowed_is_kept() -> None:
    decoder = CommandDecoder(TIGHT)
    decoder.feed(writing.MAGIC + b"PUB t\n" + size(50) + b"x" * 49)
    assert decoder.held_bytes == 59
    decoder.feed(b"x")
    assert decoder.held_bytes == 0
    decoder.feed(b"MPUB t\n" + size(100) + size(2) + body(b"x" * 20) + size(50))
    assert decoder.held_bytes == 4 + 24 + 4
    assert decoder.feed(b"x" * 50 + b"Y") == [PublishMany(b"t", [b"x" * 20, b"x" * 50])]
    assert decoder.held_bytes == 1
    assert isinstance(decoder.feed(b"\n")[-1], Violation)
    assert decoder.held_bytes == 0
    assert decoder.feed(b"NOP\n") == []


ENDS: Final = {
    b"PUB t\n": b"E_BAD_MESSAGE PUB failed to read message body size",
    b"PUB t\n\0\0\0\5x": b"E_BAD_MESSAGE PUB failed to read message body",
    b"DPUB t 1\n\0\0\0\5x": b"E_BAD_MESSAGE DPUB failed to read message body",
    b"IDENTIFY\n\0": b"E_BAD_BODY IDENTIFY failed to read body size",
    b"IDENTIFY\n\0\0\0\5{": b"E_BAD_BODY IDENTIFY failed to read body",
    b"MPUB t\n": b"E_BAD_BODY MPUB failed to read body size",
    b"MPUB t\n\0\0\0\5": b"E_BAD_BODY MPUB failed to read message count",
    b"MPUB t\n\0\0\0\x20\0\0\0\2": b"E_BAD_MESSAGE MPUB failed to read message(0) body size",
    b"MPUB t\n\0\0\0\x20\0\0\0\2\0\0\0\1x\0": (
        b"E_BAD_MESSAGE MPUB failed to read message(1) body size"
    ),
    b"MPUB t\n\0\0\0\x20\0\0\0\2\0\0\0\1x\0\0\0\2y": (
        b"E_BAD_MESSAGE MPUB failed to read message body"
    ),
    b"": None,
    b"PU": None,
    b"PUB t\n\0\0\0\1xPUB": None,
}


@pytest.mark.parametrize("sent", ENDS)
def test_an_end_in_the_middle_of_a_body_is_an_error(sent: bytes) -> None:
    decoder = CommandDecoder(TERMS)
    decoder.feed(writing.MAGIC + sent)
    text = ENDS[sent]
    expected = [] if text is None else [Violation(writing.error_frame(text), text)]
    assert decoder.feed_eof() == expected


def test_with_auth_nothing_but_identify_goes_before_it() -> None:
    terms = ServerTerms(auth_required=True)
    secret = writing.auth(b"sekret")
    for word, command in {
        b"PUB": writing.pub(b"t", b"x"),
        b"DPUB": writing.dpub(b"t", 0, b"x"),
        b"MPUB": b"MPUB t\n",  # before a byte of the body (N60)
        b"SUB": writing.sub(b"t", b"c"),
    }.items():
        text = b"E_AUTH_FIRST AUTH required before " + word
        refused = events_of(writing.MAGIC + command, terms)
        assert refused == [Violation(writing.error_frame(text), text)]
    good = events_of(writing.MAGIC + secret + writing.pub(b"t", b"x"), terms)
    assert [type(event) for event in good] == [Authenticate, Publish]
    assert isinstance(good[0], Authenticate)
    assert good[0].secret == b"sekret"
    assert "sekret" not in repr(good)
    twice = events_of(writing.MAGIC + secret * 2, terms)[-1]
    assert isinstance(twice, Violation)
    assert twice.text == b"E_INVALID AUTH already set"


def test_where_tls_is_required_only_identify_goes_in_the_clear() -> None:
    terms = ServerTerms(tls=True, tls_required=True)
    decoder = CommandDecoder(terms)
    events = decoder.feed(writing.MAGIC + identify(feature_negotiation=True, tls_v1=True))
    assert isinstance(events[0], Identify)
    assert events[0].negotiated.tls
    assert b'"tls_v1":true' in events[0].answer
    assert decoder.paused
    decoder.secure = True
    decoder.resume()
    assert decoder.feed(writing.pub(b"t", b"x")) == [Publish(b"t", b"x")]
    for clear in (writing.pub(b"t", b"x"), b"FOO\n"):
        refused = events_of(writing.MAGIC + clear, terms)[-1]
        word = clear.split()[0]
        text = b"E_INVALID cannot %s in current state (TLS required)" % word
        assert refused == Violation(writing.error_frame(text), text)


def test_what_comes_between_identify_and_its_answer_is_refused_not_lost() -> None:
    """The original drops it in silence (N42)."""
    sent = writing.MAGIC + identify(feature_negotiation=True, snappy=True) + writing.NOP
    for cuts in ((), (len(sent) - 4,)):
        events = events_of(sent, cuts=cuts)
        assert [type(event) for event in events] == [Identify, Violation]


def test_identification_is_read_as_the_original_reads_it() -> None:
    def first(text: bytes) -> Event:
        return events_of(writing.MAGIC + b"IDENTIFY\n" + body(text))[0]

    event = first(b'{"Client_ID": "a", "client_id": "b", "HOSTNAME": null, "more": [1.5, {}]}')
    assert isinstance(event, Identify)
    assert event.negotiated.client_id == "b"
    assert event.negotiated.hostname == ""
    assert isinstance(first(b"null"), Identify)
    for bad in (
        b"[]",
        b"1",
        b'{"msg_timeout": 1000.0}',
        b'{"msg_timeout": 1e4}',
        b'{"msg_timeout": true}',
        b'{"msg_timeout": 9223372036854775808}',
        b'{"sample_rate": 2147483648}',
        b'{"client_id": 1}',
        b'{"snappy": 1}',
        b'{"more": NaN}',
        b"{} {}",
        b"[" * 100_00,
    ):
        assert isinstance(first(bad), Violation), bad


def test_numbers_are_digits_only() -> None:
    for text in (b"+1", b"1\t", b"\xb2", b"9" * 19, b"1_0"):
        events = events_of(writing.MAGIC + b"SUB t c\nRDY " + text + b"\n")
        assert isinstance(events[-1], Violation), text
    assert events_of(writing.MAGIC + b"SUB t c\nRDY \n")[-1] == Ready(0)


def test_error_texts_quote_names_as_go_does() -> None:
    events = events_of(writing.MAGIC + b'PUB a"\\\xff\x01\xc3\xa9\xe2\x80\x8b\n')
    assert isinstance(events[0], Violation)
    quoted = b'"a\\"\\\\\\xff\\x01\xc3\xa9\\u200b"'
    assert events[0].text == b"E_BAD_TOPIC PUB topic name " + quoted + b" is not valid"


def test_attempts_stop_at_what_the_frame_can_say() -> None:
    frame = writing.message_frame(1, 1, ID, b"body")
    assert FrameDecoder().feed(writing.retried(frame, 2)) == [MessageReceived(1, 2, ID, b"body")]
    renamed = writing.retried(frame, 70_000, b"f" * 16)
    assert FrameDecoder().feed(renamed) == [MessageReceived(1, 65_535, b"f" * 16, b"body")]


def test_a_client_refuses_what_is_no_frame() -> None:
    for bad in (size(3) + size(0), size(101) + size(0), size(20) + size(2), size(4) + size(3)):
        decoder = FrameDecoder(100)
        assert [type(event) for event in decoder.feed(bad)] == [Violation]
        assert decoder.feed(writing.OK) == []
