"""What every part of a session of NSQ needs: answers in order, layers, and the end.

What is to be sent is collected in the plain form; ``_seal`` puts it through the layers of the
connection, one unit for each write, before a layer changes and when it is taken.

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
#: What the broker knows of the client: nothing, it is asked, it has let it in.
STRANGER: Final = 0
WAITING: Final = 1
CONNECTED: Final = 2
NEVER: Final = float("inf")
_ID_BYTES: Final = 16


def _frames_in(data: bytes) -> int:
    """How many frames these bytes are; they are whole."""
    count = 0
    at = 0
    limit = len(data)
    while at < limit:
        at += 4 + ((data[at] << 24) | (data[at + 1] << 16) | (data[at + 2] << 8) | data[at + 3])
        count += 1
    return count


class WritingSession(DoorSession):
    """The part of a session that writes."""

    def __init__(self, context: NsqContext, number: int) -> None:
        super().__init__()
        self._context = context
        self._number = number
        self._decoder = CommandDecoder(context.terms)
        self._standing = STRANGER
        self._early: list[Event] = []
        #: What is to be sent: through the layers, and not yet.
        self._sealed: list[bytes] = []
        self._plain: list[bytes] = []
        self._layer: Layer | None = None
        self._answers = OrderedAnswers()
        #: SUB is not answered, and then its answer has not left.  It leaves by itself, for some
        #: clients take what they read from a compressed connection at once for one frame: what
        #: comes behind it is late.
        self._subscribing = False
        self._leaving = False
        self._late: list[bytes] = []
        self._orders = 0
        #: The publication behind which nothing is answered.
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
        #: Messages that it has not answered and that are its own no more.
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
        """Answer a command that nobody else is asked about."""
        self._answers.finish(self._answers.open(), data)
        self._note()

    def _note(self) -> None:
        """Take what is ready, and say how much there is."""
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
        """Send something behind all there is."""
        (self._late if self._leaving else self._plain).append(data)

    def deliver(self, data: bytes) -> None:
        """Queue what the door's ``encode_`` methods have made."""
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
        """How many messages it has: all but those that it has answered, or that are its no more."""
        left = row.message_count - row.finish_count - row.requeue_count - self._lapsed
        row.in_flight_count = max(0, left)

    def _sampled(self, data: bytes) -> bytes:
        """About as many messages in a hundred as the client wants; the others count as finished
        (N81).  Which ones is decided by their ids, and for each client otherwise."""
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
        """What was skipped is finished, and what has waited for the answer to SUB is sent."""
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
        """Put what was queued into the form that the connection has now."""
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
        """End the connection with an error in the place of an answer."""
        if self._ends:
            self._answers.finish(slot)
        else:
            self._why = text.decode("utf-8", "replace")
            self._begin_end(order, now)
            self._answers.finish(slot, error_frame(text))
        return self._end_if_answered()

    def _begin_end(self, order: int, now: float) -> None:
        """Nothing is read any more, and nothing behind this publication is answered."""
        self._ends = True
        self._ended_at = float(order)
        self.reads = False
        self._decoder.forget()
        self._early = []
        self._linger_due = now + self._context.limits.linger_timeout_s
        self.hurried = True

    def _end_if_answered(self) -> Sequence[Command]:
        """Close when an error was the last answer."""
        self._note()
        if self._ends and not len(self._answers):
            return self._end(self._why)
        return NOTHING

    def _end(self, reason: str) -> Sequence[Command]:
        """Close now; what is ready is still sent."""
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
        """Everything that was asked for is answered."""
        raise NotImplementedError

    def _forget_publications(self) -> None:
        """Nobody waits for the answers any more."""
        raise NotImplementedError
