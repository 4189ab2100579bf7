"""The ear of OpenWire: reads what servers send, in loose encoding of versions 10 to 12.

It shares no code with the codec, so that it detects faults of the codec.
"""

from __future__ import annotations

from struct import Struct, error
from typing import Any, Final

from tmqp_conformance.packs.ears import Buffered
from tmqp_conformance.packs.units import Unit

__all__ = ["OpenwireEar"]

_MOST_BYTES: Final = 33_554_432
_DESTINATIONS: Final = {100: "queue", 101: "topic", 102: "temp-queue", 103: "temp-topic"}
_MAGIC: Final = b"ActiveMQ"
#: The form of a value in a primitive map by its tag: numbers have one form each.
_NUMBERS: Final = {2: ">b", 3: ">H", 4: ">h", 5: ">i", 6: ">q", 7: ">d", 8: ">f"}
_HELLO: Final = 1
#: Commands that a server may send at any time and that no case is about: BrokerInfo,
#: ConsumerControl, ConnectionControl and ProducerAck.
_ASIDE: Final = frozenset((2, 17, 18, 19))


class _Fields:
    """Reads the fields of a command.

    :raises ValueError: (every method) if a field is missing or invalid.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        """So many bytes."""
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise ValueError("a command that ends too early")
        found, self.at = self.data[self.at : end], end
        return found

    def number(self, form: str = ">i") -> Any:
        """A number of this form."""
        struct = Struct(form)
        return struct.unpack(self.take(struct.size))[0]

    def flag(self) -> bool:
        """A byte that is 0, or else true, as Java reads it."""
        return self.take(1)[0] != 0

    def text(self) -> str:
        """Read a string in Java's modified UTF-8: NUL has two bytes, surrogates are characters."""
        data = self.take(self.number(">H")).replace(b"\xc0\x80", b"\0")
        return data.decode("utf-8", "surrogatepass")

    def string(self) -> str | None:
        """A text, or nothing."""
        return self.text() if self.flag() else None

    def blob(self) -> bytes:
        """Bytes; none where there is nothing."""
        return self.take(self.number()) if self.flag() else b""

    def kind(self) -> int:
        """Read the type of an object; 0 for null."""
        return self.take(1)[0] if self.flag() else 0

    def array(self) -> None:
        """An array of ids, which say nothing here."""
        if self.flag():
            for _ in range(self.number(">H")):
                self.id()

    def structure(self) -> None:
        """A DestinationInfo, which a message about destinations has."""
        kind = self.kind()
        if kind not in (0, 8):
            raise ValueError(f"type {kind} inside a message")
        if kind:
            self.take(5)
            self.id()
            self.destination()
            self.take(9)
            self.array()

    def destination(self) -> str | None:
        """``queue:NAME`` and so on."""
        kind = self.kind()
        if not kind:
            return None
        if kind not in _DESTINATIONS:
            raise ValueError(f"type {kind} where a destination is due")
        return f"{_DESTINATIONS[kind]}:{self.string()}"

    def id(self) -> int:
        """The id of a connection, session, consumer, producer or transaction: its last number."""
        kind = self.kind()
        if kind in (120, 124):
            self.string()
        elif kind == 121:
            self.string()
            return int(self.number(">q"))
        elif kind in (122, 123):
            self.string()
            first, second = self.number(">q"), self.number(">q")
            return int(second if kind == 122 else first)
        elif kind == 111:
            number = int(self.number(">q"))
            self.id()
            return number
        elif kind == 112:
            self.number()
            self.blob()
            self.blob()
        elif kind:
            raise ValueError(f"type {kind} where an id is due")
        return 0

    def message_id(self) -> str:
        """The two numbers of a message id, of 8 bytes each, as Latin-1."""
        if self.kind() != 110:
            raise ValueError("no message id where one is due")
        self.string()
        self.id()
        return self.take(16).decode("latin-1")

    def throwable(self) -> dict[str, object]:
        """``code``, the name of the class without its package, and ``text``."""
        if not self.flag():
            return {"code": None, "text": None}
        name, text = self.string() or "", self.string()
        return {"code": name.rpartition(".")[2], "text": text}

    def options(self) -> dict[str, object]:
        """A primitive map of simple values."""
        found: dict[str, object] = {}
        for _ in range(self.number()):
            name = self.text()
            tag = self.take(1)[0]
            if tag in _NUMBERS:
                found[name] = self.number(_NUMBERS[tag])
            elif tag == 1:
                found[name] = self.flag()
            elif tag == 9:
                found[name] = self.text()
            elif tag:
                raise ValueError(f"a value of type {tag} in WireFormatInfo")
        return found


