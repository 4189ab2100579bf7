"""ZMTP by itself: both roles against each other, every cut, the recorded bytes, limits, times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_wires.zmtp.talking import talk
from tmqp_wires.zmtp import ZmtpConfig, ZmtpConnection
from tmqp_wires.zmtp.config import PLAIN, SOCKET_TYPES, is_pair
from tmqp_wires.zmtp.events import Event, PeerReady
from tmqp_wires.zmtp.frames import (
    command_frame,
    first_part,
    message_frames,
    metadata_bytes,
    more_frames,
    pack_parts,
    parts_of,
    read_metadata,
    unpack_parts,
)

SIGNATURE: Final = bytes.fromhex("ff00000000000000017f")
#: What libzmq sends behind its signature: 3.1, NULL.
REST: Final = b"\x03\x01NULL".ljust(54, b"\0")
READY_OF_PUSH: Final = bytes.fromhex("041a") + b"\x05READY\x0bSocket-Type\x00\x00\x00\x04PUSH"
PARTS = st.lists(
    st.one_of(st.binary(max_size=40), st.integers(250, 260).map(bytes)), min_size=1, max_size=4
)


def server(**changes: Any) -> ZmtpConnection:
    return ZmtpConnection(ZmtpConfig(**{"as_server": True, **changes}), 0.0)


def client(socket_type: str, **changes: Any) -> ZmtpConnection:
    return ZmtpConnection(ZmtpConfig(socket_type=socket_type, **changes), 0.0)


def connected(socket_type: str = "PUSH", **changes: Any) -> ZmtpConnection:
    """A server's side, after the handshake with such a peer."""
    found = server(**changes)
    talk(found, client(socket_type))
    return found


def told(events: Sequence[Event]) -> list[str]:
    return [repr(event) for event in events]


# --- The handshake -------------------------------------------------------------------------------


@pytest.mark.parametrize("socket_type", SOCKET_TYPES)
def test_each_type_meets_its_mirror(socket_type: str) -> None:
    one, other = server(), client(socket_type)
    heard, answered = talk(one, other)
    assert [type(each) for each in heard] == [PeerReady]
    (ready,) = answered
    assert isinstance(ready, PeerReady)
    assert is_pair(socket_type, ready.socket_type)
    assert one.version == other.version == (3, 1)


def test_the_recorded_bytes_of_libzmq() -> None:
    zmtp = server()
    assert zmtp.data_to_send() == SIGNATURE + b"\x03"
    assert zmtp.receive(SIGNATURE, 0.0) == []
    assert zmtp.data_to_send() == b"", "the other 53 bytes would be taken for something else by 2.0"
    assert zmtp.receive(REST[:1], 0.0) == []
    assert zmtp.data_to_send() == REST[1:]
    (ready,) = zmtp.receive(REST[1:] + READY_OF_PUSH, 0.0)
    assert isinstance(ready, PeerReady)
    assert (ready.socket_type, ready.identity, ready.properties) == ("PUSH", b"", {})
    zmtp.ready("PULL")
    assert zmtp.data_to_send() == READY_OF_PUSH.replace(b"PUSH", b"PULL")
    assert told(zmtp.receive(bytes.fromhex("010001016102000000000000012c") + b"x" * 300, 0.0)) == [
        f"MessageReceived({[b'', b'a', b'x' * 300]!r})"
    ]


def test_the_padding_of_the_signature_is_not_looked_at() -> None:
    zmtp = server()
    padded = b"\xff" + bytes(range(1, 9)) + b"\x7f"
    assert len(zmtp.receive(padded + REST + READY_OF_PUSH, 0.0)) == 1


def test_version_2_has_a_number_and_an_identity() -> None:
    zmtp = server()
    assert zmtp.receive(SIGNATURE + b"\x01", 0.0) == []
    assert zmtp.data_to_send() == SIGNATURE + b"\x03"
    assert zmtp.receive(b"\x03", 0.0) == []
    assert zmtp.data_to_send() == b"\x06\x00\x00", "JeroMQ 0.3 waits for it"
    (ready,) = zmtp.receive(b"\x00\x02me\x01\x00\x00\x01?", 0.0)[:1]
    assert repr(ready) == "PeerReady('REQ', b'me', {})"
    zmtp.ready("ROUTER")
    assert zmtp.data_to_send() == b"", "it was said"


