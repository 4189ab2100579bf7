"""Reads the operations about stored messages: offsets, ranges, cursors, groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tmqp.block_columns import (
    COLUMN_ATTEMPTS,
    COLUMN_FLAGS,
    COLUMN_HOPS,
    COLUMN_PUT_BACKS,
    COLUMN_TIMESTAMP,
    COLUMN_VALUE,
)
from tmqp.blocks import AS_BLOCKS, AS_COLUMNS, AS_REFERENCES
from tmqp.extensions import (
    FORM_REFERENCES,
    HEADER_COLUMNS,
    HEADER_CURSOR,
    HEADER_FORM,
    HEADER_FROM,
    HEADER_INCARNATION,
    HEADER_LIMIT,
    HEADER_MAX_BYTES,
    HEADER_MESSAGE_ID,
    HEADER_SEQUENCE,
    HEADER_START,
    HEADER_STATE,
    HEADER_TIMESTAMP,
    HEADER_TO,
    HEADER_WAIT,
    OP_BROWSE,
    OP_COMMIT_CURSOR,
    OP_COMMIT_GROUP,
    OP_DROP_CURSOR,
    OP_DROP_GROUP,
    OP_LIST_CURSORS,
    OP_LIST_GROUPS,
    OP_OFFSETS,
    OP_OPEN_GROUP,
    OP_READ_INDEX,
    OP_READ_RANGE,
    OP_RESET_GROUP,
    OP_SPLIT_RANGE,
    START_EARLIEST,
    START_LATEST,
    STATE_DEFERRED,
    STATE_IN_FLIGHT,
    STATE_WAITING,
)
from tmqp.frames import Frame
from tmqp_server.doors.native.filters import filter_in
from tmqp_server.doors.native.parameters import (
    MOST,
    BadRequestError,
    number_header,
    queue_id_header,
    queue_id_of,
)
from tmqp_server.doors.native.places import group_places, known_places
from tmqp_server.engine.commands import (
    Browse,
    Command,
    CommitCursor,
    CommitGroup,
    DropGroup,
    GroupPlace,
    KnownQueue,
    ListCursors,
    ListGroups,
    ListOffsets,
    OpenCursor,
    OpenGroup,
    ReadIndex,
    ReadRange,
    RemoveCursor,
    ResetGroup,
    SplitRange,
)

__all__ = ["READING"]

#: In which form kept messages are sent, besides blocks.
_FORMS: Final = {FORM_REFERENCES: AS_REFERENCES}
#: Columns of kept messages; the sequence is always there.
_COLUMNS: Final = {
    "sequence": 0,
    "timestamp": COLUMN_TIMESTAMP,
    "flags": COLUMN_FLAGS,
    "attempts": COLUMN_ATTEMPTS,
    "put-backs": COLUMN_PUT_BACKS,
    "hops": COLUMN_HOPS,
    "value": COLUMN_VALUE,
}
#: The latest time that is asked about: as microseconds it has 63 bits.
_MOST_MS: Final = MOST // 1_000


def _incarnation(frame: Frame) -> str:
    return (frame.header(HEADER_INCARNATION) or "").strip()


def _timestamp_ms(frame: Frame) -> int:
    """The time in a frame's header Timestamp, in milliseconds since 1970; -1 for none."""
    timestamp_ms = number_header(frame, HEADER_TIMESTAMP)
    if timestamp_ms is None:
        return -1
    if timestamp_ms > _MOST_MS:
        raise BadRequestError(f"{HEADER_TIMESTAMP} is at most {_MOST_MS} milliseconds")
    return timestamp_ms


def _is_earliest(start: str) -> bool:
    start = start.strip().lower()
    if start != START_EARLIEST and start != START_LATEST:
        raise BadRequestError(
            f"{HEADER_START} is {START_EARLIEST} or {START_LATEST}, got {start[:32]!r}"
        )
    return start == START_EARLIEST


# --- Offsets and ranges --------------------------------------------------------------------------


