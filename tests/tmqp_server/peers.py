"""Clients for tests of the server in memory: they speak bytes, and nothing is hidden."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.tmqp_server.world import MemoryLink, World
from tmqp.codec import FrameDecoder
from tmqp.constants import MessageType, Operation
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.limits import Limits

__all__ = ["Peer", "ack", "greeting", "operation", "push"]

_ANY = Limits(max_payload_bytes=1 << 40)


def greeting(client_id: str = "", payload: bytes | None = None) -> bytes:
    """Preamble and hello, as the original client sends them (F21)."""
    if payload is None:
        payload = ConnectionInformation(client_id).encode()
    return b"TMQP/2.0" + Frame.build(MessageType.SERVER, "", 101, payload).raw


def operation(
    number: int,
    target: str = "",
    payload: bytes = b"",
    *,
    message_id: str = "op",
    pending_response: bool = True,
    **more: Any,
) -> Frame:
    """A server operation that asks for a response."""
    return Frame.build(
        MessageType.SERVER,
        target,
        number,
        payload,
        message_id=message_id,
        pending_response=pending_response,
        **more,
    )


def push(channel: str, queue_id: int, message_id: str, payload: bytes = b"x", **more: Any) -> Frame:
    """A queue message."""
    return Frame.build(
        MessageType.QUEUE_MESSAGE, channel, queue_id, payload, message_id=message_id, **more
    )


def ack(delivery: Frame, reason: str | None = None, **more: Any) -> Frame:
    """A consumer's answer to a delivery; negative with a reason."""
    headers = [] if reason is None else [("Nack-Reason", reason)]
    return Frame.build(
        MessageType.ACKNOWLEDGE,
        delivery.target,
        delivery.content_type,
        message_id=delivery.message_id,
        headers=headers,
        **more,
    )


class Peer:
    """A client of a :class:`World`.

    :param client_id: connects at once under this id; None says nothing yet.
    :param join: channels to join.
    """

    def __init__(
        self, world: World, client_id: str | None = None, join: Iterable[str] = ()
    ) -> None:
        self.link: MemoryLink = world.open_link()
        self._decoder = FrameDecoder(_ANY)
        self._preamble = b""
        self._asked = 0
        if client_id is not None:
            self.say(greeting(client_id))
            assert self.take()[-1].content_type == 202
        for channel in join:
            assert self.ask(Operation.JOIN, channel).content_type == 0

    @property
    def open(self) -> bool:
        """The server has not closed the connection."""
        return not self.link.closed

    def say(self, *parts: bytes | Frame) -> None:
        """Send, as one chunk."""
        self.link.send(b"".join([p if isinstance(p, bytes) else p.raw for p in parts]))

    def take(self) -> list[Frame]:
        """What the server has sent since the last call, its preamble aside."""
        data = self.link.receive()
        if len(self._preamble) < 8 and data:
            missing = 8 - len(self._preamble)
            self._preamble += data[:missing]
            data = data[missing:]
        frames = self._decoder.feed(data)
        assert self._decoder.error is None
        assert self._decoder.buffered == 0, "the server sends whole messages"
        return frames

    def ask(self, number: int, target: str = "", payload: bytes = b"", **more: Any) -> Frame:
        """Ask for an operation; its Response, which must be the last thing the server says."""
        self._asked += 1
        name = f"ask-{self._asked}"
        self.say(operation(number, target, payload, message_id=name, **more))
        answer = self.take()[-1]
        assert answer.type == MessageType.RESPONSE
        assert answer.message_id == name
        return answer
