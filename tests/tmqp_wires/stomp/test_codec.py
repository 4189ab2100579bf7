"""STOMP by itself: frames of every version, every cut, limits, both sides against each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp_wires.stomp import (
    ClientConnection,
    FrameDecoder,
    FrameLimits,
    ServerConnection,
    StompFrame,
)
from tmqp_wires.stomp.codec import OF_CLIENTS, OF_SERVERS, Event
from tmqp_wires.stomp.connection import HeartBeat
from tmqp_wires.stomp.frames import (
    V1_0,
    V1_1,
    V1_2,
    VERSIONS,
    Violation,
    encode_frame,
    header_lines,
    read_header_lines,
    unescaped,
)

LIMITS: Final = FrameLimits()
SMALL: Final = FrameLimits(max_head_bytes=60, max_headers=3, max_body_bytes=20)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAME = TEXT.filter(bool)
HEADERS = st.lists(st.tuples(NAME, TEXT), max_size=5)


def decoder(version: str = V1_2, limits: FrameLimits = LIMITS) -> FrameDecoder:
    found = FrameDecoder(limits, OF_CLIENTS | OF_SERVERS)
    found.version = version
    return found


def only(data: bytes, version: str = V1_2) -> StompFrame:
    """The one frame of these bytes."""
    (event,) = decoder(version).receive(data)
    assert isinstance(event, StompFrame), event
    return event


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    ends = sorted({min(place, len(data)) for place in places})
    return [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]


# --- Frames --------------------------------------------------------------------------------------


@given(HEADERS, st.binary(max_size=40))
def test_a_frame_of_1_2_is_read_as_it_was_written(
    headers: list[tuple[str, str]], body: bytes
) -> None:
    said = [("content-length", str(len(body))), *headers]
    found = only(encode_frame("SEND", said, body))
    assert found == StompFrame("SEND", said, body)


@given(HEADERS)
def test_a_frame_of_1_1_is_read_as_it_was_written_but_for_carriage_returns(
    headers: list[tuple[str, str]],
) -> None:
    found = only(encode_frame("SEND", headers, b"x", V1_1), V1_1)
    assert found.headers == [(n.replace("\r", " "), v.replace("\r", " ")) for n, v in headers]


@given(HEADERS.map(lambda pairs: [pair for pair in pairs if pair[0].strip(" \r\n:")]))
def test_no_header_of_any_version_can_forge_another(headers: list[tuple[str, str]]) -> None:
    for version in VERSIONS:
        found = only(encode_frame("SEND", headers, b"", version), version)
        assert len(found.headers) == len(headers)


@pytest.mark.parametrize(
    ("version", "written"),
    [
        (V1_0, b"a b:c:d\\ e\n"),
        (V1_1, b"a\\cb:c\\cd\\\\\\ne\n"),
        (V1_2, b"a\\cb:c\\cd\\\\\\ne\n"),
    ],
)
def test_how_each_version_escapes(version: str, written: bytes) -> None:
    assert header_lines([("a:b", "c:d\\\ne")], version) == written


def test_escapes() -> None:
    assert unescaped("\\r\\n\\c\\\\", V1_2) == "\r\n:\\"
    assert unescaped("\\n\\c\\\\n", V1_1) == "\n:\\n"
    assert unescaped("\\n", V1_0) == "\\n"
    for text, version in (("\\r", V1_1), ("\\t", V1_2), ("a\\", V1_2), ("\\\\\\", V1_2)):
        with pytest.raises(ValueError, match="escape"):
            unescaped(text, version)


def test_connect_is_not_escaped() -> None:
    data = encode_frame("CONNECT", [("accept-version", "1.2"), ("passcode", " a\\c:b ")])
    assert data == b"CONNECT\naccept-version:1.2\npasscode: a\\c:b \n\n\0"
    fresh = FrameDecoder(LIMITS)
    (found,) = fresh.receive(data)
    assert isinstance(found, StompFrame)
    assert found.get("passcode") == " a\\c:b "


def test_blanks_count_for_nothing_in_1_0() -> None:
    found = only(b"SEND\ndestination: /queue/a \n\nx\0", V1_0)
    assert found.get("destination") == "/queue/a"
    assert only(b"SEND\ndestination: /queue/a\n\nx\0", V1_2).get("destination") == " /queue/a"
    (hello,) = FrameDecoder(LIMITS).receive(b"CONNECT\nlogin: me\n\n\0")
    assert isinstance(hello, StompFrame)
    assert hello.get("login") == "me"


def test_lines_may_end_in_a_carriage_return_and_a_line_feed() -> None:
    for version in VERSIONS:
        found = only(b"SEND\r\na:b\r\ncontent-length:3\r\n\r\nx\0y\0\r\n", version)
        assert found.headers == [("a", "b"), ("content-length", "3")]
        assert found.body == b"x\0y"


def test_a_body_without_its_length_reaches_to_the_first_nul() -> None:
    frames = decoder().receive(b"\n\nSEND\n\none\0\n\r\nSEND\n\ntwo\0SEND\n\n\0")
    assert [each.body for each in frames if isinstance(each, StompFrame)] == [b"one", b"two", b""]


def test_the_first_of_repeated_headers_counts() -> None:
    found = only(b"SEND\na:1\na:2\n\n\0")
    assert found.get("a") == "1"
    assert found.headers == [("a", "1"), ("a", "2")]
    assert found.find("b") is None


WRONG: Final[dict[str, bytes]] = {
    "there is no command 'SENT'": b"SENT\n\n\0",
    "there is no command 'GET / HTTP/1.1 a'": b"GET / HTTP/1.1 and more",
    "there is no command ''": b"\0",
    "there is no command 'SEND'": b"SEND\0destination:a\n\n\0",
    "no colon": b"SEND\nabc\n\n\0",
    "has no name": b"SEND\n:abc\n\n\0",
    "not an escape": b"SEND\na:\\t\n\n\0",
    "not UTF-8": b"SEND\na:\xff\n\n\0",
    "is not a number": b"SEND\ncontent-length:-1\n\n\0",
    "no NUL follows": b"SEND\ncontent-length:1\n\nab\0",
}


@pytest.mark.parametrize("text", list(WRONG))
def test_what_is_wrong_ends_the_stream(text: str) -> None:
    for data in (WRONG[text], WRONG[text] + b"SEND\n\n\0"):
        found = decoder()
        events = found.receive(data)
        assert [type(each) for each in events] == [Violation]
        assert isinstance(events[0], Violation)
        assert text in events[0].text
        assert found.held_bytes == 0
        assert found.receive(b"SEND\n\n\0") == []


def test_each_limit_is_kept_and_reached() -> None:
    head = b"SEND\na:" + b"x" * (60 - 8) + b"\n"
    most = {
        head + b"\n\0": head[:-1] + b"x\n\n\0",
        b"SEND\na:1\nb:2\nc:3\n\n\0": b"SEND\na:1\nb:2\nc:3\nd:4\n\n\0",
        b"SEND\n\n" + b"x" * 20 + b"\0": b"SEND\n\n" + b"x" * 21 + b"\0",
        b"SEND\ncontent-length:20\n\n" + bytes(21): b"SEND\ncontent-length:21\n\n",
    }
    for fits, too_much in most.items():
        (found,) = decoder(limits=SMALL).receive(fits)
        assert isinstance(found, StompFrame), fits
        (found,) = decoder(limits=SMALL).receive(too_much)
        assert isinstance(found, Violation), too_much
        assert "more than" in found.text
    for name in ("max_head_bytes", "max_headers", "max_body_bytes"):
        with pytest.raises(ValueError, match=name):
            FrameLimits(**{name: 0})


@pytest.mark.parametrize("beginning", [b"SEND\na:" + b"x" * 100, b"SEND\n\n" + b"x" * 100, b"\n"])
def test_no_more_is_kept_than_the_limits_say(beginning: bytes) -> None:
    found = decoder(limits=SMALL)
    for at in range(len(beginning) * 5):
        found.receive(beginning[at : at + 1] if at < len(beginning) else b"x")
        assert found.held_bytes <= 60 + 2


def test_the_head_of_a_frame_without_its_body_is_held() -> None:
    """It was not counted, and a server that looked at what is held took it for nothing."""
    found = decoder()
    assert found.receive(b"SEND\na:1\n\n") == []
    assert found.held_bytes == 10
    found.receive(b"x")
    assert found.held_bytes == 11
    assert len(found.receive(b"\0")) == 1
    assert found.held_bytes == 0


@given(
    st.lists(
        st.one_of(
            st.tuples(HEADERS, st.binary(max_size=30)).map(
                lambda part: encode_frame(
                    "SEND", [("content-length", str(len(part[1]))), *part[0]], part[1]
                )
            ),
            st.sampled_from([b"\n", b"\r\n", b"SEND\r\na:b\r\n\r\nx\0", *WRONG.values()]),
            st.binary(max_size=8),
        ),
        max_size=6,
    ).map(b"".join),
    st.lists(st.integers(0, 300), max_size=12),
    st.sampled_from([LIMITS, SMALL]),
)
def test_any_cut_of_any_stream_gives_the_same(
    data: bytes, places: list[int], limits: FrameLimits
) -> None:
    at_once = decoder(limits=limits).receive(data)
    piecemeal = decoder(limits=limits)
    found: list[Event] = []
    for piece in cut(data, places):
        found += piecemeal.receive(piece)
        assert piecemeal.held_bytes <= limits.max_head_bytes + limits.max_body_bytes + 300
    assert [repr(each) for each in found] == [repr(each) for each in at_once]


# --- Connections ---------------------------------------------------------------------------------


def pair(
    beat: HeartBeat | None = None, theirs: HeartBeat | None = None
) -> tuple[ServerConnection, ClientConnection]:
    return ServerConnection(0.0, heart_beat=beat), ClientConnection(0.0, heart_beat=theirs)


def connected(
    server: ServerConnection,
    client: ClientConnection,
    versions: Sequence[str] = VERSIONS,
) -> None:
    client.send_connect([("host", "here")], versions)
    (hello,) = server.receive(client.data_to_send(), 0.0)
    assert isinstance(hello, StompFrame)
    server.send_connected(0.0, [("session", "s")])
    (answer,) = client.receive(server.data_to_send(), 0.0)
    assert isinstance(answer, StompFrame)
    assert answer.get("session") == "s"


@pytest.mark.parametrize(
    ("wanted", "agreed"),
    [((V1_0,), V1_0), ((V1_1,), V1_1), ((V1_0, V1_1), V1_1), (VERSIONS, V1_2)],
)
def test_the_newest_version_of_both_is_agreed(wanted: tuple[str, ...], agreed: str) -> None:
    server, client = pair()
    connected(server, client, wanted)
    assert (server.version, client.version) == (agreed, agreed)
    client.send("SEND", [("destination", "/queue/a:b"), ("m", "1\\2")], b"x")
    (frame,) = server.receive(client.data_to_send(), 0.0)
    assert frame == StompFrame("SEND", [("destination", "/queue/a:b"), ("m", "1\\2")], b"x")


def test_a_frame_behind_connect_is_read_by_the_version_that_it_agrees() -> None:
    server, _ = pair()
    events = server.receive(b"CONNECT\naccept-version:1.2\n\n\0SEND\na:\\c\n\n\0", 0.0)
    assert isinstance(events[1], StompFrame)
    assert events[1].headers == [("a", ":")]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"CONNECT\naccept-version:2.0\n\n\0", "none of the client's versions"),
        (b"SEND\ndestination:/queue/a\n\n\0", "came before CONNECT"),
        (b"CONNECT\nheart-beat:1\n\n\0", "two numbers"),
        (b"CONNECT\nheart-beat:1,-2\n\n\0", "two numbers"),
        (b"CONNECT\n\n\0CONNECT\n\n\0", "connected already"),
        (b"MESSAGE\n\n\0", "no command"),
    ],
)
def test_a_client_that_begins_wrongly(data: bytes, text: str) -> None:
    server, _ = pair()
    events = server.receive(data + b"SEND\n\n\0", 0.0)
    assert isinstance(events[-1], Violation)
    assert text in events[-1].text
    assert server.receive(b"SEND\n\n\0", 0.0) == []


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"RECEIPT\nreceipt-id:1\n\n\0", "came before CONNECTED"),
        (b"CONNECTED\nversion:3\n\n\0", "version '3'"),
        (b"CONNECTED\nheart-beat:x\n\n\0", "two numbers"),
        (b"CONNECTED\n\n\0CONNECTED\n\n\0", "accepted the client already"),
        (b"SEND\n\n\0", "no command"),
    ],
)
def test_a_server_that_begins_wrongly(data: bytes, text: str) -> None:
    _, client = pair()
    events = client.receive(data, 0.0)
    assert isinstance(events[-1], Violation)
    assert text in events[-1].text


def test_a_client_may_be_refused() -> None:
    server, client = pair()
    client.send_connect()
    server.receive(client.data_to_send(), 0.0)
    server.send("ERROR", [("message", "no")], b"no")
    (answer,) = client.receive(server.data_to_send(), 0.0)
    assert isinstance(answer, StompFrame)
    assert answer.get("message") == "no"


def test_heart_beats_both_ways() -> None:
    server, client = pair(HeartBeat(1_000, 2_000), HeartBeat(500, 4_000))
    connected(server, client)
    # The server sends within 4 s; it gives the client, which sends within 2 s, 4 s.
    assert server.next_deadline() == 2.0
    assert server.on_deadline(2.0) == []
    assert server.data_to_send() == b"", "it has spoken"
    assert client.next_deadline() == 1.0
    client.on_deadline(1.0)
    client.on_deadline(2.0)
    server.receive(client.data_to_send(), 2.0)
    assert server.on_deadline(4.0) == []
    assert server.data_to_send() == b"\n"
    server.excuse_silence(5.9)
    assert server.on_deadline(9.8) == []
    (gone,) = server.on_deadline(9.9)
    assert isinstance(gone, Violation)
    assert "nothing was heard for 4 seconds" in gone.text


@pytest.mark.parametrize("theirs", [None, HeartBeat(0, 0)])
def test_no_heart_beats_where_one_side_wants_none(theirs: HeartBeat | None) -> None:
    server, client = pair(HeartBeat(1_000, 1_000), theirs)
    connected(server, client)
    assert (server.next_deadline(), client.next_deadline()) == (None, None)
    server.excuse_silence(5.0)
    assert server.next_deadline() is None


def test_a_client_of_1_0_is_told_of_no_heart_beats() -> None:
    server, _ = pair(HeartBeat(1_000, 1_000))
    server.receive(b"CONNECT\n\n\0", 0.0)
    server.send_connected(0.0)
    assert server.data_to_send() == b"CONNECTED\nversion:1.0\nheart-beat:0,0\n\n\0"


def test_a_server_may_speak_fewer_versions() -> None:
    server = ServerConnection(versions=[V1_1, V1_2])
    (found,) = server.receive(b"CONNECT\n\n\0", 0.0)
    assert isinstance(found, Violation)
    assert server.versions == "1.1,1.2"
    assert "1.1,1.2" in found.detail


def test_nothing_but_the_standard_library_is_needed() -> None:
    parts: Any = read_header_lines("a:b\n", V1_2, most=1)
    assert parts == [("a", "b")]
    with pytest.raises(ValueError, match="more than 1"):
        read_header_lines("a:b\nc:d\n", V1_2, most=1)
    assert read_header_lines("", V1_2) == []
