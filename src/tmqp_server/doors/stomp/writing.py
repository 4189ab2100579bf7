"""The base of a session of STOMP: ordered receipts, ERROR, and the end of the connection.

Receipts are sent in the order of their frames, because a client takes a receipt as proof that the
server has processed all earlier frames.  After an ERROR nothing more is sent, and the connection is
closed once the receipts before it have left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tmqp.constants import (
    RESULT_BUSY,
    RESULT_FORBIDDEN,
    RESULT_LIMIT_EXCEEDED,
    RESULT_MISDIRECTED_REQUEST,
    RESULT_NOT_FOUND,
    RESULT_NOT_IMPLEMENTED,
    RESULT_UNACCEPTABLE,
    RESULT_UNAUTHORIZED,
)
from tmqp_server.doors.ordered import OrderedAnswers, Slot
from tmqp_server.doors.stomp.context import StompContext
from tmqp_server.doors.stomp.message import DOOR
from tmqp_server.doors.waiting import NOTHING, WaitingSession
from tmqp_server.engine.commands import Command
from tmqp_wires.stomp import ServerConnection, StompFrame
from tmqp_wires.stomp.codec import Event
from tmqp_wires.stomp.frames import encode_frame

__all__ = ["AskedFrame", "FrameError", "ReceiptSession", "words_of"]

_WORDS: Final[dict[int, str]] = {
    RESULT_UNAUTHORIZED: "not allowed",
    RESULT_FORBIDDEN: "not allowed",
    RESULT_NOT_FOUND: "there is no such destination",
    RESULT_UNACCEPTABLE: "not possible for this destination",
    RESULT_LIMIT_EXCEEDED: "a limit is reached",
    RESULT_NOT_IMPLEMENTED: "not possible in a cluster",
    RESULT_MISDIRECTED_REQUEST: "this server is a standby, another one of its group serves clients",
    RESULT_BUSY: "the server is busy, or out of room",
}


def words_of(code: int) -> str:
    """The text for people for a result code."""
    words = _WORDS.get(code)
    return f"refused ({code})" if words is None else f"{words} ({code})"


class FrameError(ValueError):
    """A frame cannot be carried out; the text says why."""


@final
class AskedFrame:
    """The token of a frame, with the place of its receipt.

    ``what`` names the frame in an ERROR, ``receipt`` is the id of its receipt, None for none;
    ``left`` is the number of outstanding answers of the broker.
    """

    __slots__ = ("left", "receipt", "slot", "what")

    def __init__(self, what: str, receipt: str | None, slot: Slot | None) -> None:
        self.what = what
        self.receipt = receipt
        self.slot = slot
        self.left = 0


class ReceiptSession(WaitingSession[Event]):
    """The writing part of a session.

    :param context: what all connections share.
    """

    def __init__(self, context: StompContext, number: int, now: float) -> None:
        super().__init__(number, DOOR, context.new_id, context.limits.max_early_bytes)
        self._context = context
        self._stomp = ServerConnection(now, context.of_frames, heart_beat=context.heart_beat)
        #: The name of the connection, which is in its temporary destinations.
        self._name = context.new_id()[:12]
        self._answers = OrderedAnswers()
        #: Why the connection ends: nothing more is read, and it is closed when everything was
        #: answered.
        self._ending = ""
        self._failed = False

    def _asked(self, what: str, frame: StompFrame) -> AskedFrame:
        """Make the token of a frame, and reserve the place of its receipt, if it asks for one."""
        receipt = frame.find("receipt")
        slot = None if receipt is None else self._answers.open()
        if slot is not None and len(self._answers) >= self._context.limits.max_unanswered:
            self.reads = False
        return AskedFrame(what, receipt, slot)

    def _settle(self, asked: AskedFrame | None) -> Sequence[Command]:
        """Send the receipt of a frame that was carried out, if it asked for one."""
        if asked is None or asked.slot is None or asked.slot.finished:
            return NOTHING
        assert asked.receipt is not None, "there is a place for it"
        headers = [("receipt-id", asked.receipt)]
        data = encode_frame("RECEIPT", headers, version=self._stomp.version)
        self._answers.finish(asked.slot, data)
        has_room = len(self._answers) < self._context.limits.max_unanswered
        if has_room and not self.reads and not self._ending:
            self.reads = True
            self.hurried = True
        return self._after_answer()

    def _fail(self, asked: AskedFrame | None, text: str, detail: str = "") -> Sequence[Command]:
        """Send an ERROR, and end the connection after it."""
        slot = None if asked is None else asked.slot
        if self.closed or (self._failed if slot is None else slot.finished):
            return NOTHING
        self._failed = True
        message = text if asked is None else f"{asked.what}: {text}"
        headers = [("message", message), ("content-type", "text/plain")]
        if asked is not None and asked.receipt is not None:
            headers.append(("receipt-id", asked.receipt))
        if not self._stomp.agreed:
            headers.append(("version", self._stomp.versions))
        body = (f"{message}\n{detail}" if detail else message).encode("utf-8", "replace") + b"\n"
        headers.append(("content-length", str(len(body))))
        data = encode_frame("ERROR", headers, body, self._stomp.version)
        if slot is None:
            slot = self._answers.open()
        self._answers.end(slot, data)
        self._begin_end(message)
        return self._after_answer()

    def _begin_end(self, reason: str) -> None:
        self._ending = self._ending or reason
        self.reads = False
        self._stomp.forget()

    def _after_answer(self) -> Sequence[Command]:
        """Queue the answers that are ready; end the connection after its last one."""
        if self._answers.ready_bytes:
            self._say(self._answers.take())
        if self._ending and not len(self._answers):
            return self.end(self._ending)
        return NOTHING

    def _say(self, data: bytes) -> None:
        self._stomp.send_bytes(data)
        self.outbound_bytes += len(data)

    def data_to_send(self) -> bytes:
        """Everything queued."""
        self.outbound_bytes = 0
        return self._stomp.data_to_send()

    def deliver(self, data: bytes) -> None:
        """Nothing: all deliveries come through ``deliver_own``."""

    # -- what WaitingSession asks ---------------------------------------------------------------

    def text_bytes_of(self, event: Event) -> int:
        """The size of a frame."""
        return event.encoded_size if isinstance(event, StompFrame) else len(event.text)

    def forget_input(self) -> None:
        """Drop an incomplete frame."""
        self._stomp.forget()
