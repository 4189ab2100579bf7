"""The words of ZMTP's scripts: greetings, commands and messages of sockets, and what servers say.

A separate reader reads the server's frames; it shares no code with the codec, so that it detects
faults of the codec, and it has no rules about their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from tmqp.testing.conformance.patterns import Bind, Matcher, Names, describe_value
from tmqp.testing.conformance.steps import Answer, End, Fence, Hear, Open, Say
from tmqp_conformance.packs.units import Expect, Unit
from tmqp_conformance.packs.words import dial, hear, say
from tmqp_wires.zmtp.frames import (
    COMMAND,
    LONG,
    MORE,
    command_frame,
    message_frames,
    metadata_bytes,
    more_frames,
    read_metadata,
    split_command,
)

__all__ = [
    "GREETING",
    "GREETING_BYTES",
    "SECURITY",
    "SIGNATURE",
    "Parts",
    "Request",
    "ZmtpEar",
    "command",
    "connect",
    "ends",
    "envelope_of",
    "greeting",
    "introduce",
    "message",
    "old_greeting",
    "parts",
    "ready",
    "reply",
]

SIGNATURE: Final = b"\xff\0\0\0\0\0\0\0\x01\x7f"
GREETING_BYTES: Final = 64
_VERSION_AT: Final = 10
_REST_BYTES: Final = 53
_MECHANISM_BYTES: Final = 20
_LONG_HEAD: Final = 9
_SHORT_HEAD: Final = 2
_KNOWN_FLAGS: Final = MORE | LONG | COMMAND
_MOST_BYTES: Final = 33_554_432
#: The commands that are units of their own; each has ``data``.
_COMMANDS: Final = (b"SUBSCRIBE", b"CANCEL", b"PING", b"PONG")


# -- what is heard --------------------------------------------------------------------------------


class ZmtpEar:
    """What a server says: units ``greeting`` (``major``), ``security`` (the rest of a greeting of
    3.x: ``minor``, ``mechanism``, ``as_server``) or ``old`` (2.0: ``type``, ``identity``), then
    ``ready`` (``socket_type``, ``identity``), ``error`` (``text``), ``subscribe``, ``cancel``,
    ``ping``, ``pong`` (``data``), other commands, and ``message`` (``parts``).
    """

    def __init__(self) -> None:
        self.complaint = ""
        self._held = b""
        self._parts: list[bytes] = []
        self._next: Callable[[], Unit | None] = self._begin

    @property
    def held_bytes(self) -> int:
        """See :class:`tmqp_conformance.packs.units.Ear`."""
        return len(self._held) + len(self._parts)

    def feed(self, data: bytes) -> list[Unit]:
        """See :class:`tmqp_conformance.packs.units.Ear`."""
        units: list[Unit] = []
        if self.complaint:
            return units
        self._held += data
        while (unit := self._next()) is not None:
            units.append(unit)
        return units

    def _cut(self, size: int) -> bytes:
        data, self._held = self._held[:size], self._held[size:]
        return data

    def _begin(self) -> Unit | None:
        held = self._held
        if held[:1] not in (b"", b"\xff") or (len(held) >= _VERSION_AT and not held[9] & 1):
            self.complaint = f"the peer sent what is no signature of ZMTP: {held[:10]!r}"
        if self.complaint or len(held) <= _VERSION_AT:
            return None
        self._next = self._go_on
        return Unit("greeting", major=self._cut(_VERSION_AT + 1)[_VERSION_AT])

    def _go_on(self) -> Unit | None:
        """The mechanism, which begins with a letter, or the frame of an identity, with a zero."""
        held = self._held
        if len(held) < 2:
            return None
        if held[1]:
            if len(held) < _REST_BYTES:
                return None
            rest = self._cut(_REST_BYTES)
            mechanism = rest[1 : 1 + _MECHANISM_BYTES].rstrip(b"\0")
            self._next = self._frame
            as_server = rest[1 + _MECHANISM_BYTES]
            return Unit("security", minor=rest[0], mechanism=mechanism, as_server=as_server)
        if len(held) < 3 or len(held) < 3 + held[2]:
            return None
        self._next = self._frame
        return Unit("old", type=held[0], identity=self._cut(3 + held[2])[3:])

    def _frame(self) -> Unit | None:
        while (found := self._cut_frame()) is not None:
            flags, body = found
            if flags & COMMAND:
                return self._command(body)
            self._parts.append(body)
            if not flags & MORE:
                whole, self._parts = tuple(self._parts), []
                return Unit("message", parts=whole)
        return None

    def _cut_frame(self) -> tuple[int, bytes] | None:
        held = self._held
        if not held:
            return None
        flags = held[0]
        if flags & ~_KNOWN_FLAGS or (flags & COMMAND and flags & MORE):
            self.complaint = f"the peer sent a frame with the flags {flags:#04x}"
            return None
        head = _LONG_HEAD if flags & LONG else _SHORT_HEAD
        if len(held) < head:
            return None
        size = int.from_bytes(held[1:head], "big")
        if size > _MOST_BYTES:
            self.complaint = f"the peer announces a frame of {size} bytes"
            return None
        if len(held) < head + size:
            return None
        return flags, self._cut(head + size)[head:]

    def _command(self, body: bytes) -> Unit | None:
        try:
            name, data = split_command(body)
            if name == b"READY":
                found = read_metadata(data)
                kind, identity = found.get("socket-type", b""), found.get("identity", b"")
                return Unit("ready", socket_type=kind, identity=identity)
        except ValueError as error:
            self.complaint = f"the peer sent a wrong command: {error}"
            return None
        if name == b"ERROR":
            return Unit("error", text=data[1:])
        if name in _COMMANDS:
            return Unit(name.decode().lower(), data=data)
        return Unit("command", name=name, data=data)


# -- what is said ---------------------------------------------------------------------------------


class _Made:
    """Something to say whose bytes depend on names.

    :param shown: it in one line.
    :param make: makes its bytes.
    """

    __slots__ = ("_make", "_shown")

    def __init__(self, shown: str, make: Callable[[Names], bytes]) -> None:
        self._shown = shown
        self._make = make

    def encode(self, names: Names, next_id: str, token: str = "") -> bytes:
        """See :class:`tmqp.testing.conformance.steps.Said`."""
        return self._make(names)

    def describe(self) -> str:
        """See :class:`tmqp.testing.conformance.steps.Said`."""
        return self._shown


def greeting(
    *, signature: bytes = SIGNATURE, major: int = 3, minor: int = 1, mechanism: bytes = b"NULL"
) -> bytes:
    """A greeting of ZMTP 3.x, all 64 bytes."""
    padded = mechanism.ljust(_MECHANISM_BYTES, b"\0")
    return (signature + bytes((major, minor)) + padded).ljust(GREETING_BYTES, b"\0")


def old_greeting(number: int) -> bytes:
    """A greeting of ZMTP 2.0: the number of the socket's type, and no identity."""
    return SIGNATURE + bytes((1, number, 0, 0))


