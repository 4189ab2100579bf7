"""The forms of the server's messages, and of forwarded messages (F44, F75-F79, F114)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tmqp.bits import HEAD_BYTES
from tmqp.constants import (
    MAX_NAME_BYTES,
    RESULT_NOT_FOUND,
    RESULT_OK,
    TYPE_ACKNOWLEDGE,
    TYPE_RESPONSE,
    TYPE_SERVER,
    HeaderName,
    NackReason,
    ResultCode,
)
from tmqp.extensions import HEADER_REASON, HEADER_RECEIVERS, OP_LAPSED
from tmqp.frames import Frame, without_payload
from tmqp_server.doors.native.rewriting import with_header
from tmqp_server.engine.effects import Confirm, ConfirmRun, Lapsed

__all__ = [
    "ConfirmWriter",
    "acknowledge_frame",
    "confirm_frame",
    "forwarded",
    "lapsed_frame",
    "response_frame",
    "response_head",
    "router_answer",
]

_NACK_REASON = HeaderName.NACK_REASON.value
#: One-byte strings by value.
_ONE_BYTE: Final = [bytes((value,)) for value in range(256)]
#: A reason made by user code is cut to so many bytes; a header block holds 65,535 (F6).
_MAX_REASON_BYTES = 1_024
#: The offset of the queue's number after the length of the id: two other lengths precede it.
_QUEUE_AT: Final = 2
_QUEUE_END: Final = 4


def response_frame(
    request: Frame,
    code: int,
    target: str,
    body: bytes = b"",
    headers: Sequence[tuple[str, str]] = (),
) -> Frame:
    """The Response to a request: its id, first-acquirer and priority flags copied (F44)."""
    return Frame.build(
        TYPE_RESPONSE,
        target,
        code,
        body,
        message_id=request.message_id,
        headers=headers,
        first_acquirer=request.first_acquirer,
        high_priority=request.high_priority,
    )


def response_head(request: Frame, code: int, target: str, size: int) -> bytes:
    """The Response to a request without its payload, whose *size* bytes follow."""
    return without_payload(response_frame(request, code, target).raw, size)


def acknowledge_frame(request: Frame, code: int) -> Frame:
    """The Acknowledge to a request that asks for one; the reason is the result code's name.

    The original never sends these for operations; the specification promises them.
    """
    headers = [] if code == 0 else [(_NACK_REASON, _reason_of(code))]
    return Frame.build(
        TYPE_ACKNOWLEDGE,
        request.target,
        0 if request.type == TYPE_SERVER else request.content_type,
        message_id=request.message_id,
        headers=headers,
        first_acquirer=request.first_acquirer,
    )


def _reason_of(code: int) -> str:
    if code in ResultCode._value2member_map_:
        return ResultCode(code).name.lower().replace("_", "-")
    return NackReason.ERROR.value


def confirm_frame(effect: Confirm) -> bytes:
    """The acknowledgement that tells a producer what happened to its message.

    A consumer's own acknowledgement is forwarded with one hop less to live (F79); one made here has
    the form of F78.
    """
    frame = effect.forwarded
    if isinstance(frame, Frame):
        if frame.source != effect.source:
            frame = frame.replace(source=effect.source)
        if effect.receivers < 0:
            return forwarded(frame)
        counted = with_header(frame, HEADER_RECEIVERS, str(effect.receivers))
        return counted.forwarded(frame.first_acquirer, frame.pending_acknowledge, frame.ttl - 1)
    headers = []
    if not effect.positive:
        headers = [(_NACK_REASON, _one_line(effect.reason) or NackReason.NONE.value)]
    if effect.receivers >= 0:
        headers.append((HEADER_RECEIVERS, str(effect.receivers)))
    return Frame.build(
        TYPE_ACKNOWLEDGE,
        effect.channel,
        effect.queue_id,
        message_id=effect.message_id,
        headers=headers,
        first_acquirer=effect.first_acquirer,
    ).raw


def lapsed_frame(effect: Lapsed) -> bytes:
    """The message that tells a consumer that a delivery has lapsed; its id is the message's."""
    headers = [
        (HeaderName.QUEUE_ID.value, str(effect.queue_id)),
        (HEADER_REASON, effect.reason),
    ]
    message_id = effect.message_id
    return Frame.build(
        TYPE_SERVER, effect.channel, OP_LAPSED, message_id=message_id, headers=headers
    ).raw


