"""Requests of Throttr, for both roles: read by a server, written by a client.

A request's length follows from its first bytes.  A request that is invalid or too long is an event,
and nothing after it is read, because it is unknown where the next one would begin.
"""

from __future__ import annotations

from typing import Final, TypeAlias, final

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
    INSERT,
    LIST,
    NAMES,
    PUBLISH,
    PURGE,
    QUERY,
    SET,
    STAT,
    STATS,
    SUBSCRIBE,
    UNSUBSCRIBE,
    UPDATE,
    WHOAMI,
    most_of,
)

__all__ = ["Event", "Request", "RequestDecoder", "Violation", "encode_request", "inner_request"]

_KEYED: Final = frozenset({QUERY, PURGE, GET, STAT, SUBSCRIBE, UNSUBSCRIBE, CHANNEL})
_BARE: Final = frozenset({LIST, INFO, STATS, CONNECTIONS, CHANNELS, WHOAMI})
_MOST_KEY: Final = 255


@final
class Request:
    """One request.

    Attributes: ``code``, a word of ``words``; ``key``, its key, channel or connection; ``value``,
    what is set, published or carried by an EVENT; ``amount``, the quota of an INSERT or by how much
    an UPDATE changes the ``attribute`` in the way of ``change``; ``ttl`` in units of ``ttl_type``.
    Fields that a request does not have are 0 or empty.
    """

    __slots__ = ("amount", "attribute", "change", "code", "key", "ttl", "ttl_type", "value")

    def __init__(
        self,
        code: int,
        key: bytes = b"",
        value: bytes = b"",
        amount: int = 0,
        ttl_type: int = 0,
        ttl: int = 0,
        attribute: int = 0,
        change: int = 0,
    ) -> None:
        self.code = code
        self.key = key
        self.value = value
        self.amount = amount
        self.ttl_type = ttl_type
        self.ttl = ttl
        self.attribute = attribute
        self.change = change

    def _all(self) -> tuple[object, ...]:
        return (
            self.code,
            self.key,
            self.value,
            self.amount,
            self.ttl_type,
            self.ttl,
            self.attribute,
            self.change,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Request) and self._all() == other._all()

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return (
            f"Request({NAMES.get(self.code, self.code)}, {', '.join(map(repr, self._all()[1:]))})"
        )


