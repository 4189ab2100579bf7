"""What a connection costs before its client is accepted, and while it waits for a refusal."""

from __future__ import annotations

import itertools

from tests.tmqp_server.outputs import questions, sent
from tmqp.constants import SERVER_HELLO, TYPE_QUEUE_MESSAGE, TYPE_SERVER
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.limits import Limits
from tmqp_server.access.gate import Verdict
from tmqp_server.doors.native.door import NativeDoor, NativeSession
from tmqp_server.engine.books import CONNECTION_BYTES
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import Connect, RemoveChannel
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.hub.hub import Hub

EARLY = b"\x11" * 50_000


def hub_of(limits: EngineLimits | None = None, *, guarded: bool = False) -> Hub:
    """A hub with one connection, number 7."""
    ids = itertools.count()
    hub = Hub(Broker(limits), guarded=guarded)
    hub.open(7, NativeDoor(lambda: f"{next(ids):032x}", Limits()), 0.0)
    return hub


def hello(client_id: str = "c") -> bytes:
    who = ConnectionInformation(client_id, token="t" * 5_000, properties={"k": "v" * 4_000})
    return b"TMQP/2.0" + Frame.build(TYPE_SERVER, "", SERVER_HELLO, who.encode()).raw


def state(hub: Hub) -> int:
    return hub.broker.statistics().state_bytes


def test_a_client_that_waits_for_its_refusal_kept_all_it_had_sent() -> None:
    hub = hub_of(guarded=True)
    hub.receive(7, hello() + EARLY, 1.0)
    (question,) = questions(hub)
    assert state(hub) > CONNECTION_BYTES + len(EARLY)
    hub.forget_hello(7, question.ticket)
    assert state(hub) == CONNECTION_BYTES
    assert isinstance(question.command, Connect)
    assert question.command.properties is None
    hub.decide(7, question.ticket, Verdict(False), 2.0)
    assert Frame.build(TYPE_SERVER, "", 401).raw[6:8] in sent(hub, 7)
    hub.forget(7, 3.0)
    assert state(hub) == 0


def test_a_token_is_forgotten_when_its_client_is_accepted() -> None:
    hub = hub_of()
    hub.receive(7, hello(), 1.0)
    (session,) = hub.broker._core.sessions.values()
    assert session.properties == {"k": "v" * 4_000}
    door_session = hub._sessions[7]
    assert isinstance(door_session, NativeSession)
    assert door_session._connection.information is None
    hub.forget(7, 2.0)
    assert state(hub) == 0


def test_a_stranger_is_closed_when_there_is_no_memory_for_what_it_sends() -> None:
    hub = hub_of(EngineLimits(max_total_bytes=1_000))
    whole = hello()[:-1]
    number = 7
    while not hub.close_reason(number):
        hub.receive(number, whole, 1.0)
        if hub.close_reason(number):
            break
        number += 1
        hub.open(number, NativeDoor(lambda: "id", Limits()), 0.0)
    assert "no memory" in hub.close_reason(number)
    assert number > 10, "there are 256 KiB"
    assert not hub.has_room()


def test_the_beginnings_of_large_messages_were_kept_beside_the_books() -> None:
    """10,000 clients could hold 1 MiB each of a message that never ended."""
    hub = hub_of()
    hub.receive(7, hello(), 1.0)
    accepted = state(hub)
    message = Frame.build(TYPE_QUEUE_MESSAGE, "ch", 1, b"x" * 50_000, message_id="m").raw
    hub.receive(7, message[:10_000], 1.0)
    assert state(hub) == accepted, "a connection is charged so much"
    hub.receive(7, message[10_000:40_000], 1.0)
    assert state(hub) == accepted + 40_000
    hub.receive(7, message[40_000:] + message[:20_000], 1.0)
    assert hub.broker._core.message_bytes > 50_000
    charged = state(hub)
    hub.receive(7, message[20_000:], 1.0)
    assert state(hub) == charged - 20_000
    hub.receive(7, message[:30_000], 1.0)
    hub.forget(7, 2.0)
    hub.broker.step(RemoveChannel(7, None, "ch"), 2.0)
    hub.open(8, NativeDoor(lambda: "id", Limits()), 3.0)
    hub.receive(8, hello(), 3.0)
    assert state(hub) == charged - 20_000, "all of it is given back"


def test_who_begins_a_large_message_is_closed_when_there_is_no_memory_for_it() -> None:
    hub = hub_of(EngineLimits(max_total_bytes=1_000))
    message = Frame.build(TYPE_QUEUE_MESSAGE, "ch", 1, b"x" * 60_000, message_id="m").raw
    for number in range(7, 11):
        if number > 7:
            hub.open(number, NativeDoor(lambda: "id", Limits()), 0.0)
        hub.receive(number, hello(f"c{number}"), 1.0)
    for number in range(7, 11):
        hub.receive(number, message[:-1], 1.0)
    assert hub.close_reason(8) == ""
    assert hub.close_reason(10) == "there is no memory for a message of this size"
    assert not hub.has_room()
    hub.forget(9, 2.0)
    hub.forget(10, 2.0)
    assert hub.has_room()
