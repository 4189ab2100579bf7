"""Converts requests about counters and buffers to commands about cells, and their results to
replies.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.doors.throttr.context import ThrottrContext
from tmqp_server.engine.commands import (
    CELL_COUNT,
    CELL_TTL,
    COUNTER,
    UNIT_NS,
    VALUE,
    CellSnapshot,
    ChangeCell,
    Command,
    DropCell,
    MakeCounter,
    PutValue,
    ReadCell,
)
from tmqp_wires.throttr import words
from tmqp_wires.throttr.replies import get_reply, query_reply, stat_reply
from tmqp_wires.throttr.requests import Request

__all__ = ["cell_command", "cell_reply"]

_CHANGES: Final = (words.CHANGE_PATCH, words.CHANGE_INCREASE, words.CHANGE_DECREASE)


def cell_command(
    context: ThrottrContext, number: int, request: Request, asked: object
) -> Command | None:
    """The command for a request about a key; None for an impossible request.

    :param asked: the command's token.
    """
    space, key = context.space, request.key
    code = request.code
    if code == words.QUERY:
        return ReadCell(number, asked, space, key, COUNTER)
    if code == words.GET:
        return ReadCell(number, asked, space, key, VALUE)
    if code == words.UPDATE:
        if request.change not in _CHANGES:
            return None
        what = CELL_TTL if request.attribute == words.ATTRIBUTE_TTL else CELL_COUNT
        if what == CELL_COUNT and request.attribute != words.ATTRIBUTE_QUOTA:
            return None
        # The ways of changing have the same numbers in the engine.
        return ChangeCell(
            number,
            asked,
            space,
            key,
            what,
            request.change,
            request.amount,
            0,
            context.most + 1,
            tells=False,
        )
    if code == words.PURGE:
        return DropCell(number, asked, space, key)
    if not 0 < request.ttl_type < len(UNIT_NS):
        return None
    if code == words.INSERT:
        return MakeCounter(number, asked, space, key, request.amount, request.ttl, request.ttl_type)
    return PutValue(number, asked, space, key, request.value, request.ttl, request.ttl_type)


def cell_reply(context: ThrottrContext, code: int, cell: CellSnapshot) -> bytes:
    """The reply with the contents of a cell, or with how often it was read and written."""
    if code == words.STAT:
        figures = (cell.reads_per_minute, cell.writes_per_minute, cell.reads, cell.writes)
        return stat_reply(*figures)
    width = context.width
    ttl = max(cell.left_ns, 0) // UNIT_NS[cell.unit]
    if code == words.QUERY:
        return query_reply(cell.count, cell.unit, ttl, width)
    return get_reply(cell.unit, ttl, cell.value, width)