def introduce(
    kind: str, more: Iterable[tuple[str, bytes]] = (), *, type_name: str = "Socket-Type"
) -> _Made:
    """READY of a socket that asks for the channel ``$q``, with more properties.

    :param type_name: how the property is written that names the socket's type.
    """
    others = [("X-Channel", b"$q"), *more]

    def make(names: Names) -> bytes:
        filled = [(name, names.data(value)) for name, value in others]
        pairs = [(type_name, kind.encode()), *filled]
        return command_frame(b"READY", metadata_bytes(pairs))

    return _Made(f"READY of a {kind} socket, {describe_value(others)}", make)


def command(name: bytes, data: bytes = b"") -> _Made:
    """A command."""
    shown = f"{name.decode()} {describe_value(data)}"
    return _Made(shown, lambda names: command_frame(name, names.data(data)))


def message(*parts: bytes) -> _Made:
    """A message of these parts."""
    shown = f"message {describe_value(list(parts))}"
    return _Made(shown, lambda names: message_frames([names.data(part) for part in parts]))


def envelope_of(parts: tuple[bytes, ...]) -> bytes:
    """The frames of a message up to its first empty part; empty where there is none."""
    return more_frames(parts[: parts.index(b"") + 1]) if b"" in parts else b""


def reply(*parts: bytes, word: str = "m") -> _Made:
    """The reply to the request that is called so (:class:`Request`)."""
    shown = f"reply to ${word}: {describe_value(list(parts))}"
    return _Made(
        shown, lambda names: names.value(word).encode("latin-1") + message_frames(list(parts))
    )


# -- what is expected -----------------------------------------------------------------------------

GREETING: Final = Expect("greeting", major=3)
SECURITY: Final = Expect("security", mechanism=b"NULL", as_server=0)


class Parts(Matcher):
    """A message of exactly these parts."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = parts

    def matches(self, value: object, names: Names, sent: object) -> bool:
        """See :meth:`Matcher.matches`."""
        return value == tuple(names.data(part) for part in self.parts)

    def describe(self) -> str:
        """See :meth:`Matcher.describe`."""
        return describe_value(self.parts)


class Request(Bind):
    """A request of these parts under any envelope, which a reply needs (:func:`reply`)."""

    def __init__(self, *parts: bytes, word: str = "m") -> None:
        super().__init__(word)
        self.parts = parts

    def matches(self, value: object, names: Names, sent: object) -> bool:
        """See :meth:`Matcher.matches`."""
        if not isinstance(value, tuple) or b"" not in value:
            return False
        if value[value.index(b"") + 1 :] != self.parts:
            return False
        names.bind(self.word, envelope_of(value).decode("latin-1"))
        return True

    def describe(self) -> str:
        """See :meth:`Matcher.describe`."""
        return f"{describe_value(self.parts)} under an envelope (called ${self.word} below)"


def ready(kind: str) -> Expect:
    """READY of a server that is a socket of this type."""
    return Expect("ready", socket_type=kind.encode())


def parts(*expected: bytes) -> Expect:
    """A message of exactly these parts."""
    return Expect("message", parts=Parts(*expected))


def connect(
    line: str, kind: str, peer: str, *more: Expect, minor: int = 1
) -> list[Open | Say | Hear]:
    """Connect a socket of this type to the channel ``$q``; the server is a socket of type ``peer``,
    and says more.
    """
    return [
        dial(line),
        say(line, greeting(minor=minor), introduce(kind)),
        hear(line, GREETING, SECURITY, ready(peer), *more),
    ]


def ends(line: str, *expected: Expect) -> Hear:
    """Expect this and the end of the connection, with or without an ERROR before it."""
    return Hear(
        line,
        Answer(*expected, end=End.CLOSED),
        Answer(*expected, Expect("error"), end=End.CLOSED),
        fence=Fence.END,
    )
