"""Direct messages: received messages, their answers, and the responses of other clients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self, final

from tmqp.constants import TARGET_NAME_PREFIX, TARGET_TYPE_PREFIX, NackReason, ResultCode
from tmqp.frames import Frame
from tmqp_client._core import letters
from tmqp_client._core.arguments import Payload, payload_bytes
from tmqp_client._core.board import DIRECT_MESSAGES
from tmqp_client._listening import Listening
from tmqp_client._port import Port
from tmqp_client._received import ReceivedMessage
from tmqp_client.errors import AlreadyAcknowledged
from tmqp_client.session import Session

__all__ = ["DirectMessage", "DirectMessages", "Response", "to_name", "to_type"]


def to_name(name: str) -> str:
    """Return the target for all clients with this name (F113)."""
    return TARGET_NAME_PREFIX + name


def to_type(type: str) -> str:
    """Return the target for all clients with this type (F113)."""
    return TARGET_TYPE_PREFIX + type


@final
@dataclass(frozen=True, slots=True)
class Response:
    """The response of another client: a result code, 0 for success (F18), a payload, and the
    client's id."""

    code: int
    payload: bytes
    source: str

    @property
    def ok(self) -> bool:
        """Whether the code is 0."""
        return self.code == 0

    @property
    def text(self) -> str:
        """The payload as UTF-8 text.

        :raises UnicodeDecodeError: if it is not valid.
        """
        return self.payload.decode("utf-8")


@final
class DirectMessage(ReceivedMessage):
    """One message from another client.

    ``async with message:`` sends the answers that the sender waits for when the block ends: an
    acknowledgement and 204 (no content) if it succeeds, a negative acknowledgement and 500 if it
    raises (F118).  A cancelled block leaves the message unanswered.

    ``frame`` is the message as it arrived.
    """

    __slots__ = ("_acknowledged", "_responded")

    def __init__(self, frame: Frame, session: Session) -> None:
        super().__init__(frame, session)
        self._acknowledged = False
        self._responded = False

    @property
    def source(self) -> str:
        """The id of the client that sent it."""
        return self.frame.source

    @property
    def target(self) -> str:
        """The target as the sender wrote it: an id, ``@name:`` or ``@type:`` (F114)."""
        return self.frame.target

    @property
    def content_type(self) -> int:
        """A number that the applications define, 0..65,535."""
        return self.frame.content_type

    @property
    def message_id(self) -> str:
        """The message's id, from its sender."""
        return self.frame.message_id

    @property
    def requires_response(self) -> bool:
        """Whether the sender waits for :meth:`respond`."""
        return self.frame.pending_response

    @property
    def requires_acknowledge(self) -> bool:
        """Whether the sender waits for :meth:`ack` or :meth:`nack`."""
        return self.frame.pending_acknowledge

    @property
    def responded(self) -> bool:
        """Whether :meth:`respond` was called."""
        return self._responded

    async def respond(self, code: int = 0, payload: Payload = b"") -> None:
        """Answer a request.  Sends nothing if the sender does not wait for a response.

        :param code: 0 for success, otherwise a :class:`tmqp.ResultCode` or your own number.
        :raises LocalProtocolError: if the code is not 0..65,535.
        :raises AlreadyAcknowledged: if it was called before.
        :raises ClientError: if the client's last connection has ended, or its send buffer is full.
        """
        if self._responded:
            raise AlreadyAcknowledged(f"{self!r} was responded to")
        frame = self._response(code, payload_bytes(payload))
        if self.frame.pending_response:
            await self._session.send(frame)
        self._responded = True

    async def ack(self) -> None:
        """Acknowledge the message.  Sends nothing if the sender does not wait for an
        acknowledgement.

        :raises AlreadyAcknowledged: if it was acknowledged before.
        :raises ClientError: if the client's last connection has ended, or its send buffer is full.
        """
        await self._acknowledge(None)

    async def nack(self, reason: str = NackReason.NONE) -> None:
        """Refuse the message, with a reason of one line (F81); otherwise as :meth:`ack`.

        :raises LocalProtocolError: if the reason cannot be written.
        """
        await self._acknowledge(str(reason))

    async def _acknowledge(self, reason: str | None) -> None:
        if self._acknowledged:
            raise AlreadyAcknowledged(f"{self!r} was acknowledged")
        if self.frame.pending_acknowledge:
            await self._session.send(self._acknowledgement(reason))
        self._acknowledged = True

    def _response(self, code: int, payload: bytes = b"") -> Frame:
        client_id = self._session.client_id
        return letters.response_frame(self.frame, client_id, int(code), payload)

    def _acknowledgement(self, reason: str | None) -> Frame:
        return letters.acknowledge_frame(self.frame, self._session.client_id, reason)

    def _owed(self, failed: bool) -> Iterator[Frame]:
        """Yield the answers for which the sender still waits."""
        if self.frame.pending_acknowledge and not self._acknowledged:
            self._acknowledged = True
            yield self._acknowledgement(NackReason.ERROR.value if failed else None)
        if self.frame.pending_response and not self._responded:
            self._responded = True
            yield self._response(
                ResultCode.INTERNAL_SERVER_ERROR if failed else ResultCode.NO_CONTENT
            )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc is None:
            for frame in self._owed(failed=False):
                await self._session.send(frame)
        elif isinstance(exc, Exception):
            for frame in self._owed(failed=True):
                self._session.send_now(frame)

    def __repr__(self) -> str:
        return f"<DirectMessage from {self.source!r} id={self.message_id!r}>"


class DirectMessages(Listening):
    """Direct messages as an async iterator; made by :meth:`tmqp_client.Client.direct_messages`.

    Several tasks may iterate; each message goes to one of them.  The program must answer the
    messages: see :class:`DirectMessage`.
    """

    def __init__(self, port: Port) -> None:
        super().__init__(port, DIRECT_MESSAGES, None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> DirectMessage:
        """Return the next message.

        :raises ConnectionLost: if no more arrive because the connection has ended for good.
        """
        event = await self._next()
        if event is None:
            raise StopAsyncIteration
        return DirectMessage(event.frame, self._port.session)
