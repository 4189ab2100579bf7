"""A small TMQP server for the examples: real bytes on a real loopback socket, in a thread."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tmqp import (
    Connection,
    Event,
    Frame,
    HandshakeReceived,
    Limits,
    MessageType,
    Operation,
    QueueMessageReceived,
    ResultCode,
    Role,
    ServerMessageReceived,
    State,
)

__all__ = ["Peer", "running"]

#: No test waits longer than this for its peer, in seconds.
PATIENCE_S: Final = 10.0


class Peer:
    """Serves one connection.

    :param refuse_with: refuse the client with this code instead of accepting it.
    :param cut: break the stream off inside its answer to the client's first message.
    :param mute: read, and never send anything.
    """

    def __init__(self, *, refuse_with: int = 0, cut: bool = False, mute: bool = False) -> None:
        self.events: list[Event] = []
        self.port = 0
        self._refuse_with = refuse_with
        self._cut = cut
        self._mute = mute
        self._stored: list[Frame] = []
        self._failure: BaseException | None = None

    def run(self, listener: socket.socket) -> None:
        """Accept one connection and serve it to its end."""
        try:
            stream, _address = listener.accept()
            with stream:
                stream.settimeout(PATIENCE_S)
                self._serve(stream)
        except BaseException as error:  # noqa: BLE001 - shown by the test that waits for us
            self._failure = error

    def check(self) -> None:
        """Raise what went wrong in the thread, if anything did."""
        if self._failure is not None:
            raise self._failure

    def _serve(self, stream: socket.socket) -> None:
        connection = Connection(Role.SERVER, Limits(), now=time.monotonic())
        while connection.state is not State.CLOSED:
            data = stream.recv(65_536)
            now = time.monotonic()
            if self._mute:
                if not data:
                    return
                continue
            events = connection.receive(data, now) if data else connection.receive_eof(now)
            for event in events:
                self.events.append(event)
                events.extend(self._answer(connection, event))
            if not self._send(stream, connection.data_to_send()):
                return

    def _send(self, stream: socket.socket, data: bytes) -> bool:
        """Send the preamble whole and the rest in crumbs; False when the stream is broken off."""
        if self._cut and len(data) > 8:
            stream.sendall(data[:-3])
            return False
        stream.sendall(data[:8])
        for at in range(8, len(data), 7):
            stream.sendall(data[at : at + 7])
        return True

    def _answer(self, connection: Connection, event: Event) -> list[Event]:
        if isinstance(event, HandshakeReceived):
            if self._refuse_with:
                return connection.refuse(self._refuse_with, "r1")
            return connection.accept(event.information.client_id or "given-id", "a1")
        if isinstance(event, QueueMessageReceived):
            if event.frame.pending_acknowledge:
                connection.send(_acknowledge(event.frame))
            self._stored.append(event.frame)
        elif isinstance(event, ServerMessageReceived):
            known = event.frame.content_type == Operation.JOIN
            for frame in self._stored:
                connection.send_bytes(frame.forwarded(True, True, frame.ttl - 1))
            code = ResultCode.OK if known else ResultCode.BAD_REQUEST
            connection.send(_response(event.frame, code, connection.client_id))
        return []


def _acknowledge(frame: Frame) -> Frame:
    return Frame.build(
        MessageType.ACKNOWLEDGE, frame.target, frame.content_type, message_id=frame.message_id
    )


def _response(frame: Frame, code: int, client_id: str) -> Frame:
    return Frame.build(MessageType.RESPONSE, client_id, code, message_id=frame.message_id)


@contextmanager
def running(peer: Peer) -> Iterator[Peer]:
    """Serve one connection on a loopback port; wait for its end and show what went wrong."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        peer.port = listener.getsockname()[1]
        thread = threading.Thread(target=peer.run, args=(listener,), daemon=True)
        thread.start()
        try:
            yield peer
        finally:
            thread.join(PATIENCE_S)
        assert not thread.is_alive(), "the peer still waits for the example"
        peer.check()
