"""Reads and answers the operations about cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from tmqp.extensions import (
    CELL_COUNTER,
    CELL_VALUE,
    CHANGE_ADD,
    CHANGE_ADD_TIMEOUT,
    CHANGE_SET,
    CHANGE_SET_TIMEOUT,
    CHANGE_SUBTRACT,
    CHANGE_SUBTRACT_TIMEOUT,
    HEADER_AMOUNT,
    HEADER_CELL_KEY,
    HEADER_CELL_KIND,
    HEADER_CHANGE,
    HEADER_FROM,
    HEADER_INITIAL,
    HEADER_LIMIT,
    HEADER_TIMEOUT,
    OP_CHANGE_CELL,
    OP_DESCRIBE_CELL,
    OP_DROP_CELL,
    OP_LIST_CELLS,
    OP_MAKE_COUNTER,
    OP_PUT_VALUE,
    OP_READ_CELL,
)
from tmqp.frames import Frame
from tmqp_server.doors.native.parameters import BadRequestError, number_header
from tmqp_server.engine.commands import (
    ADD,
    CELL_COUNT,
    CELL_TTL,
    COUNTER,
    MILLISECONDS,
    MOST_COUNT,
    SET,
    SUBTRACT,
    UNIT_NS,
    CellSnapshot,
    ChangeCell,
    Command,
    DescribeCell,
    DropCell,
    ListCells,
    MakeCounter,
    PutValue,
    ReadCell,
)

__all__ = ["CELLS", "KINDS", "cell_headers", "cell_payload", "key_text", "left_ms"]

#: Digits of the largest count.
_MOST_DIGITS: Final = 20
_MS_NS: Final = UNIT_NS[MILLISECONDS]
#: The words for the kinds of cells.
KINDS: Final = (CELL_COUNTER, CELL_VALUE)
#: What each change affects, and how.
_CHANGES: Final[dict[str, tuple[int, int]]] = {
    CHANGE_SET: (CELL_COUNT, SET),
    CHANGE_ADD: (CELL_COUNT, ADD),
    CHANGE_SUBTRACT: (CELL_COUNT, SUBTRACT),
    CHANGE_SET_TIMEOUT: (CELL_TTL, SET),
    CHANGE_ADD_TIMEOUT: (CELL_TTL, ADD),
    CHANGE_SUBTRACT_TIMEOUT: (CELL_TTL, SUBTRACT),
}


def _key_of(frame: Frame) -> bytes:
    text = frame.header(HEADER_CELL_KEY)
    if text is None:
        raise BadRequestError(f"the header {HEADER_CELL_KEY} is missing")
    return unquote_to_bytes(text.strip())


def key_text(key: bytes) -> str:
    """A key as text.  If it is not plain printable UTF-8, its bytes are escaped as ``%xx``."""
    try:
        text = key.decode("utf-8")
    except UnicodeDecodeError:
        return quote_from_bytes(key, safe="")
    if text.isprintable() and "%" not in text and text == text.strip():
        return text
    return quote_from_bytes(key, safe="")


def _count_of(frame: Frame, name: str) -> int | None:
    text = frame.header(name)
    if text is None:
        return None
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        raise BadRequestError(f"{name} must be a number 0..{MOST_COUNT}, got {text[:32]!r}")
    return int(text)


def _timeout_of(frame: Frame) -> int:
    timeout_ms = number_header(frame, HEADER_TIMEOUT)
    if timeout_ms is None:
        raise BadRequestError(f"the header {HEADER_TIMEOUT} is missing")
    return timeout_ms


def _make_counter(session: int, frame: Frame) -> Command:
    count = _count_of(frame, HEADER_AMOUNT) or 0
    return MakeCounter(
        session, frame, frame.target, _key_of(frame), count, _timeout_of(frame), MILLISECONDS
    )


def _put_value(session: int, frame: Frame) -> Command:
    timeout_ms = _timeout_of(frame)
    return PutValue(session, frame, frame.target, _key_of(frame), frame.payload, timeout_ms)


def _change_cell(session: int, frame: Frame) -> Command:
    word = (frame.header(HEADER_CHANGE) or "").strip().lower()
    found = _CHANGES.get(word)
    if found is None:
        raise BadRequestError(f"{HEADER_CHANGE} is one of {', '.join(_CHANGES)}, got {word[:32]!r}")
    what, change = found
    key = _key_of(frame)
    if what == CELL_TTL:
        timeout_ms = _timeout_of(frame)
        return ChangeCell(session, frame, frame.target, key, what, change, timeout_ms, MILLISECONDS)
    amount = _count_of(frame, HEADER_AMOUNT)
    if amount is None:
        amount = 1
    initial = _count_of(frame, HEADER_INITIAL)
    command = ChangeCell(session, frame, frame.target, key, what, change, amount)
    if initial is not None:
        command.initial = initial
        command.ttl = _timeout_of(frame)
    return command


def _list_cells(session: int, frame: Frame) -> Command:
    first = number_header(frame, HEADER_FROM) or 0
    limit = number_header(frame, HEADER_LIMIT)
    return ListCells(session, frame, frame.target, first, MOST_COUNT if limit is None else limit)


#: The operations by number, each with the function that makes its command.
CELLS: Final[dict[int, Callable[[int, Frame], Command]]] = {
    OP_MAKE_COUNTER: _make_counter,
    OP_PUT_VALUE: _put_value,
    OP_READ_CELL: lambda session, frame: ReadCell(session, frame, frame.target, _key_of(frame)),
    OP_CHANGE_CELL: _change_cell,
    OP_DROP_CELL: lambda session, frame: DropCell(session, frame, frame.target, _key_of(frame)),
    OP_LIST_CELLS: _list_cells,
    OP_DESCRIBE_CELL: lambda session, frame: DescribeCell(
        session, frame, frame.target, _key_of(frame)
    ),
}


def left_ms(cell: CellSnapshot) -> int:
    """The whole milliseconds until a cell expires; at most what 64 bits hold."""
    return min(max(cell.left_ns, 0) // _MS_NS, MOST_COUNT)


def cell_headers(cell: CellSnapshot) -> list[tuple[str, str]]:
    """The headers of an answer with the contents of a cell."""
    return [(HEADER_CELL_KIND, KINDS[cell.kind]), (HEADER_TIMEOUT, str(left_ms(cell)))]


def cell_payload(cell: CellSnapshot) -> bytes:
    """The contents of a cell: a counter as decimal digits, a value unchanged."""
    return str(cell.count).encode() if cell.kind == COUNTER else cell.value
