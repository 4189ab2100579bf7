"""The grammar of OpenWire for the wire fuzzer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final
from zlib import crc32

from tmqp.testing import Seeded
from tmqp.testing.conformance.patterns import Names
from tmqp_conformance.packs.grammar import ID_MARK, PackGrammar, choice, of_size
from tmqp_conformance.packs.openwire.words import (
    BROWSER,
    COMMIT,
    INDIVIDUAL,
    ROLLBACK,
    STANDARD,
    Order,
    ack,
    begin,
    connection,
    consumer,
    finish,
    hello,
    keep_alive,
    local,
    numbered,
    pull,
    remove,
    send,
    session,
)
from tmqp_conformance.packs.units import Unit
from tmqp_wires.openwire import MessageDispatch, ServerConnection, WireFormat
from tmqp_wires.openwire.commands import (
    ConnectionInfo,
    ConsumerInfo,
    RemoveInfo,
    ShutdownInfo,
    TransactionInfo,
)
from tmqp_wires.openwire.connection import Event, Fault
from tmqp_wires.openwire.ids import ConnectionId

__all__ = ["OpenwireGrammar"]

_I: Final = Struct(">i")
_SIZE: Final = 4
#: A command's type, number and wish for a response.
_HEAD_BYTES: Final = 6
_MOST_BYTES: Final = 16_777_216
#: More than this is not judged: how long commands may be is the server's to say.
_SURE_BYTES: Final = 8_192
_SMALL: Final = 100
_TYPES: Final = {
    1: "WireFormatInfo",
    3: "ConnectionInfo",
    4: "SessionInfo",
    5: "ConsumerInfo",
    6: "ProducerInfo",
    7: "TransactionInfo",
    8: "DestinationInfo",
    10: "KeepAliveInfo",
    11: "ShutdownInfo",
    12: "RemoveInfo",
    17: "ConsumerControl",
    20: "MessagePull",
    22: "MessageAck",
    24: "message",
}
_ODD_TYPES: Final = (0, 2, 9, 13, 16, 19, 21, 23, 28, 29, 30, 31, 40, 99, 255)
_BEGINS: Final = b"\1ActiveMQ"
_MAGIC_END: Final = _SIZE + len(_BEGINS)
#: A client that asks for an encoding option may get it.
_OPTION: Final = re.compile(rb"(Tight|Cache|StackTrace|SizePrefix)[A-Za-z]{7,15}\x01\x01")
_UNKNOWN_TYPE: Final = "there is no command of type"
_SERVERS_ONLY: Final = (2, 16, 18, 19, 21, 30, 31)
_SHUT: Final = ("InvalidClientIDException", "SecurityException")
_SPOILT: Final = (b"\0", b"\1", b"\2", b"\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0")


class _Marks(Names):
    """Names that stay marks of eight bytes; what is bound is an id."""

    def __init__(self) -> None:
        super().__init__("")

    def value(self, word: str) -> str:
        """See :class:`Names`."""
        return ID_MARK.decode() if word == "m" else f"${word}{word}_____"


_MARKS: Final = _Marks()


def _bytes_of(order: Order) -> bytes:
    return order.encode(_MARKS, "")


def _again() -> bytes:
    """A ConnectionInfo that takes over what an earlier line has left."""
    info = connection("watch")
    fields = list(info.fields)
    fields[5] = b"\0\0\0\0\1"  # the last flag is failoverReconnect
    return Order(info.name, info.type, *fields, number=1, asks=True).encode(Names("x"), "")


class _Reader:
    """The codec's own connection."""

    def __init__(self) -> None:
        self.rule = ""
        self.state = "new"
        self.doubtful = False
        self.illegible = False
        self._wire = ServerConnection(0.0, WireFormat(silence_ms=0, max_frame_bytes=_MOST_BYTES))
        self._first = b""
        self._introduced = False

    @property
    def inside(self) -> bool:
        """See :class:`tmqp_conformance.packs.grammar.Reader`: no introduction, no answers."""
        return self._wire.held_bytes > 0 or not self._introduced

    def read(self, data: bytes) -> None:
        """See :class:`tmqp_conformance.packs.grammar.Reader`."""
        if len(self._first) < _SURE_BYTES:
            self._first += data[:_SURE_BYTES]
        for event in self._wire.receive(data, 0.0):
            self._note(event)
            if self.rule or self.doubtful:
                return
        if self.state == "new" and self._wire.version:
            self.state = "agreed"
            if self._wire.version < 10 or _OPTION.search(self._first):
                self.doubtful = self.illegible = True
        if self._wire.held_bytes > _SURE_BYTES:
            self.doubtful = True

    def _note(self, event: Event) -> None:
        """What a command means for the connection."""
        if isinstance(event, Fault):
            self._judge(event)
        elif isinstance(event, ConnectionInfo):
            # A second one is answered by an exception, or ends the connection.
            self.doubtful = self._introduced
            self._introduced = True
            self.state = "connected"
        elif not self._introduced or event.type in _SERVERS_ONLY:
            self.doubtful = True
        elif isinstance(event, ShutdownInfo | MessageDispatch):
            self.state = "leaving"
            self.doubtful = True
        elif isinstance(event, RemoveInfo):
            self.doubtful = isinstance(event.owner, ConnectionId)
        elif isinstance(event, ConsumerInfo):
            self.state = "consuming"
        elif isinstance(event, TransactionInfo):
            self.state = "transaction"

    def _judge(self, fault: Fault) -> None:
        """Whether every server must end the connection for this."""
        begun = self._first[_SIZE:_MAGIC_END]
        if begun[:1] == _BEGINS[:1] and len(begun) == len(_BEGINS) and begun != _BEGINS:
            # A server may wait for the end of the frame.
            size = int.from_bytes(self._first[:_SIZE], "big", signed=True)
            if len(begun) <= size <= len(self._first) - _SIZE:
                self.rule = "magic"
                return
        if self._introduced and fault.text.startswith(_UNKNOWN_TYPE):
            self.rule = "type"
            return
        self.doubtful = True


