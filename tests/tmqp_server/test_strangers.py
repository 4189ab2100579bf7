"""What a connection costs before its client is accepted, and while it waits for a refusal."""

from __future__ import annotations

import itertools

from tests.tmqp_server.outputs import questions, sent
from tmqp.constants import SERVER_HELLO, TYPE_SERVER
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.limits import Limits
from tmqp_server.access.gate import Decision
from tmqp_server.doors.native.door import NativeDoor, NativeSession
from tmqp_server.engine.books import CONNECTION_BYTES
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import Connect
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.hub.hub import Hub

EARLY = b"\x11" * 50_000


def hub_of(limits: EngineLimits | None = None, *, guarded: bool = False) -> Hub:
    """A hub with one connection, number 7."""
    ids = itertools.count()
    hub = Hub(Broker(limits), guarded=guarded)
    hub.open(7, NativeDoor(lambda: f"{next(ids):032x}", Limits()), 0.0)
    return hub


def hello() -> bytes:
    who = ConnectionInformation("c", token="t" * 5_000, properties={"k": "v" * 4_000})
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
    hub.decide(7, question.ticket, Decision(False), 2.0)
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
    assert not hub.has_room
