"""Reads transactions: operations into commands, pushed blocks into message sets.

Theory of operation.  The payload of a push into a transaction is consecutive whole Queue Messages.
They are read like single pushes, so that nothing is staged that could not be delivered: each must
be a push with its sender's own id as source (F42).  Those of one queue are a *message set* with
their bytes joined, which the storage divides again (:func:`unpacked`).  Blocks of similar messages
are read faster (``staged.py``).
"""

from __future__ import annotations

from typing import Final

from tmqp.codec import FrameDecoder
from tmqp.constants import RESULT_NOT_IMPLEMENTED, RESULT_OK, TYPE_QUEUE_MESSAGE
from tmqp.extensions import (
    HEADER_ATTEMPT,
    HEADER_EPOCH,
    HEADER_PART,
    HEADER_TIMEOUT,
    HEADER_TRANSACTION,
    OP_ABORT_TRANSACTION,
    OP_APPLY_BATCH,
    OP_COMMIT_TRANSACTION,
    OP_LIST_TRANSACTIONS,
    OP_OPEN_TRANSACTION,
    OP_PUSH_TRANSACTION,
)
from tmqp.frames import Frame
from tmqp.limits import Limits
from tmqp.models import MAX_LIST_BYTES
from tmqp.models._json import JsonRefusedError, load
from tmqp_server.doors.native.batches import batch_command
from tmqp_server.doors.native.copies import copy_addresses
from tmqp_server.doors.native.operations import may_have_times, push_extras
from tmqp_server.doors.native.parameters import BadRequestError, number_header
from tmqp_server.doors.native.staged import quick_message_sets
from tmqp_server.doors.port import IdSource
from tmqp_server.engine.commands import (
    AbortTransaction,
    Command,
    CommitTransaction,
    ListTransactions,
    MessageSet,
    OpenTransaction,
    PushTransaction,
)
from tmqp_server.engine.options import QueueChanges

__all__ = [
    "TRANSACTION_OPERATIONS",
    "transaction_command",
    "unpacked",
]

TRANSACTION_OPERATIONS: Final = (
    OP_OPEN_TRANSACTION,
    OP_PUSH_TRANSACTION,
    OP_COMMIT_TRANSACTION,
    OP_ABORT_TRANSACTION,
    OP_LIST_TRANSACTIONS,
    OP_APPLY_BATCH,
)
#: What was staged was accepted once, whatever the limits are now.
_STAGED: Final = Limits(max_payload_bytes=1 << 40)
_ID: Final = "Id"
_COUNT: Final = "Count"
_MOST: Final = 2**63 - 1


def transaction_command(
    session: int,
    frame: Frame,
    client_id: str,
    door: str,
    new_id: IdSource,
    limits: Limits,
    unix_s: float,
) -> Command:
    """The command for an operation about transactions or batches.

    :param unix_s: the time, in seconds since 1970.
    :raises BadRequestError: when its contents are invalid.
    """
    number = frame.content_type
    target = frame.target
    if number == OP_APPLY_BATCH:
        return batch_command(session, frame, client_id, new_id, limits, unix_s)
    if number == OP_PUSH_TRANSACTION:
        transaction = _needed(frame, HEADER_TRANSACTION)
        message_sets: list[MessageSet] = []
        problem = RESULT_OK
        try:
            message_sets = _message_sets_of(frame.payload, client_id, door, new_id, limits)
        except BadRequestError as error:
            # It reaches its transaction all the same, for it breaks it.
            problem = error.code
        return PushTransaction(session, frame, target, transaction, message_sets, problem)
    if number == OP_OPEN_TRANSACTION:
        return OpenTransaction(
            session,
            frame,
            target,
            _needed(frame, HEADER_EPOCH),
            number_header(frame, HEADER_PART),
            number_header(frame, HEADER_ATTEMPT) or 0,
            number_header(frame, HEADER_TIMEOUT) or 0,
        )
    if number == OP_COMMIT_TRANSACTION:
        epoch = _needed(frame, HEADER_EPOCH)
        transactions, counts = _named(frame.payload)
        return CommitTransaction(session, frame, target, epoch, transactions, counts)
    if number == OP_ABORT_TRANSACTION:
        given = number_header(frame, HEADER_TRANSACTION)
        epoch = 0 if given is not None else _needed(frame, HEADER_EPOCH)
        return AbortTransaction(session, frame, target, given, epoch)
    assert number == OP_LIST_TRANSACTIONS, "one of these operations"
    return ListTransactions(session, frame, target or "*")


def _needed(frame: Frame, name: str) -> int:
    number = number_header(frame, name)
    if number is None:
        raise BadRequestError(f"the header {name} is missing")
    return number


