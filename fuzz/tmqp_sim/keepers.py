"""Clients that keep counters and values with a time to live, in one space, each under its own keys.

A keeper asks for one thing at a time and knows what it must be answered (``cell_books.py``).  What
it asked for on a connection that is lost, or that answers too late, may be carried out later, so on
the next connection it takes other keys; the old ones end by themselves.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from tmqp.errors import LocalProtocolError
from tmqp.extensions import (
    HEADER_AMOUNT,
    HEADER_CELL_KEY,
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
from tmqp.models import CellInformation, parse_list
from tmqp_client._core.pending import Pending
from tmqp_client._core.requests import Request
from tmqp_client.config import ClientLimits
from tmqp_client.errors import ClientError, OperationFailed
from tmqp_sim.cell_books import COUNTS, TIMES, CellBooks, CellRequest
from tmqp_sim.clients import SimClient
from tmqp_sim.stage import Stage

__all__ = ["CellKeeper"]

_SPACE: Final = "Cells of keepers"
#: Ends of keys: a text, one that has a percent sign, one beyond ASCII, and bytes that are no text.
_ENDS: Final = (b"plain", b"50%20", "gr\u00f6\u00dfer".encode(), b"\xff\x00\xfe")
_EVERY_S: Final = 0.1
#: Times to live; the longest is longer than what a server that is suspended takes.
_TTLS_S: Final = (0.0, 0.2, 1.0, 40.0, 40.0, 40.0)
#: So many cells are listed at a time.
_LIMITS: Final = (1, 2, 1_000)
_LARGE: Final = 2**64 - 2
_OPERATIONS: Final = (
    OP_MAKE_COUNTER,
    OP_PUT_VALUE,
    OP_READ_CELL,
    OP_CHANGE_CELL,
    OP_CHANGE_CELL,
    OP_CHANGE_CELL,
    OP_DESCRIBE_CELL,
    OP_DROP_CELL,
    OP_LIST_CELLS,
)


class CellKeeper(SimClient):
    """One client.

    :param count: how many answers it wants.
    """

    def __init__(self, simulation: Stage, name: str, limits: ClientLimits, count: int) -> None:
        super().__init__(simulation, name, limits)
        self._wanted = count
        self._books = CellBooks(name)
        self._prefix = b""
        #: What is asked and not answered: its id, and when that was; None is a list.
        self._asked = ""
        self._request: CellRequest | None = None
        self._asked_at = 0.0
        #: Of the list that is asked for: what has come of it, and since when.
        self._listed: list[CellInformation] = []
        self._listed_at = 0.0
        #: Its cells were listed when nothing disturbed it any more.
        self._looked = False

    @property
    def owes(self) -> int:
        """Answers that have not come, the last list among them."""
        return max(self._wanted, 0) + (not self._looked)

    def begin(self) -> None:
        """Begin without cells."""
        self._books = CellBooks(self.name)
        self._prefix = f"{self.name}/{self.connection}/".encode()
        self._listed = []
        self._ask_later()

    def lost(self) -> None:
        """Nobody knows what happened to what was asked."""
        self._asked = ""

    def _ask_later(self) -> None:
        self.later(_EVERY_S * (0.2 + self.random.random()), self._ask_next)

    def _ask_next(self) -> None:
        if self._looked:
            return
        operation = self.random.choice(_OPERATIONS)
        doubtful = sorted(self._books.doubtful)
        if doubtful:
            self._ask(CellRequest(OP_DROP_CELL, doubtful[0]))
        elif operation == OP_LIST_CELLS or (self._wanted <= 0 and self.simulation.healed):
            self._listed = []
            self._listed_at = self.world.now
            self._ask_list(0)
        else:
            self._ask(self._draw(operation))

    # -- requests -------------------------------------------------------------------------------

    def _draw(self, operation: int) -> CellRequest:
        draw = self.random
        request = CellRequest(operation, self._prefix + draw.choice(_ENDS))
        request.ttl_s = draw.choice(_TTLS_S)
        if operation == OP_CHANGE_CELL:
            request.change = draw.choice((*COUNTS, *COUNTS, *TIMES))
            if request.change in COUNTS and draw.random() < 0.5:
                request.initial = draw.randrange(20)
        if operation in (OP_MAKE_COUNTER, OP_CHANGE_CELL):
            request.amount = _LARGE if draw.random() < 0.05 else draw.randrange(20)
        elif operation == OP_PUT_VALUE:
            request.value = draw.randbytes(draw.randrange(40))
        return request

    def _ask(self, request: CellRequest) -> None:
        headers = [(HEADER_CELL_KEY, quote_from_bytes(request.key, safe=""))]
        timeout = (HEADER_TIMEOUT, str(round(request.ttl_s * 1_000)))
        operation = request.operation
        if operation in (OP_MAKE_COUNTER, OP_PUT_VALUE) or request.change in TIMES:
            headers.append(timeout)
        if request.change:
            headers.append((HEADER_CHANGE, request.change))
        if operation == OP_MAKE_COUNTER or request.change in COUNTS:
            headers.append((HEADER_AMOUNT, str(request.amount)))
        if request.initial >= 0:
            headers += [(HEADER_INITIAL, str(request.initial)), timeout]
        self._request = request
        self._send(Request(operation, "ask about a cell", _SPACE, tuple(headers), request.value))

    def _ask_list(self, first: int) -> None:
        limit = self.random.choice(_LIMITS)
        headers = ((HEADER_FROM, str(first)), (HEADER_LIMIT, str(limit)))
        self._request = None
        self._send(Request(OP_LIST_CELLS, "list cells", _SPACE, headers))

    def _send(self, request: Request) -> None:
        try:
            pending = self.machine.request(request, self.world.now)
        except (ClientError, LocalProtocolError):
            self._ask_later()
            return
        self._asked = pending.message_id
        self._asked_at = self.world.now
        self.flush()

    # -- answers --------------------------------------------------------------------------------

    def settled(self, pending: Pending) -> None:
        """An answer, or none: then try on another connection."""
        if pending.message_id != self._asked:
            return
        self._asked = ""
        error = pending.error
        if self.machine.lost is not None:
            return
        if error is not None and not isinstance(error, OperationFailed):
            self.world.mark("keeper of cells gave its connection up")
            self.world.after(0.0, self.leave, False)
            return
        if self._request is None:
            self._take_portion(pending)
            return
        code = 0 if error is None else error.code
        answer = pending.answer if error is None else None
        self._books.answered(self._request, code, answer, self._asked_at, self.world.now)
        self._wanted -= 1
        self.world.mark("answer about a cell is right")
        self._ask_later()

    def _take_portion(self, pending: Pending) -> None:
        """Some cells of the space have come; ask for the next ones, or look at them."""
        answer = pending.answer
        assert answer is not None, "nobody refuses a list"
        found = parse_list(CellInformation, answer.payload or b"[]")
        self._listed += [
            each for each in found if unquote_to_bytes(each.key).startswith(self._prefix)
        ]
        following = answer.header(HEADER_FROM)
        if following is not None:
            self._ask_list(int(following))
            return
        self._books.listed(self._listed, self._listed_at, self.world.now)
        self._wanted -= 1
        self.world.mark("list of cells is right")
        self._looked = self._wanted <= 0 and self.simulation.healed
        self._ask_later()