class ConfirmWriter:
    """Writes confirms like :func:`confirm_frame`, but faster if consecutive ones are for one queue.

    Positive confirms that are made here differ only in the id and its length.
    """

    __slots__ = ("_before", "_behind", "_channel", "_first_acquirer", "_queue_id", "_target")

    def __init__(self) -> None:
        self._channel = ""
        self._queue_id = -1
        self._first_acquirer = False
        self._before = b""
        self._behind = b""
        self._target = b""

    def write_run(self, effect: ConfirmRun) -> bytes:
        """The bytes of all confirms of a run."""
        self._know(effect.channel, effect.queue_id, True)
        before, behind, target = self._before, self._behind, self._target
        names, queues = effect.message_ids, effect.queues
        size = len(names[0]) if names else 0
        if not queues and 0 < size <= MAX_NAME_BYTES and _are_alike(names, size):
            # Then the same bytes are between each two ids, and one join writes all.
            head = b"%b%b%b" % (before, _ONE_BYTE[size], behind)
            between = (target + head).decode("latin-1")
            return b"%b%b%b" % (head, between.join(names).encode("latin-1"), target)
        pieces: list[bytes] = []
        known: dict[int, bytes] = {}
        for place, name in enumerate(names):
            if queues:
                behind = self._behind_of(queues[place], known)
            message_id = name.encode()
            length = _ONE_BYTE[len(message_id)]
            pieces.append(b"%b%b%b%b%b" % (before, length, behind, message_id, target))
        return b"".join(pieces)

    def _behind_of(self, queue_id: int, known: dict[int, bytes]) -> bytes:
        """The bytes after the length of the id, for another queue of the channel."""
        behind = known.get(queue_id, b"")
        if not behind:
            number = queue_id.to_bytes(_QUEUE_END - _QUEUE_AT, "little")
            behind = b"%b%b%b" % (self._behind[:_QUEUE_AT], number, self._behind[_QUEUE_END:])
            known[queue_id] = behind
        return behind

    def write(self, effect: Confirm) -> bytes:
        """The bytes of one confirm."""
        message_id = effect.message_id.encode()
        if (
            effect.forwarded is not None
            or not effect.positive
            or effect.receivers >= 0
            or len(message_id) > MAX_NAME_BYTES
        ):
            return confirm_frame(effect)
        self._know(effect.channel, effect.queue_id, effect.first_acquirer)
        length = _ONE_BYTE[len(message_id)]
        return b"%b%b%b%b%b" % (self._before, length, self._behind, message_id, self._target)

    def _know(self, channel: str, queue_id: int, first_acquirer: bool) -> None:
        """Prepare the bytes of a confirm, except its id and the third byte, which has the id's
        length; nothing to do if the last one was for the same channel and queue."""
        if (
            queue_id == self._queue_id
            and first_acquirer == self._first_acquirer
            and channel == self._channel
        ):
            return
        self._channel = channel
        self._queue_id = queue_id
        self._first_acquirer = first_acquirer
        raw = Frame.build(TYPE_ACKNOWLEDGE, channel, queue_id, first_acquirer=first_acquirer).raw
        self._before = raw[:2]
        self._behind = raw[3:HEAD_BYTES]
        self._target = raw[HEAD_BYTES:]


def _are_alike(names: list[str], size: int) -> bool:
    """Whether all names are ASCII and have *size* characters."""
    for name in names:
        if len(name) != size:
            return False
    return "".join(names).isascii()


def _one_line(reason: str) -> str:
    """A reason as the value of a header: one line of limited length, so that it cannot forge
    another header."""
    line = " ".join(reason.splitlines()).encode("utf-8", "replace")
    return line[:_MAX_REASON_BYTES].decode("utf-8", "ignore")


def forwarded(frame: Frame) -> bytes:
    """A client's message for another client: the received bytes with one hop less to live
    (F114)."""
    return frame.forwarded(frame.first_acquirer, frame.pending_acknowledge, frame.ttl - 1)


def router_answer(frame: Frame, code: int, client_id: str) -> Frame | None:
    """The answer to a message for a router (F123); None if it asks for none."""
    if frame.pending_acknowledge:
        reason = NackReason.NO_CONSUMERS.value if code == RESULT_NOT_FOUND else _reason_of(code)
        return Frame.build(
            TYPE_ACKNOWLEDGE,
            frame.target,
            frame.content_type,
            message_id=frame.message_id,
            headers=[] if code == RESULT_OK else [(_NACK_REASON, reason)],
        )
    if frame.pending_response:
        return response_frame(frame, code, client_id)
    return None
