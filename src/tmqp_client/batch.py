"""A batch: messages and acknowledgements that take effect all together, or not at all."""

from __future__ import annotations

from datetime import datetime
from types import TracebackType
from typing import Final, Literal, final

from tmqp.constants import RESULT_NOT_FOUND, NackReason
from tmqp.errors import LocalProtocolError
from tmqp.extensions import OP_APPLY_BATCH, REASON_RELEASE
from tmqp_client._core.arguments import NO_HEADERS, Headers, Pairs, Payload, payload_bytes, to_pairs
from tmqp_client._core.requests import Request, acknowledge_frame, push_frame, release_headers
from tmqp_client._port import Port
from tmqp_client._times import with_key, with_times
from tmqp_client.errors import AlreadyAcknowledged, OperationFailed
from tmqp_client.message import Message
from tmqp_client.parts import with_parts

__all__ = ["Batch"]

_WORDS: Final = "apply batch"


@final
class Batch:
    """Pushes and acknowledgements that take effect together; made by :meth:`Client.batch`.

    The batch is sent when the block ends; if an exception ends the block, nothing is sent.  If
    leaving the block succeeds, the whole batch has taken effect, and its changes of durable queues
    are on disk.  If it raises, nothing has changed; but after :class:`ConnectionLost` or
    :class:`OperationTimeout` the result is unknown, because only the answer may have been lost.
    """

    def __init__(self, port: Port, timeout_s: float | None) -> None:
        self._port = port
        self._timeout_s = timeout_s
        self._pieces: list[bytes] = []
        self._answered: list[Message] = []
        self._state = "new"

    @property
    def count(self) -> int:
        """The number of messages and answers in the batch."""
        return len(self._pieces)

    def push(
        self,
        channel: str,
        queue_id: int,
        payload: Payload,
        *,
        headers: Headers = (),
        high_priority: bool = False,
        message_id: str | None = None,
        delay_s: float | None = None,
        deliver_at: datetime | None = None,
        expires_s: float | None = None,
        key: str | None = None,
    ) -> str:
        """Add a message for a queue; return its id.  Parameters as :meth:`Client.push`.

        :raises LocalProtocolError: if the message cannot be written, or the block has ended.
        """
        self._check_open()
        data = payload_bytes(payload)
        headers = with_key(with_times(headers, delay_s, deliver_at, expires_s), key)
        pairs = to_pairs(headers) if type(data) is bytes else to_pairs(with_parts(payload, headers))
        session = self._port.session
        frame = push_frame(
            channel,
            queue_id,
            data,
            session.new_message_id() if message_id is None else message_id,
            "",
            tuple(pairs),
            high_priority,
            False,
        )
        self._pieces.append(frame.raw)
        return frame.message_id

    def ack(self, message: Message) -> None:
        """Acknowledge a message as part of the batch.

        :raises AlreadyAcknowledged: if the message was answered before.
        :raises LocalProtocolError: after the block has ended.
        """
        self._answer(message, None)

    def nack(self, message: Message, reason: str = NackReason.NONE) -> None:
        """Refuse a message as part of the batch; see :meth:`Message.nack`.  Raises as
        :meth:`ack`."""
        self._answer(message, str(reason))

    def release(
        self,
        message: Message,
        *,
        delay_s: float = 0.0,
        to: Literal["front", "end"] = "end",
        counted: bool = True,
    ) -> None:
        """Return a message to its queue as part of the batch; see :meth:`Message.release`.  Raises
        as :meth:`ack`."""
        self._answer(message, REASON_RELEASE, release_headers(delay_s, to, counted))

    def _answer(self, message: Message, reason: str | None, more: Pairs = NO_HEADERS) -> None:
        self._check_open()
        if message.answered:
            raise AlreadyAcknowledged(
                f"message {message.message_id!r} of {message.channel!r}/{message.queue_id}"
                " was answered"
            )
        if message.requires_acknowledge:
            self._pieces.append(acknowledge_frame(message.frame, "", reason, more).raw)
        self._answered.append(message)
        message._promise(True)

    def _check_open(self) -> None:
        if self._state != "open":
            raise LocalProtocolError("messages can be added to a batch only within its block")

    async def __aenter__(self) -> Batch:
        if self._state != "new":
            raise LocalProtocolError("a batch can be used once; client.batch() creates another")
        self._state = "open"
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._state = "over"
        done = False
        try:
            if exc is None:
                await self._send()
                done = True
        finally:
            if not done:
                for message in self._answered:
                    message._promise(False)

    async def _send(self) -> None:
        if not self._pieces:
            return
        request = Request(OP_APPLY_BATCH, _WORDS, "", (), b"".join(self._pieces))
        session = self._port.session
        epochs = {each._epoch for each in self._answered if each.requires_acknowledge}
        if await session.settle(request, epochs, self._timeout_s) is None:
            raise OperationFailed(_WORDS, "", RESULT_NOT_FOUND)

    def __repr__(self) -> str:
        return f"<Batch of {len(self._pieces)}, {self._state}>"
