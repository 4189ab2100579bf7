"""A client's side of Throttr: sends requests, receives replies and pushes.

Replies do not name their request: the connection remembers its requests, in order.
"""

from __future__ import annotations

from collections import deque
from typing import Final, TypeAlias, final

from tmqp_wires.throttr.requests import Request, encode_request, inner_request
from tmqp_wires.throttr.words import (
    CHANNEL,
    CHANNELS,
    CONNECTION,
    CONNECTIONS,
    DIALECT_73,
    EVENT,
    GET,
    ID_BYTES,
    INFO,
    INFO_FIELDS,
    LIST,
    ORDER_IN_CONNECTION,
    PUSH_71,
    QUERY,
    STAT,
    STATS,
    VERSION_BYTES,
    WHOAMI,
)

__all__ = ["ClientConnection", "Happening", "Item", "Push", "Reply"]

_IP_BYTES: Final = 16
_FIGURES: Final = (
    "connected_at",
    "read_bytes",
    "write_bytes",
    "published_bytes",
    "received_bytes",
    "allocated_bytes",
    "consumed_bytes",
)


@final
class Item:
    """One item of a list.

    Attributes: ``name``, the key or channel, or the id of a connection or subscriber; ``numbers``,
    by name, and counts of requests by code; ``peer``, the address of a connection.
    """

    __slots__ = ("name", "numbers", "peer")

    def __init__(self, name: bytes, numbers: dict[str | int, int], peer: str = "") -> None:
        self.name = name
        self.numbers = numbers
        self.peer = peer

    def __repr__(self) -> str:
        return f"Item({self.name!r}, {self.numbers!r})"


@final
class Reply:
    """The answer to one request.

    Attributes: ``code``, that of the request; ``ok``, its status; ``amount``, ``ttl_type``, ``ttl``
    and ``value``, the result of QUERY or GET; ``numbers`` of STAT and INFO, by name; ``name``, the
    id of a WHOAMI or the version of an INFO; ``items`` of lists; ``fragments``, the number of
    fragments of a list.
    """

    __slots__ = (
        "amount",
        "code",
        "fragments",
        "items",
        "name",
        "numbers",
        "ok",
        "ttl",
        "ttl_type",
        "value",
    )

    def __init__(self, code: int, ok: bool) -> None:
        self.code = code
        self.ok = ok
        self.amount = 0
        self.ttl_type = 0
        self.ttl = 0
        self.value = b""
        self.numbers: dict[str, int] = {}
        self.name = b""
        self.items: list[Item] = []
        self.fragments = 0

    def __repr__(self) -> str:
        return f"Reply(0x{self.code:02x}, {self.ok})"


@final
class Push:
    """A message of a channel; in the dialect 7.1, the channel is empty."""

    __slots__ = ("channel", "payload")

    def __init__(self, channel: bytes, payload: bytes) -> None:
        self.channel = channel
        self.payload = payload

    def __repr__(self) -> str:
        return f"Push({self.channel!r}, {self.payload!r})"


Happening: TypeAlias = Reply | Push


class _ShortError(Exception):
    """More bytes are needed."""