@final
class Violation:
    """The following bytes cannot be decoded; ``text`` says why."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Violation({self.text!r})"


Event: TypeAlias = Request | Violation


@final
class RequestDecoder:
    """A server's side: decodes the bytes of a client into requests.

    :param dialect: ``7.1`` or ``7.3``.
    :param value_bytes: how many bytes quotas, times and sizes have.
    :param max_request_bytes: the most bytes of a request; a longer one is a violation.
    """

    def __init__(self, dialect: str, value_bytes: int, max_request_bytes: int) -> None:
        self._has_events = dialect == DIALECT_73
        self._value_bytes = value_bytes
        self._most = max_request_bytes
        self._parts: list[bytes] = []
        self._held_bytes = 0
        #: The bytes of the incomplete request, as far as its size is known.
        self._wanted = 0
        self._is_over = False
        # Why the last bytes are not a request; empty if they are.
        self._fault = ""

    @property
    def held_bytes(self) -> int:
        """Bytes of an incomplete request."""
        return self._held_bytes

    def receive(self, data: bytes) -> list[Event]:
        """Read bytes; after a violation nothing more is read."""
        events: list[Event] = []
        if self._is_over or not data:
            return events
        if self._held_bytes:
            self._parts.append(data)
            self._held_bytes += len(data)
            if self._held_bytes < self._wanted:
                return events
            data = b"".join(self._parts)
            self.forget()
        at = 0
        end = len(data)
        while at < end:
            size = self._size_of(data, at, end)
            if size > self._most:
                self._fault = f"a request of {size} bytes has more than {self._most}"
                size = -1
            if size < 0:
                self._is_over = True
                events.append(Violation(self._fault))
                return events
            if at + size > end:
                rest = data[at:]
                self._parts.append(rest)
                self._held_bytes = len(rest)
                self._wanted = size
                return events
            events.append(_read(data, at, self._value_bytes))
            at += size
        return events

    def forget(self) -> None:
        """Drop an incomplete request."""
        self._parts = []
        self._held_bytes = 0
        self._wanted = 0

    def _size_of(self, data: bytes, at: int, end: int) -> int:
        """The number of bytes of the request that begins here, as far as it is known; -1 if it is
        invalid."""
        code = data[at]
        width = self._value_bytes
        if code in _KEYED:
            return 2 + data[at + 1] if end - at > 1 else 2
        if code == INSERT:
            head = 3 + 2 * width
            return head + data[at + head - 1] if end - at >= head else head
        if code == UPDATE:
            head = 4 + width
            return head + data[at + head - 1] if end - at >= head else head
        if code == SET:
            head = 3 + 2 * width
            if end - at < head:
                return head
            sizes = at + 2 + width
            size = int.from_bytes(data[sizes + 1 : sizes + 1 + width], "little")
            return head + data[sizes] + size
        if code == PUBLISH or (code == EVENT and self._has_events):
            head = 2 + width
            if end - at < head:
                return head
            size = int.from_bytes(data[at + 2 : at + head], "little")
            return head + data[at + 1] + size
        if code in _BARE:
            return 1
        if code == CONNECTION:
            return 1 + ID_BYTES
        self._fault = f"there is no request 0x{code:02x}"
        return -1


def _read(data: bytes, at: int, width: int) -> Request:
    """Read a complete request."""
    code = data[at]
    if code in _KEYED:
        begin = at + 2
        end = begin + data[at + 1]
        return Request(code, data[begin:end])
    if code == INSERT:
        place = at + 1 + width
        amount = int.from_bytes(data[at + 1 : place], "little")
        begin = place + 2 + width
        ttl = int.from_bytes(data[place + 1 : begin - 1], "little")
        end = begin + data[begin - 1]
        return Request(code, data[begin:end], b"", amount, data[place], ttl)
    if code == UPDATE:
        begin = at + 4 + width
        amount = int.from_bytes(data[at + 3 : begin - 1], "little")
        end = begin + data[begin - 1]
        return Request(code, data[begin:end], b"", amount, 0, 0, data[at + 1], data[at + 2])
    if code == SET:
        sizes = at + 2 + width
        ttl = int.from_bytes(data[at + 2 : sizes], "little")
        begin = sizes + 1 + width
        middle = begin + data[sizes]
        end = middle + int.from_bytes(data[sizes + 1 : begin], "little")
        return Request(code, data[begin:middle], data[middle:end], 0, data[at + 1], ttl)
    if code == PUBLISH or code == EVENT:
        begin = at + 2 + width
        middle = begin + data[at + 1]
        end = middle + int.from_bytes(data[at + 2 : begin], "little")
        return Request(code, data[begin:middle], data[middle:end])
    if code == CONNECTION:
        return Request(code, data[at + 1 : at + 1 + ID_BYTES])
    return Request(code)


def inner_request(event: Request, value_bytes: int) -> Request | None:
    """The request that an EVENT carries; None if it does not carry exactly one complete request."""
    decoder = RequestDecoder("", value_bytes, len(event.value))
    events = decoder.receive(event.value)
    if len(events) != 1 or decoder.held_bytes:
        return None
    found = events[0]
    return found if isinstance(found, Request) else None


def encode_request(request: Request, value_bytes: int) -> bytes:
    """Encode a request, for a client.

    :raises ValueError: when a number or a length does not fit, or the code is unknown.
    """
    code = request.code
    key = request.key
    width = value_bytes
    if code not in NAMES:
        raise ValueError(f"there is no request 0x{code:02x}")
    if code in _BARE:
        return bytes((code,))
    if code == CONNECTION:
        if len(key) != ID_BYTES:
            raise ValueError(f"the id of a connection has {ID_BYTES} bytes, not {len(key)}")
        return bytes((code,)) + key
    if len(key) > _MOST_KEY:
        raise ValueError(f"a key or channel has at most {_MOST_KEY} bytes, not {len(key)}")
    if code in _KEYED:
        return bytes((code, len(key))) + key
    if code == INSERT:
        amount, ttl = _number(request.amount, width), _number(request.ttl, width)
        return b"%c%b%c%b%c%b" % (code, amount, request.ttl_type, ttl, len(key), key)
    if code == UPDATE:
        amount = _number(request.amount, width)
        return b"%c%c%c%b%c%b" % (code, request.attribute, request.change, amount, len(key), key)
    size = _number(len(request.value), width)
    if code == SET:
        ttl = _number(request.ttl, width)
        head = b"%c%c%b%c%b" % (code, request.ttl_type, ttl, len(key), size)
        return head + key + request.value
    return b"%c%c%b%b%b" % (code, len(key), size, key, request.value)


def _number(value: int, width: int) -> bytes:
    if not 0 <= value <= most_of(width):
        raise ValueError(f"{value} does not fit {width} bytes")
    return value.to_bytes(width, "little")