def _message(fields: _Fields) -> dict[str, object]:
    """Read the message in a dispatch: the fields that cases need; the others are skipped."""
    kind = fields.take(1)[0]
    if not 23 <= kind <= 28:
        raise ValueError(f"type {kind} where a message is due")
    fields.take(5)
    fields.id()  # producer
    fields.destination()
    fields.id()  # transaction
    fields.destination()
    found: dict[str, object] = {"id": fields.message_id()}
    fields.id()
    fields.string()  # group, and the place in it
    fields.number()
    fields.string()  # correlation id
    found["persistent"] = fields.flag()
    fields.take(9)  # expiration, priority
    fields.destination()
    fields.take(8)  # time
    fields.string()
    found["body"] = fields.blob()
    fields.blob()
    fields.structure()
    fields.id()
    fields.flag()
    found["counter"] = fields.number()
    fields.array()
    fields.take(8)
    fields.string()
    fields.take(2)
    fields.array()
    fields.take(17)  # times at the broker, and whether it is the first for its consumer
    return found


class OpenwireEar(Buffered):
    """What a server says, as units.

    ``hello`` is WireFormatInfo; ``response`` and ``exception`` have the number of their command
    (``to``); ``error`` is ConnectionError; ``message`` is MessageDispatch with ``body``, ``id``,
    ``destination``, ``consumer`` and ``redelivered``; ``end`` is one without a message; ``alive``
    is KeepAliveInfo, and ``shutdown`` ShutdownInfo.
    """

    def next_unit(self) -> Unit | None:
        """See :class:`tmqp_conformance.packs.ears.Buffered`."""
        while len(self._held) > 4:
            size = int.from_bytes(self._held[:4], "big", signed=True)
            if not 0 < size <= _MOST_BYTES:
                self.complaint = f"the peer announces a command of {size} bytes"
                return None
            if len(self._held) < 4 + size:
                return None
            try:
                unit = _unit(_Fields(self.cut(4 + size)[4:]))
            except (ValueError, error) as fault:
                self.complaint = f"the peer sent {fault}"
                return None
            if unit is not None:
                return unit
        return None


def _unit(fields: _Fields) -> Unit | None:
    """Read a command; return None if no case is about it.

    :raises ValueError: if no server may send it.
    """
    kind = fields.take(1)[0]
    if kind == _HELLO:
        return _hello(fields)
    if kind == 0 or kind in _ASIDE:
        return None
    number, asks = fields.number(), fields.flag()
    del number
    if kind == 30:
        unit = Unit("response", to=fields.number())
    elif kind == 31:
        unit = Unit("exception", to=fields.number(), **fields.throwable())
    elif kind == 16:
        unit = Unit("error", **fields.throwable())
        fields.id()
    elif kind == 21:
        unit = _dispatch(fields)
    elif kind == 10:
        unit = Unit("alive", asks=asks)
    elif kind == 11:
        unit = Unit("shutdown")
    else:
        raise ValueError(f"a command of type {kind}")
    if fields.at != len(fields.data):
        raise ValueError(f"{len(fields.data) - fields.at} extra bytes follow a command")
    return unit


def _hello(fields: _Fields) -> Unit:
    if fields.take(8) != _MAGIC:
        raise ValueError("a WireFormatInfo without its magic")
    version = fields.number()
    blob = fields.blob()
    options = _Fields(blob).options() if blob else {}
    return Unit(
        "hello",
        version=version,
        tight=options.get("TightEncodingEnabled", False),
        cache=options.get("CacheEnabled", False),
        bare=options.get("SizePrefixDisabled", False),
    )


def _dispatch(fields: _Fields) -> Unit:
    consumer, destination = fields.id(), fields.destination()
    found = _message(fields) if fields.flag() else None
    redelivered = fields.number()
    if found is None:
        return Unit("end", consumer=consumer)
    counter = found.pop("counter")
    return Unit(
        "message",
        consumer=consumer,
        destination=destination,
        redelivered=redelivered,
        counter=counter,
        **found,
    )