def _list_offsets(session: int, frame: Frame) -> Command:
    wait_ms = number_header(frame, HEADER_WAIT) or 0
    known: list[KnownQueue] = []
    if wait_ms and frame.payload_size:
        for channel, queue_id, latest, incarnation in known_places(frame):
            known.append(KnownQueue(channel, queue_id, latest, incarnation))
    return ListOffsets(
        session,
        frame,
        frame.target,
        queue_id_header(frame),
        None,
        (frame.header(HEADER_CURSOR) or "").strip(),
        _timestamp_ms(frame),
        wait_ms,
        known,
    )


def _read_range(session: int, frame: Frame) -> Command:
    return _range(ReadRange, session, frame)


def _read_index(session: int, frame: Frame) -> Command:
    return _range(ReadIndex, session, frame)


def _split_range(session: int, frame: Frame) -> Command:
    return _range(SplitRange, session, frame)


def _range(kind: type[ReadRange], session: int, frame: Frame) -> Command:
    queue_id = queue_id_of(frame, body_may_hold_it=False)
    first = number_header(frame, HEADER_FROM) or 0
    last = number_header(frame, HEADER_TO) or 0
    if last and last < first:
        raise BadRequestError(f"{HEADER_TO} {last} is before {HEADER_FROM} {first}")
    limit = number_header(frame, HEADER_LIMIT) or 0
    max_bytes = number_header(frame, HEADER_MAX_BYTES) or 0
    incarnation = _incarnation(frame)
    form = _form(frame) if kind is ReadRange else AS_BLOCKS
    return kind(
        session, frame, frame.target, queue_id, first, last, limit, max_bytes, incarnation, form
    )


def _form(frame: Frame) -> int:
    """The form in which a frame asks for stored messages.

    :raises BadRequestError: when the form or a column is unknown.
    """
    word = (frame.header(HEADER_FORM) or "").strip().lower()
    wanted = frame.header(HEADER_COLUMNS)
    if wanted is not None:
        if word:
            raise BadRequestError(f"either {HEADER_COLUMNS} or {HEADER_FORM}")
        form = AS_COLUMNS
        for name in wanted.lower().split(","):
            column = _COLUMNS.get(name.strip())
            if column is None:
                names = ", ".join(_COLUMNS)
                raise BadRequestError(f"{HEADER_COLUMNS} is of {names}, got {name.strip()[:32]!r}")
            form |= column
        return form
    if not word:
        return AS_BLOCKS
    if word not in _FORMS:
        raise BadRequestError(f"{HEADER_FORM} is {', '.join(_FORMS)}, got {word[:32]!r}")
    return _FORMS[word]


#: Where a message is, as bits of the engine's.
_STATES: Final = {STATE_WAITING: 1, STATE_DEFERRED: 2, STATE_IN_FLIGHT: 4}


def _browse(session: int, frame: Frame) -> Command:
    queue_id = queue_id_of(frame, body_may_hold_it=False)
    states = 0
    for word in (frame.header(HEADER_STATE) or "").lower().split(","):
        if word.strip():
            state = _STATES.get(word.strip())
            if state is None:
                words = ", ".join(_STATES)
                raise BadRequestError(f"{HEADER_STATE} is of {words}, got {word[:32]!r}")
            states |= state
    return Browse(
        session,
        frame,
        frame.target,
        queue_id,
        number_header(frame, HEADER_FROM) or 0,
        number_header(frame, HEADER_LIMIT) or 0,
        number_header(frame, HEADER_MAX_BYTES) or 0,
        states or sum(_STATES.values()),
        (frame.header(HEADER_MESSAGE_ID) or "").strip(),
        filter_in(frame),
    )


# --- Cursors -------------------------------------------------------------------------------------


def _cursor_name(frame: Frame) -> str:
    name = (frame.header(HEADER_CURSOR) or "").strip()
    if not name:
        raise BadRequestError(f"the header {HEADER_CURSOR} is missing")
    return name


