"""The checks of the cases about the wire, the connection, events and routers."""

from __future__ import annotations

from tests.docs.broker import World, hello
from tests.docs.cases import case
from tests.tmqp_server.guarded import GuardedWorld
from tests.tmqp_server.peers import Peer
from tmqp import (
    Connection,
    ConnectionInformation,
    Frame,
    FrameDecoder,
    Limits,
    MessageType,
    Operation,
    Role,
    State,
)
from tmqp.constants import (
    WIRE_OPERATION_OF_DOCUMENT,
    BindingType,
    RouteMethod,
)
from tmqp.models import (
    BindingInformation,
    ChannelEvent,
)
from tmqp_server import EngineLimits

__all__: list[str] = []

SERVER = MessageType.SERVER


@case(1)
def both_numberings() -> None:
    client = World().connect()
    for document, wire in WIRE_OPERATION_OF_DOCUMENT.items():
        if wire == Operation.INSTANCE_LIST:
            continue
        headers = [("Queue-Id", "7")]
        body = b"{}" if wire == Operation.UPDATE_QUEUE else b""
        first = client.ask(document, "by-document", body, headers)
        second = client.ask(wire, "by-wire", body, headers)
        assert first == second != []
    assert client.alive()


@case(2)
def answers_as_asked() -> None:
    client = World().connect()
    for response, acknowledge in ((False, False), (True, False), (False, True), (True, True)):
        client.take()
        client.ask(Operation.JOIN, "ch", pending_response=response, pending_acknowledge=acknowledge)
        kinds = [MessageType.RESPONSE] * response + [MessageType.ACKNOWLEDGE] * acknowledge
        assert [frame.type for frame in client.take()] == kinds


@case(3)
def nobody_waits() -> None:
    server = Connection(Role.SERVER)
    server.receive(b"TMQP/2.0", 0.0)
    assert server.data_to_send() == b"TMQP/2.0"
    client = Connection(Role.CLIENT)
    client.initiate(ConnectionInformation())
    assert len(client.data_to_send()) > 8


@case(4)
def first_line() -> None:
    parse = ConnectionInformation.parse
    ours = parse(b"CONNECT /x\r\nClient-Id: a\r\n")
    theirs = parse(b"tmq://remote-host CONNECT\r\nClient-Id: a\r\n")
    assert (ours.method, ours.path, ours.client_id) == ("CONNECT", "/x", "a")
    assert (theirs.method, theirs.path) == ("CONNECT", "tmq://remote-host")
    assert ConnectionInformation().encode() == b"CONNECT /\r\n"


@case(16)
def client_id_in_use() -> None:
    world = World()
    first = world.connect("same")
    second = world.open()
    second.say(hello("", b"CONNECT /\r\nClient-Id:   same \r\n"))
    assert second.kinds() == ["PreambleReceived", "HandshakeRefused", "ConnectionClosed"]
    assert repr(second.events[1]) == "<HandshakeRefused 503>"
    assert first.alive()


@case(41)
def silence_is_what_was_not_received() -> None:
    server = accepted(Connection(Role.SERVER))
    server.send(Frame.build(MessageType.TERMINATE))
    due = server.next_deadline()
    assert due == Limits().ping_interval_s
    server.receive(Frame.build(MessageType.CUSTOM).raw, 5.0)
    assert server.next_deadline() == 5.0 + Limits().ping_interval_s


def accepted(server: Connection) -> Connection:
    server.receive(hello("c"), 0.0)
    server.accept("c")
    server.data_to_send()
    return server


@case(43)
def foreign_source() -> None:
    client = World().connect("me")
    client.take()
    client.send(Frame.build(MessageType.QUEUE_MESSAGE, "ch", 1, source="you"))
    assert client.kinds() == ["TerminateReceived", "ConnectionClosed"]
    assert not client.alive()


@case(42)
def custom_messages() -> None:
    server = accepted(Connection(Role.SERVER))
    events = server.receive(Frame.build(MessageType.CUSTOM, pending_response=True).raw, 0.0)
    assert [type(event).__name__ for event in events] == ["CustomMessageReceived"]
    client = World().connect()
    client.take()
    client.send(Frame.build(MessageType.CUSTOM, message_id="x", pending_response=True))
    assert (client.events, client.alive()) == ([], True)
    world = GuardedWorld(takes_custom=True)
    Peer(world, "me").say(Frame.build(MessageType.CUSTOM, content_type=7, message_id="x"))
    taken = [question.handed_over for question in world.handed_over]
    frames = [each.wire for each in taken if each is not None]
    assert [frame.content_type for frame in frames if isinstance(frame, Frame)] == [7]


