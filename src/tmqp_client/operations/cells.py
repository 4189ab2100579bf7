"""The client's methods about cells: counters and values with a time to live (an extension)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import quote_from_bytes

from tmqp import models
from tmqp.constants import (
    RESULT_DUPLICATE,
    RESULT_NOT_FOUND,
    RESULT_UNACCEPTABLE,
)
from tmqp.errors import LocalProtocolError
from tmqp.extensions import (
    CELL_COUNTER,
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
from tmqp.models import parse_list
from tmqp.names import fault_of_name
from tmqp_client._core.arguments import Payload, payload_bytes
from tmqp_client._core.requests import Request
from tmqp_client._port import Operations
from tmqp_client.errors import OperationFailed
from tmqp_client.operations.reading import number_text

if TYPE_CHECKING:
    from tmqp.models import CellInformation

__all__ = ["CellContents", "Cells", "ListedCells"]

_MOST: Final = 2**64 - 1
_MOST_SECONDS: Final = 2**53
_Pairs = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class CellContents:
    """The contents of a cell: ``count`` for a counter, ``value`` for a value; the other one is
    None.

    ``ttl_s`` is its remaining time to live in seconds, from the moment of the answer.
    """

    count: int | None
    value: bytes | None
    ttl_s: float


class Cells(Operations):
    """Counters and values with a time to live; ``client.cells``.

    A *space*, a name like that of a channel, and a *key*, text or bytes, identify a cell.  It is
    removed, for all clients, as soon as its time is over, and exists only in the server's memory.
    A limit of five calls a minute for each user, with one request to the server::

        async def may_call(client, user):
            left = await client.cells.subtract("calls", user, initial=5, ttl_s=60)
            return left is not None

    Every method raises ``OperationFailed`` when the server refuses: 401 without the right
    ``cells-read`` or ``cells-write``, 482 beyond a limit, 503 without memory.
    """

    # -- making ---------------------------------------------------------------------------------

    async def make_counter(
        self,
        space: str,
        key: str | bytes,
        count: int = 0,
        *,
        ttl_s: float,
        timeout_s: float | None = None,
    ) -> bool:
        """Create a counter with this time to live; return False, without a change, if the key has a
        cell.

        :raises LocalProtocolError: for a count that is not from 0 to 2**64-1, or a negative time.
        """
        headers = [*_about(key), (HEADER_AMOUNT, _count_text(count)), _ttl(ttl_s)]
        request = _request(OP_MAKE_COUNTER, "make counter", space, headers)
        return await self._ask(request, timeout_s, RESULT_DUPLICATE) is not None

    async def put(
        self,
        space: str,
        key: str | bytes,
        value: Payload,
        *,
        ttl_s: float,
        timeout_s: float | None = None,
    ) -> None:
        """Set the value of a key, for this time; it replaces an existing value.

        Raises ``OperationFailed`` with 406 if it has a counter.
        """
        headers = [*_about(key), _ttl(ttl_s)]
        request = _request(OP_PUT_VALUE, "put value", space, headers, payload_bytes(value))
        await self._ask(request, timeout_s)

    # -- reading --------------------------------------------------------------------------------

    async def read(
        self, space: str, key: str | bytes, *, timeout_s: float | None = None
    ) -> CellContents | None:
        """Return the contents of a cell; None if it does not exist."""
        request = _request(OP_READ_CELL, "read cell", space, _about(key))
        answer = await self._ask(request, timeout_s, RESULT_NOT_FOUND)
        return None if answer is None else _contents(answer)

    async def describe(
        self, space: str, key: str | bytes, *, timeout_s: float | None = None
    ) -> CellInformation | None:
        """Return a cell with its numbers of reads and writes; None if it does not exist."""
        request = _request(OP_DESCRIBE_CELL, "describe cell", space, _about(key))
        answer = await self._ask(request, timeout_s, RESULT_NOT_FOUND)
        return None if answer is None else models.CellInformation.from_json(answer.payload)

    def listed(self, space: str, *, limit: int | None = None) -> ListedCells:
        """Return an async iterator over the cells of a space, in the order of their creation.

        ::

            async for cell in client.cells.listed("calls"):
                print(cell.key, cell.count)

        The client fetches them in portions of *limit*, or as many as the server chooses; cells that
        are created or removed meanwhile may be missing.
        """
        return ListedCells(self, space, limit)

    # -- changing -------------------------------------------------------------------------------

    async def subtract(
        self,
        space: str,
        key: str | bytes,
        amount: int = 1,
        *,
        initial: int | None = None,
        ttl_s: float | None = None,
        timeout_s: float | None = None,
    ) -> int | None:
        """Subtract from a counter; return the rest, or None, without a change, if the counter is
        too small.

        Raises ``OperationFailed`` with 404 if there is no counter.

        :param initial: if there is no counter, first create one with this count and a time to live
            of *ttl_s* seconds.
        """
        headers = _change(key, CHANGE_SUBTRACT, amount, initial, ttl_s)
        request = _request(OP_CHANGE_CELL, "subtract from cell", space, headers)
        answer = await self._ask(request, timeout_s, RESULT_UNACCEPTABLE)
        return None if answer is None else int(answer.payload)

    async def add(
        self,
        space: str,
        key: str | bytes,
        amount: int = 1,
        *,
        initial: int | None = None,
        ttl_s: float | None = None,
        timeout_s: float | None = None,
    ) -> int:
        """Add to a counter; return the sum.

        Raises ``OperationFailed``: 404 if there is no counter, 406 if the sum is more than 2**64-1.

        :param initial: as in :meth:`subtract`.
        """
        headers = _change(key, CHANGE_ADD, amount, initial, ttl_s)
        answer = await self._ask(_request(OP_CHANGE_CELL, "add to cell", space, headers), timeout_s)
        assert answer is not None, "no code is excused"
        return int(answer.payload)

    async def set_count(
        self, space: str, key: str | bytes, count: int, *, timeout_s: float | None = None
    ) -> None:
        """Set an existing counter; raise ``OperationFailed`` with 404 if it does not exist."""
        headers = _change(key, CHANGE_SET, count, None, None)
        await self._ask(_request(OP_CHANGE_CELL, "set cell", space, headers), timeout_s)

    async def set_ttl(
        self, space: str, key: str | bytes, ttl_s: float, *, timeout_s: float | None = None
    ) -> None:
        """Set the time to live of a cell, from now on.

        Raises ``OperationFailed`` with 404 if it does not exist; so do the next two methods.
        """
        await self._change_ttl(space, key, CHANGE_SET_TIMEOUT, ttl_s, timeout_s)

    async def extend(
        self, space: str, key: str | bytes, seconds: float, *, timeout_s: float | None = None
    ) -> None:
        """Extend the time to live of a cell."""
        await self._change_ttl(space, key, CHANGE_ADD_TIMEOUT, seconds, timeout_s)

    async def shorten(
        self, space: str, key: str | bytes, seconds: float, *, timeout_s: float | None = None
    ) -> None:
        """Shorten the time to live of a cell."""
        await self._change_ttl(space, key, CHANGE_SUBTRACT_TIMEOUT, seconds, timeout_s)

    async def drop(self, space: str, key: str | bytes, *, timeout_s: float | None = None) -> bool:
        """Remove a cell; return False if it does not exist."""
        request = _request(OP_DROP_CELL, "drop cell", space, _about(key))
        return await self._ask(request, timeout_s, RESULT_NOT_FOUND) is not None

    # -- asking ---------------------------------------------------------------------------------

    async def _change_ttl(
        self, space: str, key: str | bytes, change: str, seconds: float, timeout_s: float | None
    ) -> None:
        headers = [*_about(key), (HEADER_CHANGE, change), _ttl(seconds)]
        await self._ask(_request(OP_CHANGE_CELL, "change cell", space, headers), timeout_s)

    async def _portion(self, space: str, first: int, limit: int | None) -> Frame:
        headers = [(HEADER_FROM, number_text(HEADER_FROM, first))]
        if limit is not None:
            headers.append((HEADER_LIMIT, number_text(HEADER_LIMIT, limit)))
        answer = await self._ask(_request(OP_LIST_CELLS, "list cells", space, headers), None)
        assert answer is not None, "no code is excused"
        return answer

    async def _ask(
        self, request: Request, timeout_s: float | None, excused: int = 0
    ) -> Frame | None:
        """Return the answer; None if its code is ``excused``."""
        try:
            answer = (await self._session.ask(request, timeout_s)).answer
        except OperationFailed as error:
            if error.code == excused:
                return None
            raise
        assert answer is not None, "an operation is settled by an answer"
        return answer


class ListedCells:
    """The cells of a space, as an async iterator; see :meth:`Cells.listed`."""

    # No generator: a loop that is left early would have to close it.

    def __init__(self, cells: Cells, space: str, limit: int | None) -> None:
        self._cells = cells
        self._space = space
        self._limit = limit
        self._next = 0
        self._is_over = False
        self._portion: deque[CellInformation] = deque()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> CellInformation:
        while not self._portion:
            if self._is_over:
                raise StopAsyncIteration
            answer = await self._cells._portion(self._space, self._next, self._limit)
            self._portion.extend(parse_list(models.CellInformation, answer.payload or b"[]"))
            following = answer.header(HEADER_FROM)
            self._is_over = following is None
            self._next = int(following or 0)
        return self._portion.popleft()


def _request(number: int, word: str, space: str, headers: _Pairs, payload: bytes = b"") -> Request:
    fault = fault_of_name(space) if space else "nothing"
    if fault:
        raise LocalProtocolError(f"the name of a space holds {fault}, got {space!r}")
    return Request(number, word, space, tuple(headers), payload)


def _about(key: str | bytes) -> _Pairs:
    """The header that names a cell."""
    data = key.encode("utf-8", "surrogateescape") if isinstance(key, str) else key
    return [(HEADER_CELL_KEY, quote_from_bytes(data, safe=""))]


def _count_text(count: int) -> str:
    if not 0 <= count <= _MOST:
        raise LocalProtocolError(f"a count must be 0 to 2**64-1, got {count!r}")
    return str(count)


def _ttl(seconds: float) -> tuple[str, str]:
    """The header of a time to live; a time that is not 0 is at least a millisecond."""
    if not 0 <= seconds <= _MOST_SECONDS:
        raise LocalProtocolError(f"a time to live must be 0 seconds or more, got {seconds!r}")
    return HEADER_TIMEOUT, str(max(1, round(seconds * 1000)) if seconds else 0)


def _change(
    key: str | bytes, change: str, amount: int, initial: int | None, ttl_s: float | None
) -> _Pairs:
    headers = [*_about(key), (HEADER_CHANGE, change), (HEADER_AMOUNT, _count_text(amount))]
    if (initial is None) != (ttl_s is None):
        raise LocalProtocolError("give both initial and ttl_s, or neither")
    if initial is not None and ttl_s is not None:
        headers += [(HEADER_INITIAL, _count_text(initial)), _ttl(ttl_s)]
    return headers


def _contents(answer: Frame) -> CellContents:
    is_counter = answer.header(HEADER_CELL_KIND) == CELL_COUNTER
    return CellContents(
        int(answer.payload) if is_counter else None,
        None if is_counter else answer.payload,
        int(answer.header(HEADER_TIMEOUT) or 0) / 1000,
    )
