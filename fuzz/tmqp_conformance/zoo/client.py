"""A small client without I/O that carries out the tasks of the suite; right in what it does.

The broken clients of the zoo change one of its methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tmqp import (
    Connection,
    ConnectionInformation,
    DirectMessageReceived,
    Event,
    Frame,
    FrameDecoder,
    HandshakeAccepted,
    MessageType,
    Operation,
    QueueMessageReceived,
    ResponseReceived,
    Role,
    State,
)
from tmqp.testing.conformance import Case

__all__ = ["SmallClient"]

_CHANNEL: Final = "conformance"
_PREAMBLE_BYTES: Final = 8


class SmallClient:
    """Connects once for each case, and does its task; a client that reconnects does so when its
    connection has ended."""

    def __init__(self) -> None:
        self._connections: dict[int, Connection] = {}
        self._begun: dict[int, FrameDecoder] = {}
        self._tasks: dict[int, str] = {}
        self._ids = 0
        self._waiting: dict[str, Callable[[Connection], None]] = {}

    def open(self, case: Case, now: float) -> int:
        """A new connection."""
        number = len(self._connections) + 1
        connection = self._connections[number] = Connection(Role.CLIENT, now=now)
        self._tasks[number] = case.task
        connection.initiate(ConnectionInformation("ours", "service"), self._new_id())
        return number

    def _new_id(self) -> str:
        self._ids += 1
        return f"{self._ids:032x}"

    def receive(self, number: int, data: bytes, now: float) -> None:
        """Bytes arrive."""
        connection = self._connections[number]
        for event in connection.receive(data, now):
            if connection.state is not State.CLOSED:
                self._act(connection, self._tasks[number], event)

    def _act(self, connection: Connection, task: str, event: Event) -> None:
        if isinstance(event, HandshakeAccepted):
            self._begin(connection, task)
        elif isinstance(event, ResponseReceived) and not event.frame.source:
            todo = self._waiting.pop(event.frame.message_id, None)
            if todo is not None:
                todo(connection)
        elif isinstance(event, DirectMessageReceived) and task == "echo":
            request = event.frame
            if request.pending_response:
                connection.send(
                    Frame.build(
                        MessageType.RESPONSE,
                        request.source,
                        0,
                        request.payload,
                        message_id=request.message_id,
                        first_acquirer=request.first_acquirer,
                        high_priority=request.high_priority,
                    )
                )
        elif isinstance(event, QueueMessageReceived) and task == "consume":
            message = event.frame
            if message.pending_acknowledge:
                connection.send(
                    Frame.build(
                        MessageType.ACKNOWLEDGE,
                        message.target,
                        message.content_type,
                        message_id=message.message_id,
                    )
                )

    def _begin(self, connection: Connection, task: str) -> None:
        if task in ("join", "consume", "pull"):
            request = self._new_id()
            if task == "pull":
                self._waiting[request] = self._pull
            connection.send(
                Frame.build(
                    MessageType.SERVER,
                    _CHANNEL,
                    Operation.JOIN,
                    message_id=request,
                    pending_response=True,
                )
            )
        elif task == "push":
            connection.send(
                Frame.build(
                    MessageType.QUEUE_MESSAGE,
                    _CHANNEL,
                    1,
                    b"hello",
                    message_id=self._new_id(),
                    pending_acknowledge=True,
                )
            )

    def _pull(self, connection: Connection) -> None:
        connection.send(
            Frame.build(
                MessageType.PULL_REQUEST,
                _CHANNEL,
                1,
                message_id=self._new_id(),
                headers=[("Count", "2")],
            )
        )

    def take(self, number: int) -> bytes:
        """What there is to send."""
        data = self._connections[number].data_to_send()
        if not data:
            return b""
        parts = []
        if number not in self._begun:
            self._begun[number] = FrameDecoder()
            parts.append(self.outgoing_preamble(data[:_PREAMBLE_BYTES]))
            data = data[_PREAMBLE_BYTES:]
        parts += [self.outgoing(frame) for frame in self._begun[number].feed(data)]
        return b"".join(parts)

    def is_closed(self, number: int) -> bool:
        """Whether the client has closed."""
        return self._connections[number].state is State.CLOSED and not self.lingers()

    # -- what broken clients change -------------------------------------------------------------

    def outgoing(self, frame: Frame) -> bytes:
        """The bytes of a message that leaves."""
        return frame.raw

    def outgoing_preamble(self, data: bytes) -> bytes:
        """The bytes of the preamble that leaves."""
        return data

    def lingers(self) -> bool:
        """Whether an ended connection stays open all the same."""
        return False

    def end(self, number: int, now: float) -> None:
        """The server sends no more."""
        self._connections[number].receive_eof(now)

    def lose(self, number: int, now: float) -> None:
        """The transport is gone."""
        self._connections[number].receive_eof(now)

    def next_deadline(self) -> float | None:
        """The nearest deadline."""
        dues = [each.next_deadline() for each in self._connections.values()]
        return min((due for due in dues if due is not None), default=None)

    def on_deadline(self, now: float) -> None:
        """Do what is due."""
        for each in self._connections.values():
            each.on_deadline(now)
