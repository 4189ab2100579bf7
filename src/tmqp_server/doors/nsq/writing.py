"""The base of a session of NSQ: ordered answers, layers, and the end of the connection.

Output is collected unencoded.  ``_seal`` passes it through the compression layer of the connection,
as one unit, when the output is taken and before the layer changes.

After an error that ends the connection, earlier publications still get their answers; then the
error is sent, and the connection is closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from zlib import crc32

from tmqp_server.doors.nsq.context import NsqContext
from tmqp_server.doors.nsq.topics import QUEUE
from tmqp_server.doors.nsq_world import NsqClient
from tmqp_server.doors.ordered import OrderedAnswers, Slot
from tmqp_server.doors.port import DoorSession
from tmqp_server.engine.commands import Acknowledge, Command, Disconnect
from tmqp_wires.nsq import CommandDecoder, Layer, Negotiated
from tmqp_wires.nsq.events import Event
from tmqp_wires.nsq.writing import MESSAGE_HEAD_BYTES, error_frame

__all__ = ["CONNECTED", "NEVER", "NOTHING", "STRANGER", "WAITING", "WritingSession"]

NOTHING: Final[tuple[Command, ...]] = ()
#: The broker does not know the client; was asked; has accepted it.
STRANGER: Final = 0
WAITING: Final = 1
CONNECTED: Final = 2
NEVER: Final = float("inf")
_ID_BYTES: Final = 16


def _frames_in(data: bytes) -> int:
    """The number of frames in these bytes, which end with a frame."""
    count = 0
    at = 0
    limit = len(data)
    while at < limit:
        at += 4 + ((data[at] << 24) | (data[at + 1] << 16) | (data[at + 2] << 8) | data[at + 3])
        count += 1
    return count


class WritingSession(DoorSession):
    """The writing part of a session."""

    def __init__(self, context: NsqContext, number: int) -> None:
        super().__init__()
        self._context = context
        self._number = number
        self._decoder = CommandDecoder(context.terms)
        self._standing = STRANGER
        self._early: list[Event] = []
        #: Output that is encoded by the layer, and output that is not yet.
        self._sealed: list[bytes] = []
        self._plain: list[bytes] = []
        self._layer: Layer | None = None
        self._answers = OrderedAnswers()
        #: SUB is not answered yet; then its answer is not written yet.  The answer is written
        #: alone, because some clients take everything that they read at once from a compressed
        #: connection for one frame.  Output after it is late.
        self._subscribing = False
        self._leaving = False
        self._late: list[bytes] = []
        self._orders = 0
        #: The number of the publication after which nothing is answered.
        self._ended_at = NEVER
        self._ends = False
        #: Why it ends: the session's ``close_reason`` once all is answered, for then it is closed.
        self._why = ""
        self._linger_due = NEVER
        #: The channel that it consumes, as the engine names it; empty before SUB.
        self._channel = ""
        self._skipped: list[str] = []
        #: How the statistics show the client; None before its greeting.
        self._row: NsqClient | None = None
        #: The number of unanswered messages that have lapsed.
        self._lapsed: int = 0
        self._who = Negotiated(
            "",
            "",
            "",
            False,
            context.terms.heartbeat_interval_ms,
            context.terms.output_buffer_size,
            context.terms.output_buffer_timeout_ms,
            0,
            context.terms.msg_timeout_ms,
        )

    # -- bytes out ------------------------------------------------------------------------------

    def _answer(self, data: bytes) -> None:
        """Answer a command that does not need the broker."""
        self._answers.finish(self._answers.open(), data)
        self._note()

    def _note(self) -> None:
        """Queue the answers that are ready, and update ``outbound_bytes``."""
        answers = self._answers
        if answers.ready_bytes:
            self._queue(answers.take())
        self.wants_written = self.wants_written or self._leaving
        if not len(answers):
            self._all_answered()
        total = 0
        for piece in self._sealed:
            total += len(piece)
        for piece in self._plain:
            total += len(piece)
        self.outbound_bytes = total

    def _queue(self, data: bytes) -> None:
        """Queue bytes after all others."""
        (self._late if self._leaving else self._plain).append(data)

    def deliver(self, data: bytes) -> None:
        """Queue deliveries, as the door's ``encode_`` methods returned them."""
        if self._who.sample_rate:
            data = self._sampled(data)
        row = self._row
        if row is not None:
            row.message_count += _frames_in(data)
            self._tell_in_flight(row)
        if self._subscribing:
            self._late.append(data)
            return
        self._plain.append(data)
        self.outbound_bytes += len(data)

    def _tell_in_flight(self, row: NsqClient) -> None:
        """Update the number of messages in flight: all that were sent, without those that the
        client answered or that have lapsed."""
        left = row.message_count - row.finish_count - row.requeue_count - self._lapsed
        row.in_flight_count = max(0, left)

    def _sampled(self, data: bytes) -> bytes:
        """The percentage of messages that the client asked for, approximately; the others count as
        finished (N81).  The choice depends on the message's id, and differs between clients."""
        kept: list[bytes] = []
        rate = self._who.sample_rate
        seed = self._number & 0xFFFFFFFF
        at = 0
        while at < len(data):
            end = at + 4 + int.from_bytes(data[at : at + 4], "big")
            name = data[at + MESSAGE_HEAD_BYTES - _ID_BYTES : at + MESSAGE_HEAD_BYTES]
            if crc32(name, seed) % 100 > rate:
                self._skipped.append(self._context.message_id(self._number, name))
                self._context.forget_foreign(self._number, name)
                self.wants_written = True
            else:
                kept.append(data[at:end])
            at = end
        return b"".join(kept)

    def written(self, now: float) -> Sequence[Command]:
        """Acknowledge messages that sampling skipped, and send what waited for the answer to
        SUB."""
        if self._leaving:
            self._release_late()
            self._note()
        skipped = self._skipped
        if not skipped:
            return NOTHING
        self._skipped = []
        return [Acknowledge(self._number, name, self._channel, QUEUE, True) for name in skipped]

    def _release_late(self) -> None:
        """Send what has waited for the answer to SUB."""
        self._subscribing = self._leaving = False
        self._plain += self._late
        self._late = []

    def _seal(self) -> None:
        """Encode the queued output in the connection's current form."""
        if self._plain:
            data = b"".join(self._plain)
            self._plain = []
            if self._layer is not None and data:
                data = self._layer.encoded(data)
            self._sealed.append(data)

    def data_to_send(self) -> bytes:
        """Everything queued since the last call."""
        self._seal()
        sealed = self._sealed
        self.outbound_bytes = 0
        if not sealed:
            return b""
        self._sealed = []
        return sealed[0] if len(sealed) == 1 else b"".join(sealed)

    # -- ends -----------------------------------------------------------------------------------

    def _fatal(self, text: bytes, slot: Slot, order: int, now: float) -> Sequence[Command]:
        """End the connection with an error instead of an answer."""
        if self._ends:
            self._answers.finish(slot)
        else:
            self._why = text.decode("utf-8", "replace")
            self._begin_end(order, now)
            self._answers.finish(slot, error_frame(text))
        return self._end_if_answered()

    def _begin_end(self, order: int, now: float) -> None:
        """Stop reading, and answer nothing after the publication with this number."""
        self._ends = True
        self._ended_at = float(order)
        self.reads = False
        self._decoder.forget()
        self._early = []
        self._linger_due = now + self._context.limits.linger_timeout_s
        self.hurried = True

    def _end_if_answered(self) -> Sequence[Command]:
        """Close the connection if its last answer, an error, has been sent."""
        self._note()
        if self._ends and not len(self._answers):
            return self._end(self._why)
        return NOTHING

    def _end(self, reason: str) -> Sequence[Command]:
        """Close now; output that is ready is still sent."""
        if self.closed:
            return NOTHING
        if self._leaving:
            self._release_late()
        self._note()
        self.closed = True
        self.close_reason = self._why or reason
        self._answers.clear()
        self._forget_publications()
        self._late = []
        self._context.forget(self._number)
        self._decoder.forget()
        self._early = []
        if self._standing != CONNECTED:
            return NOTHING
        self._standing = STRANGER
        return (Disconnect(self._number),)

    def _all_answered(self) -> None:
        """Called when no answer is outstanding."""
        raise NotImplementedError

    def _forget_publications(self) -> None:
        """Forget all publications; no answers will be sent."""
        raise NotImplementedError
