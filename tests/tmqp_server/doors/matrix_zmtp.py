"""The adapter of ZeroMQ for the matrix of doors."""

from __future__ import annotations

from collections.abc import Sequence

from tests.tmqp_server.doors.matrix_parts import (
    CHANNEL,
    Adapter,
    Case,
    Consumer,
    Wire,
    one_table,
)
from tests.tmqp_server.doors.matrix_stage import MatrixStage
from tmqp_server.doors.letter import Letter
from tmqp_wires.zmtp import ZmtpConfig, ZmtpConnection
from tmqp_wires.zmtp.events import MessageReceived

__all__ = ["Zmtp"]


class _ZmtpSocket:
    """A socket of one type, after the handshake."""

    def __init__(self, stage: MatrixStage, socket_type: str) -> None:
        self._wire = Wire(stage, "zmtp")
        self.hang_up = self._wire.hang_up
        self.zmtp = ZmtpConnection(ZmtpConfig(socket_type=socket_type), 0.0)
        self._unread: list[bytes] = []
        for _ in range(4):
            self._hear()
            self.flush()

    def flush(self) -> None:
        """Send what is queued."""
        data = self.zmtp.data_to_send()
        if data:
            self._wire.say(data)

    def _hear(self) -> None:
        for event in self.zmtp.receive(self._wire.take(), 0.0):
            if isinstance(event, MessageReceived):
                self._unread.append(event.parts[0])

    def take(self) -> list[bytes]:
        """The messages that have come since the last time."""
        self._hear()
        unread, self._unread = self._unread, []
        return unread


class _ZmtpConsumer(Consumer):
    """A PULL socket."""

    def __init__(self, stage: MatrixStage) -> None:
        self._socket = _ZmtpSocket(stage, "PULL")

    def take(self) -> list[Letter]:
        """See ``Consumer``: nobody acknowledges."""
        return [Letter(body) for body in self._socket.take()]


class Zmtp(Adapter):
    """ZeroMQ: PUSH and PULL sockets."""

    name = "zmtp"
    tables = one_table(protocol="zmtp", options={"queue_channel": CHANNEL, "durable": True})

    def send(self, stage: MatrixStage, cases: Sequence[Case], *, in_a_row: bool) -> None:
        """See ``Adapter``; nothing is confirmed."""
        socket = _ZmtpSocket(stage, "PUSH")
        for case in cases:
            socket.zmtp.send_message((case.letter.body,))
            if not in_a_row:
                socket.flush()
        socket.flush()
        socket.hang_up()

    def consumer(self, stage: MatrixStage) -> Consumer:
        """See ``Adapter``."""
        return _ZmtpConsumer(stage)
