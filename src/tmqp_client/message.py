"""A delivered message, which a consumer answers once."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Literal, final

from tmqp.constants import NackReason
from tmqp.extensions import REASON_RELEASE
from tmqp.frames import Frame
from tmqp_client._core.arguments import NO_HEADERS, Pairs
from tmqp_client._core.requests import extend, release_headers
from tmqp_client._received import ReceivedMessage
from tmqp_client.errors import AlreadyAcknowledged

if TYPE_CHECKING:
    from tmqp_client.session import Session

__all__ = ["Message"]


@final
class Message(ReceivedMessage):
    """One message of a queue.

    ``async with message:`` acknowledges it if the block succeeds, and refuses it with the reason
    ``error`` if the block raises.  A cancelled block leaves it unanswered: the server redelivers it
    after its timeout.

    ``frame`` is the message as it arrived.
    """

    __slots__ = ("_answered", "_epoch", "_mark")

    def __init__(self, frame: Frame, session: Session, epoch: int) -> None:
        self.frame = frame
        self._session = session
        self._answered = False
        self._epoch = epoch
        self._mark = session.lapses.count

    # -- what it is -----------------------------------------------------------------------------

    @property
    def channel(self) -> str:
        """The channel, as the producer spelt it (F76); its case has no meaning (F46)."""
        return self.frame.target

    @property
    def queue_id(self) -> int:
        """The queue in the channel, 0..65,535."""
        return self.frame.content_type

    @property
    def message_id(self) -> str:
        """The message's id, from its producer; the same on every delivery."""
        return self.frame.message_id

    @property
    def source(self) -> str:
        """The producer's client id; empty if the queue hides it (F76)."""
        return self.frame.source

    @property
    def high_priority(self) -> bool:
        """Whether it was pushed with high priority."""
        return self.frame.high_priority

    @property
    def first_acquirer(self) -> bool:
        """Whether this client is the first to which it was delivered (F87)."""
        return self.frame.first_acquirer

    @property
    def redelivered(self) -> bool:
        """A hint that it was delivered before, to this client or another one.  In a push or
        broadcast queue it is also true on the first delivery, for every consumer except the first
        one (F87)."""
        return not self.frame.first_acquirer

    @property
    def requires_acknowledge(self) -> bool:
        """Whether the server waits for :meth:`ack` or :meth:`nack`."""
        return self.frame.pending_acknowledge

    @property
    def answered(self) -> bool:
        """Whether it was acknowledged, positively or negatively."""
        return self._answered

    @property
    def stale(self) -> bool:
        """Whether it is unanswered and can no longer be answered: the connection that delivered it
        has ended, and the server redelivers it, here or elsewhere, with the same id; or it has
        :attr:`lapsed`."""
        return (
            self.frame.pending_acknowledge
            and not self._answered
            and (not self._session.live(self._epoch) or self.lapsed != "")
        )

    @property
    def lapsed(self) -> str:
        """Why an unanswered message is no longer in flight to this client: ``timed-out``, so that
        the server may have redelivered it; ``removed``, with or from its queue; ``answered`` at
        another node of a cluster.  Empty while it is in flight, and if the client does not request
        notifications: see ``tells_lapsed`` of :meth:`tmqp_client.Client.join`."""
        if self._answered:
            return ""
        return self._session.lapses.reason(self.frame, self._mark)

    # -- answering ------------------------------------------------------------------------------

    async def ack(self) -> bool:
        """Acknowledge the message.  Sends nothing if the queue does not request acknowledgements.

        :return: False if it was :attr:`stale`: nothing was sent, and the message will be
            redelivered, unless it was removed.
        :raises AlreadyAcknowledged: when it was answered before.
        :raises ClientError: when the client's last connection has ended.
        """
        return await self._answer(None)

    async def nack(self, reason: str = NackReason.NONE) -> bool:
        """Refuse the message; the queue decides what happens to it (F81).

        :param reason: ``none``, ``error``, ``timeout``, or your own text; one line.
        :raises LocalProtocolError: if the reason cannot be written.
        :return: as :meth:`ack`.
        :raises AlreadyAcknowledged: when it was answered before.
        :raises ClientError: when the client's last connection has ended.
        """
        return await self._answer(str(reason))

    async def release(
        self, *, delay_s: float = 0.0, to: Literal["front", "end"] = "end", counted: bool = True
    ) -> bool:
        """Return the message to its queue unprocessed; it waits there again.

        Unlike :meth:`nack` this does not call the server's delivery handler, and sends nothing to
        the producer.  A message in flight to several consumers returns when the last of them has
        answered.  A server that does not know release treats it as ``nack("release")``.

        :param delay_s: for how many seconds the message is not delivered.
        :param to: where it waits: before all others of its priority, or after them.
        :param counted: whether it counts as a put-back; after too many (``put_back_limit``) the
            queue gives up the message.
        :raises LocalProtocolError: if an argument is out of range.
        :return: as :meth:`ack`.
        :raises AlreadyAcknowledged: when it was answered before.
        :raises ClientError: when the client's last connection has ended.
        """
        return await self._answer(REASON_RELEASE, release_headers(delay_s, to, counted))

    async def extend(self, seconds: float, *, timeout_s: float | None = None) -> bool:
        """Set the time left to answer the message, in seconds from now.

        :param timeout_s: the longest time to wait for the server's answer, in seconds.
        :return: False if it was :attr:`stale`, or the queue does not request acknowledgements.
        :raises AlreadyAcknowledged: if it was answered before.
        :raises OperationFailed: with 404 or 403 if the message has timed out; with 482 if the time
            is longer than the server allows.
        """
        self._check_unanswered()
        frame = self.frame
        if not frame.pending_acknowledge or self.stale:
            return False
        request = extend(frame.target, frame.content_type, frame.message_id, seconds)
        await self._session.ask(request, timeout_s)
        return True

    def _check_unanswered(self) -> None:
        if self._answered:
            raise AlreadyAcknowledged(
                f"message {self.message_id!r} of {self.channel!r}/{self.queue_id} was answered"
            )

    async def _answer(self, reason: str | None, more: Pairs = NO_HEADERS) -> bool:
        self._check_unanswered()
        sent = True
        frame = self.frame
        if self.lapsed:
            return False
        if frame.pending_acknowledge and not self._session.acknowledge_soon(
            frame, reason, self._epoch, more
        ):
            sent = await self._session.acknowledge(self.frame, reason, self._epoch, more)
        self._answered = sent
        return sent

    def _promise(self, answered: bool) -> None:
        """Mark it as answered by a batch, or as unanswered if the batch failed."""
        self._answered = answered

    def _done(self) -> bool:
        """Acknowledge if that is possible without waiting; return whether it is answered."""
        if not self._answered and not self.lapsed:
            frame = self.frame
            self._answered = not frame.pending_acknowledge or self._session.acknowledge_soon(
                frame, None, self._epoch
            )
        return self._answered

    def _answer_now(self, reason: str | None) -> None:
        """Answer without waiting, if it is unanswered, for a consumer that is closing."""
        if not self._answered and not self.lapsed:
            self._answered = not self.frame.pending_acknowledge or self._session.acknowledge_now(
                self.frame, reason, self._epoch
            )

    async def __aenter__(self) -> Message:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc is None:
            if not self._answered:
                await self.ack()
        elif isinstance(exc, Exception):
            self._answer_now(NackReason.ERROR.value)

    def __repr__(self) -> str:
        return f"<Message {self.channel!r}/{self.queue_id} id={self.message_id!r}>"