class OpenwireGrammar(PackGrammar):
    """Commands of clients."""

    greeting = hello().encode(_MARKS, "") + _again()
    states: tuple[str, ...] = (
        *("new", "agreed", "connected", "consuming", "transaction", "leaving", "closed"),
    )
    kinds: tuple[str, ...] = (*_TYPES.values(), "other")
    fields: tuple[str, ...] = (
        *("asks=yes", "asks=no", "asks=other"),
        *("size=0", "size=some", "size=long"),
        *("number=0", "number=some", "number=negative"),
    )

    def reader(self) -> _Reader:
        """See :class:`PackGrammar`."""
        return _Reader()

    def split(self, data: bytes) -> tuple[bytes, list[bytes], bytes]:
        """See :class:`Grammar`."""
        messages: list[bytes] = []
        at = 0
        while at + _SIZE < len(data):
            (size,) = _I.unpack_from(data, at)
            end = at + _SIZE + size
            if size <= 0 or end > len(data):
                break
            messages.append(data[at:end])
            at = end
        return b"", messages, data[at:]

    def kind_of(self, message: bytes) -> str:
        """See :class:`PackGrammar`."""
        return _TYPES.get(message[_SIZE], "other")

    def fields_of(self, message: bytes) -> Iterable[str]:
        """See :class:`PackGrammar`."""
        rest = message[_SIZE + _HEAD_BYTES :]
        yield f"size={of_size(len(rest), _SMALL, most=_MOST_BYTES)}"
        if message[_SIZE] == 1 or len(message) < _SIZE + _HEAD_BYTES:
            return
        (number,) = _I.unpack_from(message, _SIZE + 1)
        yield f"number={'0' if not number else 'some' if number > 0 else 'negative'}"
        asks = message[_SIZE + 5]
        yield f"asks={'no' if not asks else 'yes' if asks == 1 else 'other'}"

    def changed(self, draw: Seeded, message: bytes) -> bytes:
        """See :class:`Grammar`."""
        found = bytearray(message[_SIZE:])
        place = draw.below(len(found))
        what = draw.below(7)
        if what == 0:
            found[0] = choice(draw, (*_TYPES, *_ODD_TYPES))
        elif what == 1 and len(found) >= _HEAD_BYTES:
            found[1:5] = choice(draw, (b"\0\0\0\0", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"))
        elif what == 2 and len(found) >= _HEAD_BYTES:
            found[5] = choice(draw, (0, 1, 1, 2))
        elif what == 3:
            spoilt = choice(draw, _SPOILT)
            found[place : place + len(spoilt)] = spoilt
        elif what == 4:
            del found[max(1, place) :]
        elif what == 5:
            found += choice(draw, _SPOILT)
        else:
            size = choice(draw, (0, -1, 1, len(found) - 1, len(found) + 1, 2**31 - 1))
            return _I.pack(size) + bytes(found)
        return _I.pack(len(found)) + bytes(found)

    def plain(self, draw: Seeded) -> bytes:
        """See :class:`Grammar`."""
        number = 100 + draw.below(50)
        of = choice(draw, (None, None, local("a")))
        to = choice(draw, ("queue:$q", "queue:$r", "topic:$t"))
        orders = (
            send(choice(draw, (b"", b"x", b"y" * 5_000)), number, to, of),
            consumer("a", to, prefetch=choice(draw, (0, 1, 100)), id=1 + draw.below(3)),
            consumer("a", to, browser=True, id=BROWSER),
            ack("a", choice(draw, (0, STANDARD, 3, INDIVIDUAL)), "m", transaction=of),
            finish("a", choice(draw, (0, COMMIT, ROLLBACK, 5))),
            begin("a"),
            remove("a"),
            pull("a"),
            session("a"),
            keep_alive(),
            send(b"z", number, to),
        )
        order = choice(draw, orders)
        return _bytes_of(numbered(order, number) if draw.one_in(2) else order)

    def odd(self, draw: Seeded) -> bytes:
        """See :class:`Grammar`."""
        kind = draw.below(6)
        if kind == 0:
            version = choice(draw, (0, 1, 9, 10, 11, 13, -1, 2**31 - 1))
            return hello(version, options=draw.one_in(2)).encode(_MARKS, "")
        if kind == 1:
            return hello(magic=choice(draw, (b"inActive", b"\0" * 8))).encode(_MARKS, "")
        if kind == 2:
            return choice(draw, (b"\0\0\0\1\0", b"\0\0\0\0", b"GET / HTTP/1.1\r\n\r\n"))
        if kind == 3:
            return draw.some_bytes(draw.below(40))
        if kind == 4:
            return _bytes_of(Order("odd", choice(draw, _ODD_TYPES), draw.some_bytes(draw.below(9))))
        return _bytes_of(Order("bare", choice(draw, tuple(_TYPES)), asks=True, number=77))

    def fence(self, name: str) -> bytes:
        """A SessionInfo, whose response comes behind all others."""
        return _bytes_of(numbered(session("fence"), _fence_number(name)))

    def passes(self, unit: object, name: str) -> bool:
        """See :class:`PackGrammar`."""
        if not isinstance(unit, Unit) or unit.kind not in ("response", "exception"):
            return False
        return unit.fields.get("to") == _fence_number(name)

    def refuses(self, unit: object) -> bool:
        """What the server says before it closes: a ConnectionError, or who is not let in."""
        if not isinstance(unit, Unit):
            return False
        return unit.kind == "error" or unit.fields.get("code") in _SHUT

    def newest_id(self, units: Sequence[object]) -> bytes:
        """The two numbers of the id, which MessageAck names."""
        for unit in reversed(units):
            if isinstance(unit, Unit) and unit.kind == "message":
                return str(unit.fields["id"]).encode("latin-1")
        return b""


def _fence_number(name: str) -> int:
    """A number of a command that no conversation has."""
    return 0x40000000 | crc32(name.encode()) >> 2