@case(34)
def target_of_a_response() -> None:
    client = World().connect("asker")
    client.ask(Operation.JOIN, "ch")
    assert client.take()[-1].target == "asker"


@case(37)
def type_numbers() -> None:
    assert (MessageType.ACKNOWLEDGE, MessageType.RESPONSE) == (0x13, 0x14)


@case(47)
def bounded_payloads() -> None:
    most = Limits().max_payload_bytes
    assert most == 1_048_576
    decoder = FrameDecoder()
    decoder.feed(bytes([0x11, 16, 0, 0, 0, 0, 0, 254]) + (most + 1).to_bytes(4, "little"))
    assert decoder.error is not None
    assert (decoder.error.rule, decoder.buffered) == ("payload-limit", 0)


@case(48)
def not_utf8() -> None:
    client = World().connect()
    client.say(bytes([0x11, 16, 1, 0, 0, 0, 0, 0, 0xFF]))
    assert client.kinds()[-2:] == ["TerminateReceived", "ConnectionClosed"]
    assert not client.alive()


@case(49)
def empty_header_block() -> None:
    client = World().connect()
    client.say(bytes([0x10, 0xB0, 1, 0, 1, 0x59, 2, 0]) + b"jc" + bytes(2))
    assert [frame.content_type for frame in client.frames()] == [0]
    assert Frame.build(SERVER, headers=[]).has_header is False


@case(50)
def preamble_in_pieces() -> None:
    client = World().open()
    whole = hello("c")
    for at in range(len(whole)):
        client.say(whole[at : at + 1])
    assert client.kinds() == ["PreambleReceived", "HandshakeAccepted"]


@case(51)
def no_hello() -> None:
    client = World().open()
    client.say(b"TMQP/2.0" + Frame.build(SERVER, "ch", Operation.JOIN).raw)
    assert repr(client.events[1]) == "<HandshakeRefused 400>"
    assert not client.alive()


@case(52)
def unreadable_hello() -> None:
    for payload in (b"", b"X: 1\r\nx: 2\r\n", b"\xff", b"Client-Id: a\x01b\r\n"):
        client = World().open()
        client.say(hello("", payload))
        assert repr(client.events[1]) == "<HandshakeRefused 400>"
        assert not client.alive()


@case(53)
def times() -> None:
    limits = Limits()
    assert [limits.handshake_timeout_s, limits.ping_interval_s] == [10.0, 20.0]
    assert limits.max_missed_pings == 1
    server = Connection(Role.SERVER)
    assert server.on_deadline(9.9) == []
    server.on_deadline(10.0)
    assert (server.state, server.data_to_send()) == (State.CLOSED, b"")


@case(54)
def terminate() -> None:
    world = World()
    client = world.connect()
    world.hub.close(client.number, "stopping", 0.0)
    world.flush()
    assert client.kinds()[-2:] == ["TerminateReceived", "ConnectionClosed"]
    server = accepted(Connection(Role.SERVER))
    server.receive(bytes([0x11, 16, 1, 0, 0, 0, 0, 0, 0xFF]), 0.0)
    assert server.data_to_send() == Frame.build(MessageType.TERMINATE, content_type=400).raw


@case(55)
def too_many_clients() -> None:
    world = World(EngineLimits(max_sessions=1))
    world.connect("first")
    second = world.connect("second")
    assert repr(second.events[1]) == "<HandshakeRefused 482>"


@case(31)
def active_clients() -> None:
    for name in (b"ActiveClient", b"ActiveClients"):
        assert ChannelEvent.from_json(b'{"Name":"ch","%s":3}' % name).active_clients == 3
    assert ChannelEvent(name="ch", active_clients=3).to_object()["ActiveClients"] == 3


@case(38)
def routing_numbers() -> None:
    assert [item.name for item in RouteMethod] == ["DISTRIBUTE", "ROUND_ROBIN", "ONLY_FIRST"]
    assert [item.name for item in BindingType] == ["DIRECT", "QUEUE", "HTTP", "TAG"]


@case(39)
def json_of_bindings() -> None:
    keys = list(BindingInformation(name="b").to_object())
    assert len(set(keys)) == len(keys)
    assert keys[4] == "Interaction"