def _named(payload: bytes) -> tuple[list[int], list[int]]:
    """The transactions that a commit names, and how many messages each must hold (-1: any number).

    :raises BadRequestError: when it is not an array of ids, or of objects with ``Id`` and
        ``Count``.
    """
    if not payload:
        return [], []
    try:
        value = load(payload, MAX_LIST_BYTES)
    except JsonRefusedError as error:
        raise BadRequestError(f"the body must be {error.expected}, got {error.got}") from error
    if not isinstance(value, list):
        raise BadRequestError("the body must be an array of transactions")
    transactions: list[int] = []
    counts: list[int] = []
    for item in value:
        count = -1
        number: object = item
        if isinstance(item, dict):
            number = item.get(_ID)
            if _COUNT in item:
                count = _whole(item[_COUNT])
        transactions.append(_whole(number))
        counts.append(count)
    return transactions, counts


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST:
        return value
    raise BadRequestError("a transaction is a number, or an object with Id and Count")


# --- Pushed blocks -------------------------------------------------------------------------------


class _Gathered:
    """The messages of a block that go to one queue."""

    __slots__ = ("changes", "high", "high_size", "largest", "pieces", "size")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.high = 0
        self.high_size = 0
        self.size = 0
        self.largest = 0
        self.changes: QueueChanges | None = None


def _message_sets_of(
    block: bytes, client_id: str, door: str, new_id: IdSource, limits: Limits
) -> list[MessageSet]:
    """The message sets of a block, one for each queue, in the order of their first messages.

    :raises BadRequestError: for anything but the client's own pushes without copies and times.
    """
    quick = quick_message_sets(block, client_id, door, limits)
    if quick is not None:
        return quick
    found: dict[tuple[str, int], _Gathered] = {}
    channel = ""
    queue_id = -1
    current = _Gathered()
    for frame in _frames_of(block, FrameDecoder(limits)):
        each = frame
        if each.type != TYPE_QUEUE_MESSAGE:
            raise BadRequestError("a transaction holds pushed messages only")
        source = each.source
        if source != client_id:
            if source:
                raise BadRequestError("the source of a message must be the sender's own id")
            each = each.replace(source=client_id)
        if not each.message_id:
            each = each.replace(message_id=new_id())
        if each.content_type != queue_id or each.target != channel:
            channel = each.target
            queue_id = each.content_type
            there = found.get((channel, queue_id))
            if there is None:
                there = _Gathered()
                found[(channel, queue_id)] = there
                if each.has_header:
                    extras = push_extras(each, 0.0)
                    there.changes = None if extras is None else extras.changes
            current = there
        if each.has_header and copy_addresses(each):
            raise BadRequestError(
                "a transaction makes no copies: push them separately", RESULT_NOT_IMPLEMENTED
            )
        if each.has_header and may_have_times(each):
            raise BadRequestError(
                "messages of a transaction cannot be deferred and cannot have their own timeout",
                RESULT_NOT_IMPLEMENTED,
            )
        raw = each.raw
        size = len(raw)
        current.pieces.append(raw)
        current.size += size
        current.largest = max(current.largest, size)
        if each.high_priority:
            current.high += 1
            current.high_size += size
    message_sets: list[MessageSet] = []
    for place, gathered in found.items():
        message_sets.append(
            MessageSet(
                door,
                place[0],
                place[1],
                b"".join(gathered.pieces),
                len(gathered.pieces),
                gathered.high,
                gathered.size,
                gathered.largest,
                gathered.changes,
                high_size=gathered.high_size,
            )
        )
    return message_sets


def _frames_of(block: bytes, decoder: FrameDecoder) -> list[Frame]:
    frames = decoder.feed(block)
    if decoder.error is not None:
        raise BadRequestError(f"a message is invalid: {decoder.error}")
    if decoder.buffered:
        raise BadRequestError(f"the last message is cut off after {decoder.buffered} bytes")
    return frames


def unpacked(data: bytes) -> list[tuple[bytes, int, int, bool]]:
    """The messages of a set: bytes, the offset and size of the payload in them, and whether the
    priority is high.

    :raises ValueError: when the bytes are not whole messages.
    """
    pieces: list[tuple[bytes, int, int, bool]] = []
    try:
        frames = _frames_of(data, FrameDecoder(_STAGED))
    except BadRequestError as error:
        raise ValueError(f"{len(data)} bytes were staged: {error}") from error
    for each in frames:
        raw = each.raw
        size = each.payload_size
        pieces.append((raw, len(raw) - size, size, each.high_priority))
    return pieces