def test_subscriptions_of_version_2_are_messages_in_both_directions() -> None:
    zmtp = server()
    zmtp.receive(SIGNATURE + b"\x01\x02\x00\x00", 0.0)
    assert told(zmtp.receive(b"\x00\x02\x01A\x00\x02\x00A\x00\x01\x01", 0.0)) == [
        "Subscribe(b'A')",
        "Cancel(b'A')",
        "Subscribe(b'')",
    ]
    zmtp.data_to_send()
    zmtp.subscribe(b"B")
    zmtp.cancel(b"B")
    assert zmtp.data_to_send() == b"\x00\x02\x01B\x00\x02\x00B"
    (fault,) = zmtp.receive(command_frame(b"PING", b"\0\0"), 0.0)
    assert "2.0 has no commands" in repr(fault)


def test_plain_shows_a_name_and_a_password() -> None:
    one = server(mechanism=PLAIN)
    other = client("DEALER", mechanism=PLAIN, user=b"adm", password=b"pw", identity=b"me")
    first = one.data_to_send()
    other.receive(first, 0.0)
    other.data_to_send()
    one = server(mechanism=PLAIN)
    other = client("DEALER", mechanism=PLAIN, user=b"adm", password=b"pw", identity=b"me")
    (ready,), (answer,) = talk(one, other)
    assert isinstance(ready, PeerReady)
    assert (ready.user, ready.password, ready.identity) == (b"adm", b"pw", b"me")
    assert isinstance(answer, PeerReady)
    assert answer.socket_type == "ROUTER"


def test_the_recorded_hello() -> None:
    zmtp = server(mechanism=PLAIN)
    zmtp.receive(SIGNATURE + b"\x03\x01PLAIN".ljust(54, b"\0"), 0.0)
    zmtp.data_to_send()
    assert zmtp.receive(bytes.fromhex("040d") + b"\x05HELLO\x03adm\x02pw", 0.0) == []
    assert zmtp.data_to_send() == command_frame(b"WELCOME")


def test_a_refusal_is_for_good() -> None:
    one, other = server(), client("PUSH")
    other.receive(one.data_to_send(), 0.0)
    one.receive(other.data_to_send(), 0.0)
    other.receive(one.data_to_send(), 0.0)
    one.receive(other.data_to_send(), 0.0)
    one.refuse("400")
    assert told(other.receive(one.data_to_send(), 0.0)) == ["PeerError('400')"]
    assert one.is_over
    assert other.is_over


def test_properties_travel() -> None:
    one = server()
    (ready,), _ = talk(one, client("PUSH", properties=(("X-Channel", b"jobs"),)))
    assert isinstance(ready, PeerReady)
    assert ready.properties == {"x-channel": b"jobs"}


# --- Messages ------------------------------------------------------------------------------------


@given(st.lists(PARTS, min_size=1, max_size=5), st.lists(st.integers(1, 40), max_size=60))
def test_every_cut_gives_the_same_messages(messages: list[list[bytes]], cuts: list[int]) -> None:
    sender = client("PUSH")
    begin = SIGNATURE + REST + READY_OF_PUSH
    for parts in messages:
        sender.send_message(parts)
    data = begin + sender.data_to_send()[11:]
    whole = told(server().receive(data, 0.0))
    assert whole[1:] == [f"MessageReceived({parts!r})" for parts in messages]
    zmtp = server()
    found: list[Event] = []
    at = 0
    for cut in cuts:
        found += zmtp.receive(data[at : at + cut], 0.0)
        at += cut
    found += zmtp.receive(data[at:], 0.0)
    assert told(found) == whole
    assert zmtp.held_bytes == 0


@given(PARTS)
def test_frames_are_read_as_they_were_written(parts: list[bytes]) -> None:
    raw = message_frames(parts)
    assert parts_of(raw) == parts
    assert first_part(raw) == parts[0]
    assert unpack_parts(pack_parts(parts)) == parts
    assert parts_of(more_frames(parts) + message_frames((b"end",))) == [*parts, b"end"]


def test_a_long_frame_may_have_a_small_body() -> None:
    zmtp = connected()
    assert told(zmtp.receive(b"\x02" + bytes(7) + b"\x01x", 0.0)) == ["MessageReceived([b'x'])"]


def test_a_command_may_come_between_the_parts_of_a_message() -> None:
    zmtp = connected()
    ping = command_frame(b"PING", b"\x00\x0fcontext")
    assert told(zmtp.receive(b"\x01\x01a" + ping + b"\x00\x01b", 0.0)) == [
        "MessageReceived([b'a', b'b'])"
    ]
    assert command_frame(b"PONG", b"context") in zmtp.data_to_send()