def _commit_cursor(session: int, frame: Frame) -> Command:
    queue_id = queue_id_of(frame, body_may_hold_it=False)
    name = _cursor_name(frame)
    sequence = number_header(frame, HEADER_SEQUENCE)
    start = frame.header(HEADER_START)
    if (sequence is None) == (start is None):
        raise BadRequestError(f"either {HEADER_SEQUENCE} or {HEADER_START} is needed")
    if sequence is not None:
        return CommitCursor(
            session, frame, frame.target, queue_id, name, sequence, _incarnation(frame)
        )
    assert start is not None, "one of both"
    earliest = _is_earliest(start)
    return OpenCursor(
        session,
        frame,
        frame.target,
        queue_id,
        name,
        earliest,
        _incarnation(frame),
    )


def _list_cursors(session: int, frame: Frame) -> Command:
    queue_id = queue_id_of(frame, body_may_hold_it=False)
    return ListCursors(session, frame, frame.target, queue_id, _incarnation(frame))


def _drop_cursor(session: int, frame: Frame) -> Command:
    queue_id = queue_id_of(frame, body_may_hold_it=False)
    name = _cursor_name(frame)
    return RemoveCursor(session, frame, frame.target, queue_id, name, _incarnation(frame))


# --- Groups --------------------------------------------------------------------------------------


def _beginning(frame: Frame) -> tuple[bool, int]:
    """Where a group begins: whether at the earliest message, and else the time in milliseconds
    since 1970 (-1 for none)."""
    start = frame.header(HEADER_START)
    timestamp_ms = _timestamp_ms(frame)
    if (start is None) == (timestamp_ms < 0):
        raise BadRequestError(f"either {HEADER_START} or {HEADER_TIMESTAMP} is needed")
    return start is not None and _is_earliest(start), timestamp_ms


def _places(frame: Frame) -> list[GroupPlace]:
    places: list[GroupPlace] = []
    for channel, queue_id, sequence, incarnation in group_places(frame):
        places.append(GroupPlace(channel, queue_id, sequence, incarnation))
    return places


def _open_group(session: int, frame: Frame) -> Command:
    name = _cursor_name(frame)
    earliest, timestamp_ms = _beginning(frame)
    queue_id = queue_id_header(frame)
    return OpenGroup(session, frame, name, frame.target, queue_id, earliest, timestamp_ms)


def _commit_group(session: int, frame: Frame) -> Command:
    return CommitGroup(session, frame, _cursor_name(frame), _places(frame))


def _list_groups(session: int, frame: Frame) -> Command:
    name = (frame.header(HEADER_CURSOR) or "").strip()
    return ListGroups(session, frame, frame.target, queue_id_header(frame), None, name)


def _reset_group(session: int, frame: Frame) -> Command:
    name = _cursor_name(frame)
    queue_id = queue_id_header(frame)
    if frame.payload_size:
        if frame.header(HEADER_START) is not None or frame.header(HEADER_TIMESTAMP) is not None:
            raise BadRequestError(
                f"either an array of places, or {HEADER_START}, or {HEADER_TIMESTAMP}"
            )
        return ResetGroup(session, frame, name, None, None, _places(frame))
    earliest, timestamp_ms = _beginning(frame)
    return ResetGroup(session, frame, name, frame.target, queue_id, None, earliest, timestamp_ms)


def _drop_group(session: int, frame: Frame) -> Command:
    name = _cursor_name(frame)
    return DropGroup(session, frame, name, frame.target, queue_id_header(frame))


#: The operations by number, each with the function that makes its command.
READING: Final[dict[int, Callable[[int, Frame], Command]]] = {
    OP_OFFSETS: _list_offsets,
    OP_READ_RANGE: _read_range,
    OP_READ_INDEX: _read_index,
    OP_BROWSE: _browse,
    OP_COMMIT_CURSOR: _commit_cursor,
    OP_LIST_CURSORS: _list_cursors,
    OP_DROP_CURSOR: _drop_cursor,
    OP_SPLIT_RANGE: _split_range,
    OP_OPEN_GROUP: _open_group,
    OP_COMMIT_GROUP: _commit_group,
    OP_LIST_GROUPS: _list_groups,
    OP_RESET_GROUP: _reset_group,
    OP_DROP_GROUP: _drop_group,
}
