"""CURVE: golden handshakes by PyNaCl alone, both roles, every cut, wrong boxes, times."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tmqp_wires.zmtp import CurveKeys, ZmtpConfig, ZmtpConnection
from tmqp_wires.zmtp.config import CURVE, SOCKET_TYPES, is_pair
from tmqp_wires.zmtp.events import Event, MessageReceived, PeerReady
from tmqp_wires.zmtp.frames import command_frame, message_frames

pytest.importorskip("nacl", reason="PyNaCl is not installed: pip install 'tmqp[zmtp]'")

from nacl.bindings import crypto_scalarmult_base

from tests.tmqp_wires.zmtp.curve_peers import (
    CLIENT_SECRET,
    GREETING,
    SERVER_PUBLIC,
    SERVER_SECRET,
    Drawn,
    RawClient,
    RawServer,
    curve_client,
    curve_server,
    introduced,
)
from tests.tmqp_wires.zmtp.talking import talk
from tmqp_wires.zmtp.sodium import sodium

CLIENT_PUBLIC: Final = crypto_scalarmult_base(CLIENT_SECRET)
SIZES: Final = (0, 1, 222, 223, 255, 256, 8_192, 1_048_576)
TRANSIENT: Final = bytes(range(201, 233))

_Peer = TypeVar("_Peer")
#: What a peer says: bytes, or what it makes of its keys.
Said = bytes | Callable[[_Peer], bytes]


def made(said: Said[_Peer], peer: _Peer) -> bytes:
    return said if isinstance(said, bytes) else said(peer)


def told(events: list[Event]) -> list[str]:
    return [repr(event) for event in events]


def greeted(zmtp: ZmtpConnection) -> ZmtpConnection:
    """A side that has heard a greeting of CURVE, and what it said then is taken off."""
    assert zmtp.receive(GREETING, 0.0) == []
    assert zmtp.data_to_send()[:64] == GREETING[:32] + zmtp_as_server(zmtp) + bytes(31)
    return zmtp


def zmtp_as_server(zmtp: ZmtpConnection) -> bytes:
    return bytes((zmtp._config.as_server,))


def welcomed(client: RawClient | None = None, **changes: Any) -> tuple[ZmtpConnection, RawClient]:
    """Our server, that has made a client welcome."""
    zmtp = curve_server(**changes)
    greeted(zmtp)
    client = client or RawClient(TRANSIENT)
    assert zmtp.receive(client.hello(), 0.0) == []
    client.read_welcome(zmtp.data_to_send())
    return zmtp, client


def connected(
    socket_type: bytes = b"PUSH", ours: str = "PULL", **changes: Any
) -> tuple[ZmtpConnection, RawClient]:
    """Our server, at the end of a handshake with a client whose number is 2; ours is 1."""
    zmtp, client = welcomed(**changes)
    (ready,) = zmtp.receive(client.initiate(introduced(socket_type)), 0.0)
    assert isinstance(ready, PeerReady)
    zmtp.ready(ours)
    client.read_ready(zmtp.data_to_send())
    return zmtp, client


def fault_of(events: list[Event]) -> str:
    (fault,) = events
    return repr(fault)


# --- Golden handshakes ---------------------------------------------------------------------------


def test_our_server_and_a_client_by_pynacl_alone() -> None:
    zmtp = curve_server(Drawn(b"server"))
    assert zmtp.data_to_send() == GREETING[:11]
    zmtp.receive(GREETING, 0.0)
    assert zmtp.data_to_send() == GREETING[11:32] + b"\x01" + bytes(31)
    client = RawClient(TRANSIENT)
    assert zmtp.receive(client.hello(), 0.0) == []
    drawn = Drawn(b"server")
    expected = RawServer(drawn.random(32), drawn.random(32))
    expected.client = crypto_scalarmult_base(TRANSIENT)
    cookie_nonce, nonce = drawn.random(16), drawn.random(16)
    welcome = zmtp.data_to_send()
    assert welcome == expected.welcome(nonce, cookie_nonce), "WELCOME, byte for byte"
    client.read_welcome(welcome)
    (ready,) = zmtp.receive(client.initiate(introduced() + b"\x07X-Hello\0\0\0\x05World"), 0.0)
    assert isinstance(ready, PeerReady)
    assert (ready.socket_type, ready.properties) == ("PUSH", {"x-hello": b"World"})
    assert ready.public_key == CLIENT_PUBLIC
    zmtp.ready("PULL")
    assert zmtp.data_to_send() == expected.ready(introduced(b"PULL")), "READY, byte for byte"
    assert told(zmtp.receive(client.message(3, b"\1part") + client.message(4, b"\0end"), 0.0)) == [
        "MessageReceived([b'part', b'end'])"
    ]
    zmtp.send_message([b"a", b"bc"])
    said = zmtp.data_to_send()
    assert said == expected.message(2, b"\1a") + expected.message(3, b"\0bc")


def test_our_client_and_a_server_by_pynacl_alone() -> None:
    zmtp = curve_client("DEALER", Drawn(b"client"), identity=b"me")
    assert zmtp.data_to_send() == GREETING[:11]
    zmtp.receive(GREETING, 0.0)
    data = zmtp.data_to_send()
    assert data[:53] == GREETING[11:], "a client is no server"
    transient = Drawn(b"client").random(32)
    assert data[53:] == RawClient(transient).hello(), "HELLO, byte for byte"
    server = RawServer(bytes(range(50, 82)), bytes(32))
    server.read_hello(data[53:])
    assert zmtp.receive(server.welcome(), 0.0) == []
    public, metadata = server.read_initiate(zmtp.data_to_send())
    assert public == CLIENT_PUBLIC
    assert metadata == introduced(b"DEALER") + b"\x08Identity\0\0\0\x02me"
    (ready,) = zmtp.receive(server.ready(introduced(b"ROUTER")), 0.0)
    assert isinstance(ready, PeerReady)
    assert (ready.socket_type, ready.public_key) == ("ROUTER", SERVER_PUBLIC)
    assert told(zmtp.receive(server.message(2, b"\0hi"), 0.0)) == ["MessageReceived([b'hi'])"]
    zmtp.send_message([b"answer"])
    raw = RawClient(transient)
    raw.read_welcome(server.welcome())
    assert zmtp.data_to_send() == raw.message(3, b"\0answer")


@pytest.mark.parametrize("socket_type", SOCKET_TYPES)
def test_each_type_meets_its_mirror(socket_type: str) -> None:
    one, other = curve_server(), curve_client(socket_type)
    (ready,), (answer,) = talk(one, other)
    assert isinstance(ready, PeerReady)
    assert isinstance(answer, PeerReady)
    assert is_pair(socket_type, answer.socket_type)
    assert (ready.public_key, answer.public_key) == (CLIENT_PUBLIC, SERVER_PUBLIC)


def test_what_is_sent_in_both_roles_comes_and_is_in_no_byte_of_the_wire() -> None:
    one, other = curve_server(), curve_client()
    talk(one, other)
    for sender, receiver in ((one, other), (other, one)):
        for size in SIZES:
            sender.send_message([b"secret topic", bytes(size), b"secret end"])
            wire = sender.data_to_send()
            assert b"secret" not in wire
            (event,) = receiver.receive(wire, 0.0)
            assert isinstance(event, MessageReceived)
            assert event.parts == [b"secret topic", bytes(size), b"secret end"]


def test_subscriptions_and_pings_travel_in_boxes() -> None:
    one, other = curve_server(), curve_client("SUB", heartbeat_s=1.0, heartbeat_timeout_s=2.0)
    talk(one, other)
    other.subscribe(b"A")
    other.cancel(b"A")
    other.send_message([b"\x01B"])
    other.on_deadline(1.0)
    wire = other.data_to_send()
    assert b"SUBSCRIBE" not in wire
    assert b"PING" not in wire
    assert told(one.receive(wire, 1.0)) == ["Subscribe(b'A')", "Cancel(b'A')", "Subscribe(b'B')"]
    pong = one.data_to_send()
    assert b"PONG" not in pong
    assert len(pong) == 2 + 33 + len(b"\x04PONG")
    assert other.receive(pong, 1.5) == []
    assert other.next_deadline() == 2.0, "the answer was heard, and the next PING is due"


def test_a_message_may_also_be_a_command_as_the_rfc_has_it() -> None:
    zmtp, client = connected()
    message = client.message(3, b"\0x")
    assert told(zmtp.receive(b"\x04" + message[1:], 0.0)) == ["MessageReceived([b'x'])"]


def test_a_client_that_is_refused_hears_why() -> None:
    one, other = curve_server(), curve_client()
    greeting = one.data_to_send()
    other.receive(greeting, 0.0)
    for _ in range(4):
        if any(isinstance(event, PeerReady) for event in one.receive(other.data_to_send(), 0.0)):
            break
        other.receive(one.data_to_send(), 0.0)
    one.refuse("400")
    assert told(other.receive(one.data_to_send(), 0.0)) == ["PeerError('400')"]


# --- Cut-up bytes --------------------------------------------------------------------------------

PARTS = st.lists(
    st.one_of(st.binary(max_size=40), st.integers(200, 260).map(bytes)), min_size=1, max_size=3
)


@given(st.lists(PARTS, min_size=1, max_size=4), st.lists(st.integers(1, 90), max_size=60))
def test_every_cut_gives_the_same_events(messages: list[list[bytes]], cuts: list[int]) -> None:
    """A server that draws the same bytes hears what was said to the first one."""
    client = RawClient(TRANSIENT)
    first = curve_server(Drawn(b"cut"))
    greeted(first)
    first.receive(client.hello(), 0.0)
    client.read_welcome(first.data_to_send())
    number = 2
    said: list[bytes] = []
    for parts in messages:
        for place, part in enumerate(parts):
            number += 1
            more = place < len(parts) - 1
            said.append(client.message(number, bytes((more,)) + part))
    data = b"".join((GREETING, client.hello(), client.initiate()))
    zmtp = curve_server(Drawn(b"cut"))
    found: list[Event] = []
    for chunk in _cut(data, cuts):
        found += zmtp.receive(chunk, 0.0)
    assert [type(event) for event in found] == [PeerReady]
    zmtp.ready("PULL")
    for chunk in _cut(b"".join(said), cuts):
        found += zmtp.receive(chunk, 0.0)
    assert told(found[1:]) == [f"MessageReceived({parts!r})" for parts in messages]
    assert zmtp.held_bytes == 0


def _cut(data: bytes, cuts: list[int]) -> list[bytes]:
    chunks: list[bytes] = []
    at = 0
    for cut in cuts:
        chunks.append(data[at : at + cut])
        at += cut
    return [*chunks, data[at:]]


@given(st.data())
def test_a_bit_that_has_changed_ends_it(data: st.DataObject) -> None:
    zmtp, client = connected()
    wire = bytearray(client.message(3, b"\0" + bytes(20)))
    bit = data.draw(st.integers(16, len(wire) * 8 - 1))
    wire[bit // 8] ^= 1 << bit % 8
    (event,) = zmtp.receive(bytes(wire), 0.0)
    assert repr(event).startswith("Violation")
    assert zmtp.is_over


@given(st.binary(max_size=300))
def test_whatever_comes_is_an_event(data: bytes) -> None:
    sides: list[Callable[[], ZmtpConnection]] = [
        lambda: greeted(curve_server()),
        lambda: welcomed()[0],
        lambda: connected()[0],
        curve_client,
    ]
    for side in sides:
        zmtp = side()
        zmtp.receive(data, 0.0)
        zmtp.receive(GREETING + data, 0.0)
        zmtp.data_to_send()


@settings(max_examples=20)
@given(st.integers(1, 285))
def test_a_handshake_that_ends_early_is_no_peer(size: int) -> None:
    zmtp, client = welcomed()
    assert zmtp.receive(client.initiate()[:size], 0.0) == []
    assert not zmtp.is_over


# --- Boxes that are not right --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda c: c.hello()[:-1].replace(b"\xc8", b"\xc7", 1), "HELLO has 199 bytes, it must"),
        (command_frame(b"HELLO", bytes(195)), "a command has 201 bytes, 200 at most"),
        (b"\x06" + (1 << 40).to_bytes(8, "big"), "200 at most"),
        (lambda c: c.hello(version=b"\2\0"), "speaks CURVE 2.0, here it is 1.0"),
        (lambda c: c.hello(padding=b"x" * 72), "the padding of HELLO is not zeros"),
        (lambda c: c.hello(text=b"x" * 64), "does not hold zeros"),
        (lambda c: c.hello(number=0), "the number 0 of HELLO is not above the previous one"),
        (lambda c: c.hello(public=bytes(32)), "a public key is invalid"),
        (lambda c: c.hello(public=b"x" * 32), "the box of HELLO cannot be opened"),
        (command_frame(b"INITIATE", bytes(190)), "'INITIATE' instead of HELLO"),
        (b"\x00\x01x", "a message came before READY"),
        (b"\x02" + (1 << 20).to_bytes(8, "big"), "a message came before READY"),
    ],
)
def test_a_hello_that_is_not_right_is_not_answered(make: Said[RawClient], reason: str) -> None:
    zmtp = greeted(curve_server())
    assert reason in fault_of(zmtp.receive(made(make, RawClient(TRANSIENT)), 0.0))
    assert zmtp.data_to_send() == b""


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda c: c.initiate(cookie=bytes(96)), "the box of the cookie cannot be opened"),
        (
            lambda c: c.initiate(number=1),
            "the number 1 of INITIATE is not above the previous one, 1",
        ),
        (lambda c: c.initiate(vouched=bytes(64)), "the vouch is for another connection"),
        (lambda c: c.initiate(vouched=bytes(c.transient.public_key) + bytes(32)), "the vouch is"),
        (lambda c: c.initiate(public=SERVER_PUBLIC), "the box of the vouch cannot be opened"),
        (command_frame(b"INITIATE", bytes(247)), "INITIATE has 256 bytes, it must have"),
        (lambda c: c.initiate(b"\x05a"), "metadata end in a name"),
        (lambda c: c.initiate(introduced(b"NOSUCH")), "there is no socket type 'NOSUCH'"),
        (lambda c: c.initiate(introduced() + bytes(100)), "118 at most"),
        (lambda c: c.hello(), "'HELLO' instead of INITIATE"),
    ],
)
def test_an_initiate_that_is_not_right_ends_it(make: Said[RawClient], reason: str) -> None:
    zmtp, client = welcomed(max_command_bytes=50)
    reason = reason.replace("118", str(9 + 96 + 8 + 144 + 50))
    assert reason in fault_of(zmtp.receive(made(make, client), 0.0))
    assert zmtp.data_to_send() == b""


def test_a_cookie_is_good_for_its_own_connection_once() -> None:
    client = RawClient(TRANSIENT)
    _, client = welcomed(client)
    stolen = client.initiate()
    other, _ = welcomed(RawClient(TRANSIENT))
    assert "the cookie cannot be opened" in fault_of(other.receive(stolen, 0.0))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda c: c.message(2, b"\0x"), "the MESSAGE 2 follows 2"),
        (lambda c: c.message(3, b"\0x")[:1] + b"\x20" + bytes(32), "32 bytes, not 33 to 100033"),
        (lambda c: c.message(3, b"\4x"), "a box has the flags 0x04"),
        (lambda c: c.message(3, b"\3\4PING\0\0"), "a command has one frame"),
        (lambda c: c.message(3, b"\2"), "a command has no name"),
        (lambda c: c.message(3, b"\2" + b"x" * 51), "a command has 51 bytes, 50 at most"),
        (lambda c: b"\1" + c.message(3, b"\0x")[1:], "a frame with a box has the flags 0x01"),
        (lambda c: b"\x08" + c.message(3, b"\0x")[1:], "a frame with a box has the flags 0x08"),
        (message_frames([b"in the clear" * 5]), "an unencrypted frame"),
        (command_frame(b"ERROR", b"\x27" + b"x" * 39), "an unencrypted frame"),
        (b"\x02" + (100_034).to_bytes(8, "big"), "100034 bytes, not 33 to 100033"),
        (lambda c: c.message(3, b"\1" + bytes(60_000)) + c.message(4, bytes(60_000)), "more than"),
    ],
)
def test_a_message_that_is_not_right_ends_it(make: Said[RawClient], reason: str) -> None:
    zmtp, client = connected(max_message_bytes=100_000, max_command_bytes=50)
    assert reason in fault_of(zmtp.receive(made(make, client), 0.0))
    assert zmtp.is_over
    assert zmtp.held_bytes == 0


def test_boxes_that_come_again_or_out_of_order_end_it() -> None:
    zmtp, client = connected()
    third, fourth = client.message(3, b"\0x"), client.message(4, b"\0y")
    events = zmtp.receive(fourth + third, 0.0)
    assert told(events[:1]) == ["MessageReceived([b'y'])"]
    assert "the MESSAGE 3 follows 4" in fault_of(events[1:])
    zmtp, client = connected()
    third = client.message(3, b"\0x")
    assert "the MESSAGE 3 follows 3" in fault_of(zmtp.receive(third + third, 0.0)[1:])


def test_numbers_may_be_left_out() -> None:
    zmtp, client = connected()
    assert told(zmtp.receive(client.message((1 << 64) - 1, b"\0x"), 0.0)) == [
        "MessageReceived([b'x'])"
    ]


def test_a_message_before_our_ready_ends_it() -> None:
    zmtp, client = welcomed()
    events = zmtp.receive(client.initiate() + client.message(3, b"\0x"), 0.0)
    assert isinstance(events[0], PeerReady)
    assert "a message came before READY" in fault_of(events[1:])
    zmtp, client = welcomed()
    events = zmtp.receive(client.initiate() + command_frame(b"PING", b"\0\0"), 0.0)
    assert "before READY" in fault_of(events[1:])


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda s: s.welcome()[:-1] + b"x", "the box of WELCOME cannot be opened"),
        (command_frame(b"WELCOME", bytes(161)), "WELCOME has 169 bytes, it must have"),
        (command_frame(b"READY", bytes(30)), "'READY' instead of WELCOME"),
        (lambda s: s.welcome() + s.ready(introduced())[:-1] + b"x", "the box of READY"),
        (lambda s: s.welcome() + s.ready(introduced(), 0), "the number 0 of READY"),
        (lambda s: s.welcome() + command_frame(b"READY", bytes(23)), "READY has 29 bytes"),
        (lambda s: s.welcome() + s.welcome(), "'WELCOME' instead of READY"),
    ],
)
def test_a_server_that_is_not_right_is_left(make: Said[RawServer], reason: str) -> None:
    zmtp = greeted(curve_client())
    hello = curve_client(cryptography=Drawn(b"x"))
    hello.data_to_send()
    server = RawServer(bytes(range(50, 82)), bytes(32))
    zmtp = curve_client(cryptography=Drawn(b"x"))
    zmtp.receive(GREETING, 0.0)
    server.read_hello(zmtp.data_to_send()[64:])
    assert reason in fault_of(zmtp.receive(made(make, server), 0.0))


def test_who_knows_another_server_key_gets_nowhere() -> None:
    one, other = curve_server(), curve_client(server_key=CLIENT_PUBLIC)
    heard, _ = talk(one, other)
    assert "the box of HELLO cannot be opened" in fault_of(heard)


def test_two_servers_have_nothing_to_say_to_each_other() -> None:
    heard, answered = talk(curve_server(), curve_server())
    assert "both sides are servers of CURVE" in fault_of(heard)
    assert "both sides are servers of CURVE" in fault_of(answered)


def test_version_2_has_no_mechanism() -> None:
    (fault,) = curve_server().receive(GREETING[:10] + b"\x01", 0.0)
    assert "has no mechanism 'CURVE'" in repr(fault)


# --- Times ---------------------------------------------------------------------------------------


def test_the_key_of_a_cookie_is_forgotten_after_a_minute() -> None:
    zmtp = curve_server(handshake_s=1_000.0)
    zmtp.receive(GREETING, 0.0)
    zmtp.data_to_send()
    client = RawClient(TRANSIENT)
    zmtp.receive(client.hello(), 100.0)
    client.read_welcome(zmtp.data_to_send())
    assert zmtp.next_deadline() == 160.0
    assert zmtp._mechanism._cookie_key  # type: ignore[attr-defined]
    assert "within 60 seconds" in fault_of(zmtp.on_deadline(160.0))
    assert not zmtp._mechanism._cookie_key  # type: ignore[attr-defined]
    assert zmtp.receive(client.initiate(), 160.0) == []


def test_between_welcome_and_initiate_nothing_of_the_client_is_kept() -> None:
    zmtp, client = welcomed()
    kept = [value for value in vars(zmtp._mechanism).values() if isinstance(value, bytes)]
    kept = [value for value in kept if value]
    assert len(kept) == 1, "the key of the cookie"
    zmtp.receive(client.initiate(), 0.0)
    zmtp.ready("PULL")
    kept = [value for value in vars(zmtp._mechanism).values() if isinstance(value, bytes)]
    assert [value for value in kept if value] == [introduced(), CLIENT_PUBLIC]


def test_a_handshake_has_its_time() -> None:
    zmtp, _ = welcomed(handshake_s=5.0)
    assert zmtp.next_deadline() == 5.0
    assert "within 5 seconds" in fault_of(zmtp.on_deadline(5.0))


# --- Keys ----------------------------------------------------------------------------------------


def test_sides_that_cannot_be() -> None:
    keys = CurveKeys(cryptography=sodium(), secret_key=SERVER_SECRET)
    assert "secret" not in repr(keys)
    assert keys.public_key == SERVER_PUBLIC
    with pytest.raises(ValueError, match="CURVE needs keys"):
        ZmtpConfig(as_server=True, mechanism=CURVE)
    with pytest.raises(ValueError, match="needs the key of its server"):
        ZmtpConfig(socket_type="PUSH", mechanism=CURVE, keys=keys)
    with pytest.raises(ValueError, match="has 32 bytes"):
        CurveKeys(cryptography=sodium(), secret_key=b"short")


def test_without_pynacl_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name="nacl")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ModuleNotFoundError, match=r"PyNaCl: install tmqp\[zmtp\]"):
        sodium()