def test_a_ping_behind_the_peers_ready_is_answered_behind_ours() -> None:
    """The server decides about a peer in between, and its PONG was before its READY."""
    zmtp = server()
    ping = command_frame(b"PING", b"\x00\x0fcontext")
    zmtp.receive(SIGNATURE + REST + READY_OF_PUSH + ping, 0.0)
    assert b"PONG" not in zmtp.data_to_send()
    zmtp.ready("PULL")
    said = zmtp.data_to_send()
    assert said.endswith(command_frame(b"PONG", b"context"))
    assert b"READY" in said


def test_a_subscriber_may_say_it_in_both_forms() -> None:
    zmtp = connected("SUB")
    said = command_frame(b"SUBSCRIBE", b"A") + command_frame(b"CANCEL", b"A") + b"\x00\x02\x01B"
    assert told(zmtp.receive(said, 0.0)) == ["Subscribe(b'A')", "Cancel(b'A')", "Subscribe(b'B')"]


def test_an_unknown_command_is_of_a_version_to_come() -> None:
    assert connected().receive(command_frame(b"JOIN", b"x"), 0.0) == []


@given(st.binary(max_size=200))
def test_whatever_comes_is_an_event(data: bytes) -> None:
    for zmtp in (server(), connected("SUB"), server(mechanism=PLAIN)):
        zmtp.receive(data, 0.0)
        zmtp.receive(SIGNATURE + data, 0.0)
        zmtp.data_to_send()


@given(st.binary(max_size=60))
def test_metadata_are_read_or_refused(data: bytes) -> None:
    try:
        found = read_metadata(data)
    except ValueError:
        return
    assert read_metadata(metadata_bytes(found.items())) == found


@given(st.binary(max_size=40))
def test_packed_parts_are_read_or_refused(data: bytes) -> None:
    try:
        parts = unpack_parts(data)
    except ValueError:
        return
    assert pack_parts(parts) == data


# --- Faults and limits ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "no greeting of ZMTP"),
        (b"\xff" + bytes(8) + b"\x00", "speaks ZMTP 1.0"),
        (SIGNATURE + b"\x03\x01PLAIN".ljust(54, b"\0"), "requires the mechanism 'PLAIN'"),
        (SIGNATURE + REST + b"\x00\x01x", "before READY"),
        (SIGNATURE + REST + command_frame(b"HELLO"), "'HELLO' instead of READY"),
        (SIGNATURE + REST + command_frame(b"READY", b"\x05a"), "metadata end in a name"),
        (SIGNATURE + REST + command_frame(b"READY"), "no socket type ''"),
        (SIGNATURE + REST + b"\x04\x00", "a command has no name"),
        (SIGNATURE + REST + b"\x04\x01\x05", "a command has no name"),
        (SIGNATURE + REST + b"\x05\x01\x00", "a command has one frame"),
        (SIGNATURE + REST + b"\x08\x00", "the flags 0x08"),
        (SIGNATURE + b"\x01\x0b", "no socket type 11"),
        (SIGNATURE + b"\x01\x03\x01\x00", "an identity has at most 255 bytes"),
    ],
)
def test_what_cannot_be_ends_it_with_a_reason(data: bytes, reason: str) -> None:
    zmtp = server()
    (fault,) = zmtp.receive(data, 0.0)
    assert reason in repr(fault)
    assert zmtp.is_over
    assert zmtp.receive(data, 0.0) == []


def test_version_2_has_no_mechanism() -> None:
    (fault,) = server(mechanism=PLAIN).receive(SIGNATURE + b"\x01", 0.0)
    assert "has no mechanism 'PLAIN'" in repr(fault)


LIMITS: Final[dict[str, Any]] = {
    "max_part_bytes": 10,
    "max_message_bytes": 15,
    "max_parts": 3,
    "max_command_bytes": 40,
}


@pytest.mark.parametrize(
    ("parts", "fits"),
    [
        ([10], True),
        ([11], False),
        ([10, 5], True),
        ([10, 6], False),
        ([1, 1, 1], True),
        ([0, 0, 0, 0], False),
    ],
)
def test_parts_are_bounded(parts: list[int], fits: bool) -> None:
    zmtp = connected(**LIMITS)
    (event,) = zmtp.receive(message_frames([bytes(size) for size in parts]), 0.0)
    assert repr(event).startswith("MessageReceived" if fits else "Violation")


