"""The two ends of a connection in the states that tests start from."""

from __future__ import annotations

from tmqp import (
    Connection,
    ConnectionClosed,
    ConnectionInformation,
    Event,
    Frame,
    Limits,
    ProtocolViolated,
    RemoteProtocolError,
    Role,
)

__all__ = [
    "ACCEPTED",
    "HELLO",
    "HELLO_TEXT",
    "PING",
    "PONG",
    "PREAMBLE",
    "open_client",
    "open_server",
    "server",
    "types",
    "violation",
    "waiting_client",
]

PREAMBLE = b"TMQP/2.0"
HELLO_TEXT = b"CONNECT /\r\nClient-Id: c\r\n"
HELLO = Frame.build(0x10, "", 101, HELLO_TEXT).raw
ACCEPTED = Frame.build(0x10, "c", 202).raw
PING = bytes.fromhex("89ff000000000000")
PONG = bytes.fromhex("8aff000000000000")


def server(*chunks: bytes, limits: Limits | None = None) -> Connection:
    """A server that has been sent these bytes, with nothing decided."""
    connection = Connection(Role.SERVER, limits)
    for chunk in chunks:
        connection.receive(chunk, 0.0)
    return connection


def open_server(limits: Limits | None = None) -> Connection:
    """A server on which messages flow."""
    connection = server(PREAMBLE + HELLO, limits=limits)
    connection.accept("c")
    connection.data_to_send()
    return connection


def waiting_client(limits: Limits | None = None) -> Connection:
    """A client that has said everything and heard nothing."""
    connection = Connection(Role.CLIENT, limits)
    connection.initiate(ConnectionInformation("c"))
    connection.data_to_send()
    return connection


def open_client(limits: Limits | None = None) -> Connection:
    """A client on which messages flow."""
    connection = waiting_client(limits)
    connection.receive(PREAMBLE + ACCEPTED, 0.0)
    return connection


def types(events: list[Event]) -> list[type[Event]]:
    """The classes of events."""
    return [type(event) for event in events]


def violation(events: list[Event]) -> RemoteProtocolError:
    """The one violation at the end of these events."""
    *_, found, closed = events
    assert isinstance(found, ProtocolViolated)
    assert isinstance(closed, ConnectionClosed)
    return found.error
