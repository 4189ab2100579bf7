"""The words of OpenWire's scripts: commands of clients in loose encoding, and what is expected.

Commands are written here and not by the codec, with names in their texts.  The fields are those of
versions 10 to 12.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from tmqp.testing.conformance.patterns import Bind, Names, OneOf
from tmqp.testing.conformance.steps import Answer, End, Fence, Hear, Open, Say
from tmqp.testing.conformance.verdicts import Verdict
from tmqp_conformance.packs.units import Expect
from tmqp_conformance.packs.words import dial, hear, say

__all__ = [
    "BROWSER",
    "COMMIT",
    "CONSUMER",
    "INDIVIDUAL",
    "ROLLBACK",
    "SHUTDOWN",
    "SILENT_END",
    "STANDARD",
    "Order",
    "Sized",
    "ack",
    "begin",
    "connect",
    "connection",
    "consumer",
    "end_of",
    "error",
    "exception",
    "finish",
    "hello",
    "hello_of",
    "keep_alive",
    "local",
    "message",
    "numbered",
    "producer",
    "pull",
    "refused",
    "remove",
    "response",
    "send",
    "session",
    "xa",
]

_HEAD: Final = Struct(">BiB")
_I: Final = Struct(">i")
_Q: Final = Struct(">q")
_H: Final = Struct(">H")
VERSION: Final = 12
#: The consumer of most scripts; a browser has another number.
CONSUMER: Final = 1
BROWSER: Final = 2
STANDARD: Final = 2
INDIVIDUAL: Final = 4
COMMIT: Final = 2
ROLLBACK: Final = 4
_UNKNOWN: Final = -2
SILENT_END: Final = "the connection ends without a ConnectionError that says why"


class _Bound:
    """The id that a script has bound to a word, from this byte on."""

    def __init__(self, word: str, start: int = 0) -> None:
        self.word = word
        self.start = start


class _Object:
    """An object: its type and its fields."""

    def __init__(self, type: int, *fields: _Field) -> None:
        self.type = type
        self.fields = fields


#: Bytes as they are, a text with names in it, nothing, an object, or a bound id.
_Field = bytes | str | None | _Object | _Bound


def _encoded(field: _Field, names: Names) -> bytes:
    if field is None:
        return b"\0"
    if isinstance(field, bytes):
        return field
    if isinstance(field, str):
        data = names.text(field).encode()
        return b"\1" + _H.pack(len(data)) + data
    if isinstance(field, _Bound):
        return names.value(field.word).encode("latin-1")[field.start :]
    inner = b"".join(_encoded(each, names) for each in field.fields)
    return b"\1" + bytes((field.type,)) + inner


class Order:
    """A command of a client.

    :param asks: whether it wants a response; it names ``number``.
    """

    __slots__ = ("asks", "fields", "name", "number", "type")

    def __init__(
        self, name: str, type: int, *fields: _Field, number: int = 0, asks: bool = False
    ) -> None:
        self.name = name
        self.type = type
        self.fields = fields
        self.number = number
        self.asks = asks

    def encode(self, names: Names, next_id: str, token: str = "") -> bytes:
        """Its bytes, with their size."""
        body = b"".join(_encoded(each, names) for each in self.fields)
        data = _HEAD.pack(self.type, self.number, self.asks) + body
        return _I.pack(len(data)) + data

    def describe(self) -> str:
        """It in one line."""
        return f"{self.name} {self.number}{', asks for a response' if self.asks else ''}"


def numbered(order: Order, number: int) -> Order:
    """The command under this number, with the wish for a response."""
    return Order(order.name, order.type, *order.fields, number=number, asks=True)


class Sized:
    """Bytes behind their size, or behind another one."""

    __slots__ = ("announced", "data")

    def __init__(self, data: bytes, announced: int | None = None) -> None:
        self.data = data
        self.announced = announced

    def encode(self, names: Names, next_id: str, token: str = "") -> bytes:
        """Its bytes."""
        size = len(self.data) if self.announced is None else self.announced
        return _I.pack(size) + self.data

    def describe(self) -> str:
        """It in one line."""
        return f"{self.encode(Names(''), '')!r}"


# -- what is said ---------------------------------------------------------------------------------


def hello(version: int = VERSION, *, options: bool = False, magic: bytes = b"ActiveMQ") -> Sized:
    """A WireFormatInfo.

    :param options: whether tight encoding, a cache and frames without sizes are asked for; what is
        not named is off.
    """
    names = ("TightEncodingEnabled", "CacheEnabled", "SizePrefixDisabled", "StackTraceEnabled")
    asked = names if options else ()
    entries = [_H.pack(len(name)) + name.encode() + b"\1\1" for name in asked]
    silence = "MaxInactivityDuration"
    entries.append(_H.pack(len(silence)) + silence.encode() + b"\6" + _Q.pack(0))
    properties = _I.pack(len(entries)) + b"".join(entries)
    return Sized(b"\1" + magic + _I.pack(version) + b"\1" + _I.pack(len(properties)) + properties)


def _connection_id(line: str) -> _Object:
    return _Object(120, f"${line}")


def connection(line: str, client_id: str = "") -> Order:
    """A ConnectionInfo of this client, under the number 1."""
    fields = (_connection_id(line), client_id or f"${line}", None, None, None)
    return numbered(Order("ConnectionInfo", 3, *fields, bytes(5), None), 1)


def session(line: str) -> Order:
    """A SessionInfo."""
    return Order("SessionInfo", 4, _session_id(line))


def _session_id(line: str) -> _Object:
    return _Object(121, f"${line}", _Q.pack(1))


def _consumer_id(line: str, consumer: int) -> _Object:
    return _Object(122, f"${line}", _Q.pack(1), _Q.pack(consumer))


def producer(line: str) -> Order:
    """A ProducerInfo for messages to all destinations: some servers take none without it."""
    return Order("ProducerInfo", 6, _producer_id(line), None, None, b"\0" + _I.pack(0))


def _producer_id(line: str) -> _Object:
    return _Object(123, f"${line}", _Q.pack(1), _Q.pack(1))


def _destination(to: str) -> _Object | None:
    """That of ``queue:NAME`` or ``topic:NAME``; none for an empty text."""
    kind, _, name = to.partition(":")
    if not name:
        return None
    return _Object(101 if kind == "topic" else 100, name)


def consumer(
    line: str,
    to: str = "queue:$q",
    *,
    prefetch: int = 100,
    browser: bool = False,
    id: int = CONSUMER,
) -> Order:
    """A ConsumerInfo, under the number 2."""
    return numbered(
        Order(
            "ConsumerInfo",
            5,
            _consumer_id(line, id),
            bytes((browser,)),
            _destination(to),
            _I.pack(prefetch) + _I.pack(0) + b"\1",
            None,  # selector
            None,  # client id
            None,  # durable subscription
            bytes(4),  # noLocal, exclusive, retroactive, priority
            bytes(6),
        ),
        2,
    )


def local(line: str, number: int = 1) -> _Object:
    """The id of a transaction of this client."""
    return _Object(111, _Q.pack(number), _connection_id(line))


def xa() -> _Object:
    """The id of a transaction of several resources."""
    return _Object(112, _I.pack(1) + b"\1\0\0\0\1x" + b"\1\0\0\0\1y")


def begin(line: str, transaction: _Object | None = None) -> Order:
    """A transaction begins."""
    return finish(line, 0, transaction)


def finish(line: str, operation: int, transaction: _Object | None = None) -> Order:
    """What happens to a transaction."""
    of = transaction or local(line)
    return Order("TransactionInfo", 7, _connection_id(line), of, bytes((operation,)))


def send(
    body: bytes,
    number: int,
    to: str = "queue:$q",
    transaction: _Object | None = None,
    *,
    line: str = "a",
) -> Order:
    """A persistent BytesMessage under this number, which is that of its id, too."""
    return Order(
        "message",
        24,
        _producer_id(line),
        _destination(to),
        transaction,
        None,
        _Object(110, None, _producer_id(line), _Q.pack(number), _Q.pack(0)),
        None,
        None,
        _I.pack(0),  # group
        None,
        b"\1" + _Q.pack(0) + b"\4",  # persistent, expiration, priority
        None,
        _Q.pack(0),
        None,
        b"\1" + _I.pack(len(body)) + body,
        None,  # properties
        None,
        None,
        b"\0" + _I.pack(0),  # compressed, redelivery counter
        None,
        _Q.pack(0),
        None,
        bytes(2),
        None,
        bytes(16) + b"\0",
        number=number,
    )


def ack(
    line: str,
    kind: int,
    first: str,
    last: str = "",
    *,
    count: int = 1,
    transaction: _Object | None = None,
) -> Order:
    """A MessageAck of the messages that are bound to these words."""
    ids = [_Object(110, None, _producer_id(line), _Bound(word)) for word in (first, last or first)]
    return Order(
        "MessageAck",
        22,
        _destination("queue:$q"),
        transaction,
        _consumer_id(line, CONSUMER),
        bytes((kind,)),
        *ids,
        _I.pack(count),
        None,
    )


def remove(line: str, last: str = "") -> Order:
    """A RemoveInfo of the consumer.

    :param last: the word of the last message that the program has had; that is not known without.
    """
    field = _Bound(last, 8) if last else _Q.pack(_UNKNOWN)
    return Order("RemoveInfo", 12, _consumer_id(line, CONSUMER), field)


def pull(line: str) -> Order:
    """A MessagePull of however long it takes."""
    fields = (_consumer_id(line, CONSUMER), _destination("queue:$q"), _Q.pack(0), None, None)
    return Order("MessagePull", 20, *fields)


def keep_alive() -> Order:
    """A KeepAliveInfo that wants an answer."""
    return numbered(Order("KeepAliveInfo", 10), 9)


SHUTDOWN: Final = Order("ShutdownInfo", 11)


# -- what is expected -----------------------------------------------------------------------------


def hello_of(version: object = None, **fields: object) -> Expect:
    """The WireFormatInfo of a server; of a version whose commands these scripts can read."""
    return Expect("hello", version=OneOf(10, 11, 12) if version is None else version, **fields)


def response(to: int) -> Expect:
    """Response to this command."""
    return Expect("response", to=to)


def exception(to: int, **fields: object) -> Expect:
    """ExceptionResponse to this command."""
    return Expect("exception", to=to, **fields)


def error(**fields: object) -> Expect:
    """ConnectionError."""
    return Expect("error", **fields)


def message(body: bytes, called: str = "", **fields: object) -> Expect:
    """MessageDispatch with this body.

    :param called: the word that its id is bound to.
    """
    if called:
        fields["id"] = Bind(called)
    return Expect("message", body=body, **fields)


def end_of(consumer: int) -> Expect:
    """MessageDispatch without a message."""
    return Expect("end", consumer=consumer)


def connect(line: str) -> list[Open | Say | Hear]:
    """A client that is let in."""
    return [
        dial(line),
        say(line, hello()),
        hear(line, hello_of()),
        say(line, connection(line), session(line), producer(line)),
        hear(line, response(1)),
    ]


def refused(line: str, *before: Expect) -> Hear:
    """Expect ConnectionError and the end; the end alone is not as it should be."""
    return Hear(
        line,
        Answer(*before, error(), end=End.CLOSED),
        Answer(
            *before,
            end=End.CLOSED,
            verdict=Verdict.NON_STRICT,
            message=SILENT_END,
        ),
        fence=Fence.END,
    )
