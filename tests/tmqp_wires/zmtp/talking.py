"""Two connections of ZMTP that talk to each other, for tests."""

from __future__ import annotations

from tmqp_wires.zmtp import ZmtpConnection
from tmqp_wires.zmtp.config import mirror_of
from tmqp_wires.zmtp.events import Event, PeerReady

__all__ = ["talk"]


def talk(one: ZmtpConnection, other: ZmtpConnection) -> tuple[list[Event], list[Event]]:
    """Let them exchange bytes until both are silent; a side that mirrors says what it is.

    :returns: what each has heard.
    """
    heard: tuple[list[Event], list[Event]] = ([], [])
    for _ in range(20):
        moved = False
        for sender, receiver, events in ((one, other, heard[1]), (other, one, heard[0])):
            data = sender.data_to_send()
            for event in receiver.receive(data, 0.0):
                events.append(event)
                if isinstance(event, PeerReady):
                    receiver.ready(mirror_of(event.socket_type))
            moved = moved or bool(data)
        if not moved:
            return heard
    raise AssertionError("they talk for ever")
