"""``/cells``: counters and values that expire."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from tmqp.constants import RESULT_UNACCEPTABLE
from tmqp_server.admin.api.running import AskOnce, Stepping, Steps, done, need, show
from tmqp_server.admin.api.table import Api, Begin, Operation, body_of, integer, whole_of
from tmqp_server.doors.http.contents import MOST_DELAY_MS, payload_members, payload_of
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import BadRequest, HttpResponse, problem
from tmqp_server.doors.native.cells import KINDS, key_text, left_ms
from tmqp_server.engine.commands import (
    ADD,
    CELL_COUNT,
    CELL_TTL,
    COUNTER,
    MILLISECONDS,
    MOST_COUNT,
    SET,
    SUBTRACT,
    CellPortion,
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

__all__ = ["CELL_OPERATIONS", "CHANGES"]

_NO_CELL: Final = "there is no such cell"
_MOST_LISTED: Final = 1_000
#: The largest place in a list that a request may have.
_MOST_PLACE: Final = 10**15 - 1
#: What a change applies to, and its kind, by the member with the amount.
CHANGES: Final[Mapping[str, tuple[int, int]]] = {
    "set": (CELL_COUNT, SET),
    "add": (CELL_COUNT, ADD),
    "subtract": (CELL_COUNT, SUBTRACT),
    "ttl_ms": (CELL_TTL, SET),
    "extend_ms": (CELL_TTL, ADD),
    "shorten_ms": (CELL_TTL, SUBTRACT),
}
#: What the broker's 406 means for a change of a counter.
_CANNOT: Final = {
    SET: "the cell is a value, not a counter",
    ADD: "the sum is too large, or the cell is a value",
    SUBTRACT: "the counter is less than the amount, or the cell is a value",
}


def _place(exchange: Exchange) -> tuple[str, bytes]:
    """The space and the key; the key is written as in TMQP, with ``%xx`` for bytes that are not
    text.
    """
    return exchange.wanted.text("space"), unquote_to_bytes(exchange.wanted.text("key"))


# --- Shapes --------------------------------------------------------------------------------------


def _item(cell: CellSnapshot) -> dict[str, object]:
    found: dict[str, object] = {
        "key": key_text(cell.key),
        "kind": KINDS[cell.kind],
        "ttl_ms": left_ms(cell),
    }
    if cell.kind == COUNTER:
        found["count"] = cell.count
    return found


def _with_size(cell: CellSnapshot) -> dict[str, object]:
    return _item(cell) if cell.kind == COUNTER else {**_item(cell), "bytes": len(cell.value)}


def _with_contents(cell: CellSnapshot) -> dict[str, object]:
    return _item(cell) if cell.kind == COUNTER else {**_item(cell), **payload_members(cell.value)}


def _with_figures(cell: CellSnapshot) -> dict[str, object]:
    return {
        **_with_size(cell),
        "reads": cell.reads,
        "writes": cell.writes,
        "reads_per_minute": cell.reads_per_minute,
        "writes_per_minute": cell.writes_per_minute,
    }


def _one(shape: Callable[[CellSnapshot], object]) -> Callable[[object], HttpResponse]:
    def shaped(body: object) -> object:
        assert isinstance(body, CellSnapshot), "it is the answer"
        return shape(body)

    return show(shaped)


def _portion(body: object) -> object:
    assert isinstance(body, CellPortion), "it is the answer"
    return {
        "items": [_with_size(each) for each in body.cells],
        "next": body.following or None,
        "counters": body.counters,
        "values": body.values,
        "value_bytes": body.value_bytes,
    }


# --- Operations ----------------------------------------------------------------------------------


def _list(_api: Api, exchange: Exchange) -> Handler:
    space = exchange.wanted.text("space")
    first = exchange.wanted.count("after", 0, 0, _MOST_PLACE)
    limit = exchange.wanted.count("limit", 100, 1, _MOST_LISTED)
    return AskOnce(
        exchange,
        lambda session, request: ListCells(session, request, space, first, limit),
        show(_portion),
    )


def _asking(
    command: Callable[[int, object, str, bytes], Command],
    respond: Callable[[object], HttpResponse],
) -> Begin:
    """Returns the start of an operation that asks the broker one thing about an existing cell."""

    def begin(_api: Api, exchange: Exchange) -> Handler:
        place = _place(exchange)
        return AskOnce(
            exchange, lambda session, request: command(session, request, *place), respond, _NO_CELL
        )

    return begin


def _put(_api: Api, exchange: Exchange) -> Handler:
    place = _place(exchange)
    given = body_of(exchange.wanted, {"count": int, "text": str, "base64": str, "ttl_ms": int})
    ttl_ms = _number(given, "ttl_ms", MOST_DELAY_MS)
    if ("count" in given) + ("text" in given) + ("base64" in given) != 1:
        raise BadRequest(422, "give one of count, text and base64")
    if "count" in given:
        count = _number(given, "count", MOST_COUNT)
        return _careful(
            exchange,
            lambda session, request: MakeCounter(session, request, *place, count, ttl_ms),
            "",
        )
    value = payload_of(given.get("text"), given.get("base64"))
    exchange.wanted.body = b""  # the command has it
    return _careful(
        exchange,
        lambda session, request: PutValue(session, request, *place, value, ttl_ms),
        "the cell is a counter; a value cannot replace it",
    )


def _change(_api: Api, exchange: Exchange) -> Handler:
    place = _place(exchange)
    given = body_of(exchange.wanted, {**dict.fromkeys(CHANGES, int), "initial": dict})
    named = [each for each in given if each in CHANGES]
    if len(named) != 1:
        raise BadRequest(422, f"give one of {', '.join(CHANGES)}")
    what, change = CHANGES[named[0]]
    amount = _number(given, named[0], MOST_COUNT if what == CELL_COUNT else MOST_DELAY_MS)
    unit = MILLISECONDS if what == CELL_TTL else 0
    initial, ttl_ms = -1, 0
    if "initial" in given:
        if named[0] not in ("add", "subtract"):
            raise BadRequest(422, "initial belongs to add and subtract")
        initial, ttl_ms = _initial(given["initial"])

    def make(session: int, request: object) -> Command:
        command = ChangeCell(session, request, *place, what, change, amount, unit)
        command.initial = initial
        command.ttl = ttl_ms
        return command

    return _careful(exchange, make, _CANNOT[change], _one(_item))


def _careful(
    exchange: Exchange,
    make: Callable[[int, object], Command],
    cannot: str,
    respond: Callable[[object], HttpResponse] | None = None,
) -> Handler:
    """Asks the broker one thing; if the cell does not allow it (406), the answer is 409.

    :param cannot: the text of that 409.
    """

    def steps(session: int, request: object) -> Steps:
        reply = yield make(session, request)
        if reply.code == RESULT_UNACCEPTABLE:
            return problem(409, cannot, code=reply.code)
        body = need(reply, _NO_CELL)
        return HttpResponse(204) if respond is None else respond(body)

    return Stepping(exchange, steps)


def _initial(given: Mapping[str, Any]) -> tuple[int, int]:
    """The counter that a change makes if the cell does not exist: its count and TTL."""
    if given.keys() != {"count", "ttl_ms"}:
        raise BadRequest(422, "initial needs count and ttl_ms, and nothing else")
    return _number(given, "count", MOST_COUNT), _number(given, "ttl_ms", MOST_DELAY_MS)


def _number(given: Mapping[str, Any], name: str, most: int) -> int:
    """Read a required whole number from 0 to ``most``."""
    return whole_of(given, name, -1, 0, most)


_CELL: Final = "/cells/{space}/{key}"

CELL_OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        name="listCells",
        method="GET",
        path="/cells/{space}",
        summary="The cells of a space, in the order in which they were made.",
        begin=_list,
        rights=("cells-read",),
        commands=(ListCells,),
        query=(
            integer("limit", "Items of a page.", 1, _MOST_LISTED, 100),
            integer("after", "What `next` of the page before says.", 0, _MOST_PLACE, 0),
        ),
        answer="CellList",
        cli=("cell ls",),
    ),
    Operation(
        name="readCell",
        method="GET",
        path=_CELL,
        summary="A counter or a value, and how long it lives.",
        begin=_asking(ReadCell, _one(_with_contents)),
        rights=("cells-read",),
        commands=(ReadCell,),
        answer="Cell",
        failures=(404,),
        cli=("cell get",),
    ),
    Operation(
        name="putCell",
        method="PUT",
        path=_CELL,
        summary="Make a counter, which must not be there; or put a value, there or not.",
        begin=_put,
        rights=("cells-write",),
        commands=(MakeCounter, PutValue),
        body="NewCell",
        status=204,
        failures=(409, 422),
        cli=("cell make", "cell put"),
    ),
    Operation(
        name="removeCell",
        method="DELETE",
        path=_CELL,
        summary="Remove a cell.",
        begin=_asking(DropCell, done()),
        rights=("cells-write",),
        commands=(DropCell,),
        status=204,
        failures=(404,),
        cli=("cell rm",),
    ),
    Operation(
        name="changeCell",
        method="POST",
        path=f"{_CELL}/changes",
        summary="Change a counter, or how long a cell lives; the answer tells what it is then.",
        begin=_change,
        rights=("cells-write",),
        commands=(ChangeCell,),
        body="CellChange",
        answer="Cell",
        failures=(404, 409, 422),
        cli=("cell set", "cell add", "cell subtract", "cell ttl"),
    ),
    Operation(
        name="describeCell",
        method="GET",
        path=f"{_CELL}/figures",
        summary="How often a cell was read and written; this is no read.",
        begin=_asking(DescribeCell, _one(_with_figures)),
        rights=("cells-read",),
        commands=(DescribeCell,),
        answer="CellFigures",
        failures=(404,),
        cli=("cell info",),
    ),
)
