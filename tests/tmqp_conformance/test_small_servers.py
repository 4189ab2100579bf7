"""What the small servers do with what a fuzzer found: they neither raise nor pass it on."""

from __future__ import annotations

import pytest

from tmqp import Connection, ConnectionInformation, Frame, MessageType, Role
from tmqp.testing.conformance import Machine
from tmqp_conformance.keeper import PROBE
from tmqp_conformance.zoo.server import SmallServer
from tmqp_conformance.zoo.stomp import SmallStomp
from tmqp_conformance.zoo.zmtp import SmallZmtp
from tmqp_wires.zmtp import ZmtpConfig, ZmtpConnection
from tmqp_wires.zmtp.events import MessageReceived


def opened(machine: Machine) -> int:
    """A new connection's number."""
    number = machine.open(PROBE, 0.0)
    assert number is not None
    return number


def test_a_message_without_a_target_is_not_for_a_client_without_an_id() -> None:
    machine = SmallServer()
    silent, sender = opened(machine), opened(machine)
    client = Connection(Role.CLIENT, now=0.0)
    client.initiate(ConnectionInformation(client_id="me"))
    machine.receive(sender, client.data_to_send(), 0.0)
    list(client.receive(machine.take(sender), 0.0))
    client.send(
        Frame.build(MessageType.DIRECT_MESSAGE, "", 1, message_id="1", pending_response=True)
    )
    machine.receive(sender, client.data_to_send(), 0.0)
    assert machine.take(silent) == b""
    assert machine.take(sender)


@pytest.mark.parametrize("sent", [[b"no delimiter"], [b"envelope", b""]], ids=["none", "last"])
def test_a_reply_without_a_body_is_not_carried_on(sent: list[bytes]) -> None:
    machine = SmallZmtp()
    asker, worker = (ZmtpConnection(ZmtpConfig(socket_type=kind), 0.0) for kind in ("REQ", "REP"))
    sockets = {opened(machine): asker, opened(machine): worker}

    def talk() -> list[list[bytes]]:
        """Exchange bytes until all are silent; the messages that come."""
        messages: list[list[bytes]] = []
        for _ in range(8):
            for number, socket in sockets.items():
                machine.receive(number, socket.data_to_send(), 0.0)
                heard = socket.receive(machine.take(number), 0.0)
                messages += [each.parts for each in heard if isinstance(each, MessageReceived)]
        return messages

    talk()
    asker.send_message([b"", b"question"])
    assert [each[-1] for each in talk()] == [b"question"]
    worker.send_message(sent)
    assert talk() == []
    worker.send_message([b"", b"answer"])
    assert [each[-1] for each in talk()] == [b"answer"]


def test_a_header_without_a_name_is_refused() -> None:
    machine = SmallStomp()
    number = opened(machine)
    machine.receive(number, b"CONNECT\naccept-version:1.2\nhost:h\n\n\0", 0.0)
    assert machine.take(number).startswith(b"CONNECTED\n")
    machine.receive(number, b"SEND\ndestination:/queue/q\n:value\n\n\0", 0.0)
    assert machine.take(number).startswith(b"ERROR\n")
    assert machine.is_closed(number)