@final
class _Cursor:
    """Takes bytes from the front."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        """The next *size* bytes."""
        end = self.at + size
        if end > len(self.data):
            raise _ShortError
        found = self.data[self.at : end]
        self.at = end
        return found

    def number(self, width: int = 8) -> int:
        """The next number."""
        return int.from_bytes(self.take(width), "little")


@final
class ClientConnection:
    """One connection.

    :param dialect: ``7.1`` or ``7.3``.
    :param value_bytes: how many bytes quotas, times and sizes have.
    """

    def __init__(self, dialect: str, value_bytes: int) -> None:
        self._dialect = dialect
        self._width = value_bytes
        self._asked: deque[int] = deque()
        self._rest = b""

    @property
    def outstanding(self) -> int:
        """The number of unanswered requests."""
        return len(self._asked)

    @property
    def held_bytes(self) -> int:
        """Bytes of an incomplete reply or push."""
        return len(self._rest)

    def send(self, request: Request) -> bytes:
        """Encode a request, and expect its reply.

        :raises ValueError: as for :func:`encode_request`.
        """
        data = encode_request(request, self._width)
        code = request.code
        if code == EVENT:
            # Its status, then the reply to what it carries.
            self._asked.append(EVENT)
            inner = inner_request(request, self._width)
            code = EVENT if inner is None else inner.code
        self._asked.append(code)
        return data

    def receive(self, data: bytes) -> list[Happening]:
        """The replies and pushes in the bytes.

        :raises ValueError: for bytes that answer no request.
        """
        cursor = _Cursor(self._rest + data)
        found: list[Happening] = []
        while cursor.at < len(cursor.data):
            begin = cursor.at
            try:
                found.append(self._next(cursor))
            except _ShortError:
                cursor.at = begin
                break
        self._rest = cursor.data[cursor.at :]
        return found

    def _next(self, cursor: _Cursor) -> Happening:
        first = cursor.number(1)
        if first == EVENT and self._dialect == DIALECT_73:
            length, size = cursor.number(1), cursor.number(self._width)
            return Push(cursor.take(length), cursor.take(size))
        if first == PUSH_71 and self._dialect != DIALECT_73:
            return Push(b"", cursor.take(cursor.number(self._width)))
        if first > 1 or not self._asked:
            raise ValueError(f"no request is answered with 0x{first:02x}")
        reply = Reply(self._asked[0], first == 1)
        if reply.ok:
            self._read(reply, cursor)
        self._asked.popleft()
        return reply

    def _read(self, reply: Reply, cursor: _Cursor) -> None:
        """Read the fields after a status."""
        code = reply.code
        if code == QUERY:
            reply.amount = cursor.number(self._width)
            reply.ttl_type = cursor.number(1)
            reply.ttl = cursor.number(self._width)
        elif code == GET:
            reply.ttl_type = cursor.number(1)
            reply.ttl = cursor.number(self._width)
            reply.value = cursor.take(cursor.number(self._width))
        elif code == STAT:
            reply.numbers = _stat(cursor)
        elif code == WHOAMI:
            reply.name = cursor.take(ID_BYTES)
        elif code == INFO:
            reply.numbers = {name: cursor.number() for name in INFO_FIELDS}
            reply.name = cursor.take(VERSION_BYTES).rstrip(b"\0")
        elif code == CONNECTION:
            reply.items = [self._connection(cursor)]
        elif code == CHANNEL:
            reply.items = [_subscriber(cursor) for _ in range(cursor.number())]
        elif code in (LIST, STATS, CHANNELS, CONNECTIONS):
            reply.fragments = cursor.number()
            for _ in range(reply.fragments):
                cursor.number()
                reply.items += self._fragment(code, cursor, cursor.number())

    def _fragment(self, code: int, cursor: _Cursor, count: int) -> list[Item]:
        if code == CONNECTIONS:
            return [self._connection(cursor) for _ in range(count)]
        lengths: list[int] = []
        found: list[dict[str | int, int]] = []
        for _ in range(count):
            lengths.append(cursor.number(1))
            if code == LIST:
                found.append(
                    {
                        "kind": cursor.number(1),
                        "ttl_type": cursor.number(1),
                        "time_point": cursor.number(),
                        "bytes": cursor.number(self._width),
                    }
                )
            elif code == STATS:
                found.append(dict(_stat(cursor).items()))
            else:
                names = ("read_bytes", "write_bytes", "subscribers")
                found.append({name: cursor.number() for name in names})
        return [
            Item(cursor.take(length), numbers)
            for length, numbers in zip(lengths, found, strict=True)
        ]

    def _connection(self, cursor: _Cursor) -> Item:
        identity = cursor.take(ID_BYTES)
        numbers: dict[str | int, int] = {}
        if self._dialect == DIALECT_73:
            numbers["type"] = cursor.number(1)
            numbers["kind"] = cursor.number(1)
        numbers["ip_version"] = cursor.number(1)
        peer = cursor.take(_IP_BYTES).rstrip(b"\0").decode("ascii", "replace")
        numbers["port"] = cursor.number(2)
        for name in (*_FIGURES, *ORDER_IN_CONNECTION):
            numbers[name] = cursor.number()
        return Item(identity, numbers, peer)


def _stat(cursor: _Cursor) -> dict[str, int]:
    names = ("reads_per_minute", "writes_per_minute", "reads", "writes")
    return {name: cursor.number() for name in names}


def _subscriber(cursor: _Cursor) -> Item:
    identity = cursor.take(ID_BYTES)
    names = ("subscribed_at", "read_bytes", "write_bytes")
    return Item(identity, {name: cursor.number() for name in names})