def test_what_is_too_large_is_refused_before_it_comes() -> None:
    zmtp = connected(**LIMITS)
    (fault,) = zmtp.receive(b"\x02" + (1 << 62).to_bytes(8, "big"), 0.0)
    assert "10 at most" in repr(fault)
    zmtp = connected(**LIMITS)
    (fault,) = zmtp.receive(b"\x04\x29", 0.0)
    assert "a command has 41 bytes, 40 at most" in repr(fault)


def test_a_large_part_is_held_in_pieces_and_counted() -> None:
    zmtp = connected()
    data = message_frames((bytes(1_000_000),))
    for at in range(0, len(data) - 10, 65_536):
        assert zmtp.receive(data[at : at + 65_536][: len(data) - 10 - at], 0.0) == []
    assert zmtp.held_bytes == len(data) - 10
    (event,) = zmtp.receive(data[-10:], 0.0)
    assert repr(event).startswith("MessageReceived")
    assert zmtp.held_bytes == 0


def test_a_client_says_what_it_is() -> None:
    with pytest.raises(ValueError, match="name a socket type"):
        ZmtpConnection(ZmtpConfig(), 0.0)
    with pytest.raises(ValueError, match="no mechanism 'GSSAPI'"):
        ZmtpConnection(ZmtpConfig(as_server=True, mechanism="GSSAPI"), 0.0)
    with pytest.raises(ValueError, match="at most 255 bytes"):
        client("REQ", identity=bytes(256))


# --- Times ---------------------------------------------------------------------------------------


def test_a_peer_that_says_nothing_is_given_up() -> None:
    zmtp = server(handshake_s=5.0)
    assert zmtp.next_deadline() == 5.0
    assert zmtp.on_deadline(4.9) == []
    (fault,) = zmtp.on_deadline(5.0)
    assert "within 5 seconds" in repr(fault)
    assert zmtp.next_deadline() is None


def test_a_time_to_live_is_kept_unless_the_peer_was_not_read() -> None:
    zmtp = connected()
    zmtp.receive(command_frame(b"PING", b"\x00\x0f"), 10.0)
    assert zmtp.next_deadline() == 11.5
    zmtp.excuse_silence(20.0)
    assert zmtp.next_deadline() == 21.5
    (fault,) = zmtp.on_deadline(21.5)
    assert "nothing was heard for 1.5 seconds" in repr(fault)


def test_a_ping_is_sent_and_must_be_answered() -> None:
    zmtp = connected(heartbeat_s=2.0, heartbeat_timeout_s=3.0)
    zmtp.data_to_send()
    assert zmtp.next_deadline() == 2.0
    assert zmtp.on_deadline(2.0) == []
    assert zmtp.data_to_send() == command_frame(b"PING", b"\x00\x1e")
    assert zmtp.next_deadline() == 4.0
    zmtp.receive(command_frame(b"PONG"), 3.0)
    assert zmtp.on_deadline(4.0) == []
    assert zmtp.on_deadline(6.0) == []
    assert zmtp.next_deadline() == 7.0
    (fault,) = zmtp.on_deadline(7.0)
    assert "not answered within 3 seconds" in repr(fault)


def test_a_peer_that_speaks_all_the_time_was_pinged_once_and_gave_up() -> None:
    zmtp = connected(heartbeat_s=2.0, heartbeat_timeout_s=3.0)
    peer = client("PUSH")
    talk(server(), peer)
    peer.send_message([b"a"])
    for tenths in range(1, 200):
        now = tenths / 10
        zmtp.receive(message_frames([b"a"]), now)
        due = zmtp.next_deadline()
        assert due is not None
        if due <= now:
            assert zmtp.on_deadline(now) == []
        peer.receive(zmtp.data_to_send().removeprefix(SIGNATURE + REST), now)
        due = peer.next_deadline()
        assert due is None or due > now, f"after {now} s the peer thinks that nobody is there"


def test_nobody_is_pinged_before_this_side_has_said_what_it_is() -> None:
    zmtp = server(heartbeat_s=2.0)
    zmtp.receive(SIGNATURE + REST + READY_OF_PUSH, 0.0)
    zmtp.data_to_send()
    assert zmtp.next_deadline() is None
    zmtp.ready("PULL")
    assert zmtp.next_deadline() == 2.0


@pytest.mark.parametrize("size", [1, 19])
def test_a_ping_has_a_time_and_a_short_context(size: int) -> None:
    (fault,) = connected().receive(command_frame(b"PING", bytes(size)), 0.0)
    assert "PING has 2 to 18 bytes" in repr(fault)
