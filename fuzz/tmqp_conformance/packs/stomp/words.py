"""The words of STOMP's scripts: frames, and the ear for what servers say.

A separate reader reads the server's frames; it shares no code with the codec, so that it detects
faults of the codec, and it has no rules about their order.
"""

from __future__ import annotations

import re
from typing import Any, Final

from tmqp.testing.conformance.patterns import Matcher, Names
from tmqp.testing.conformance.steps import Answer, End, Fence, Hear, Open, Say
from tmqp.testing.conformance.verdicts import Verdict
from tmqp_conformance.packs.units import AskedEar, Expect, Unit
from tmqp_conformance.packs.words import dial, hear, say

__all__ = [
    "CONNECT",
    "Beats",
    "Filled",
    "StompEar",
    "connect",
    "connected",
    "error",
    "fails",
    "frame",
    "message",
    "receipt",
    "send",
    "subscribe",
]

_MOST_BYTES: Final = 33_554_432
_KINDS: Final = {b"CONNECTED", b"MESSAGE", b"RECEIPT", b"ERROR"}
_MARKS: Final = {"n": "\n", "c": ":", "\\": "\\"}
_ESCAPE: Final = re.compile(r"\\(.?)", re.DOTALL)
_WANTS_BEATS: Final = re.compile(rb"\nheart-beat:\d+,0*[1-9]")
_RESERVED: Final = ("kind", "self", "body")


# -- what is heard --------------------------------------------------------------------------------


class StompEar(AskedEar):
    """What a server says: units ``connected``, ``message``, ``receipt`` and ``error``, each with
    its ``body`` and its headers, and ``beat`` for a line feed where heart-beats were agreed.

    A header is called as it is written, with an underscore for each hyphen; of repeated ones the
    first counts.
    """

    def __init__(self) -> None:
        self.complaint = ""
        self._held = b""
        self._version = "1.0"
        self._wanted = False
        self._beats = False
        #: The next line feed ends a frame, as some servers write it.
        self._behind = False

    @property
    def held_bytes(self) -> int:
        """See :class:`tmqp_conformance.packs.units.Ear`."""
        return len(self._held)

    def asked(self, data: bytes) -> None:
        """See :class:`AskedEar`: whether the client wants heart-beats."""
        self._wanted = self._wanted or _WANTS_BEATS.search(data) is not None

    def feed(self, data: bytes) -> list[Unit]:
        """See :class:`tmqp_conformance.packs.units.Ear`."""
        units: list[Unit] = []
        if self.complaint:
            return units
        self._held += data
        try:
            while (unit := self._next()) is not None:
                units.append(unit)
        except ValueError as error:
            self.complaint = f"the peer sent {error}"
        return units

    def _next(self) -> Unit | None:
        """Take one unit; None if none is whole.

        :raises ValueError: for what is no frame of a server.
        """
        while self._held[:1] in (b"\n", b"\r"):
            is_feed, self._held = self._held[:1] == b"\n", self._held[1:]
            behind, self._behind = self._behind, self._behind and not is_feed
            if is_feed and self._beats and not behind:
                return Unit("beat")
        if len(self._held) > _MOST_BYTES:
            raise ValueError(f"a frame of more than {_MOST_BYTES} bytes")
        command, feed, _ = self._held.partition(b"\n")
        if (feed or len(command) > 16) and command.removesuffix(b"\r") not in _KINDS:
            raise ValueError(f"what is no frame: {command[:40]!r}")
        found = re.search(rb"\n\r?\n", self._held)
        if found is None:
            return None
        kind = command.removesuffix(b"\r").decode()
        fields = self._fields(kind, self._held[len(command) + 1 : found.start() + 1])
        return self._with_body(kind, fields, found.end())

    def _with_body(self, kind: str, fields: dict[str, Any], start: int) -> Unit | None:
        """Take a frame whose body begins there; None if it is not whole."""
        length = fields.get("content_length")
        if length is None:
            end = self._held.find(b"\0", start)
            if end < 0:
                return None
        else:
            if not length.isdigit():
                raise ValueError(f"the content-length {length!r}")
            end = start + int(length)
            if len(self._held) <= end:
                return None
            if self._held[end]:
                raise ValueError(f"no NUL behind the {length} bytes of a body")
        body, self._held = self._held[start:end], self._held[end + 1 :]
        self._behind = True
        for name in _RESERVED:
            fields.pop(name, None)
        if kind == "CONNECTED":
            self._version = fields.get("version", "1.0")
            self._beats = self._wanted and not fields.get("heart_beat", "0,0").startswith("0,")
        return Unit(kind.lower(), body=body, **fields)

    def _fields(self, kind: str, head: bytes) -> dict[str, Any]:
        """The headers of a frame.

        :raises ValueError: for what is no header.
        """
        escapes = kind != "CONNECTED" and self._version != "1.0"
        found: dict[str, Any] = {}
        for line in head.decode("utf-8").split("\n")[:-1]:
            name, colon, value = line.removesuffix("\r").partition(":")
            if not colon or not name:
                raise ValueError(f"what is no header: {line[:40]!r}")
            if escapes:
                name, value = self._plain(name), self._plain(value)
            found.setdefault(name.replace("-", "_"), value)
        return found

    def _plain(self, text: str) -> str:
        """A text without escapes.

        :raises ValueError: for one that the version does not have.
        """

        def meant(match: re.Match[str]) -> str:
            mark = match[1]
            if mark == "r" and self._version == "1.2":
                return "\r"
            if mark not in _MARKS:
                raise ValueError(f"an escape that version {self._version} does not have: {text!r}")
            return _MARKS[mark]

        return _ESCAPE.sub(meant, text)


# -- what is said ---------------------------------------------------------------------------------


def frame(command: bytes, *lines: bytes, body: bytes = b"", end: bytes = b"\n") -> bytes:
    """A frame with these header lines.

    :param end: the end of a line.
    """
    return end.join([command, *lines, b"", b""]) + body + b"\0"


CONNECT: Final = frame(b"CONNECT", b"accept-version:1.0,1.1,1.2", b"host:localhost")


def send(body: bytes, *lines: bytes, to: bytes = b"/queue/$q") -> bytes:
    """A SEND."""
    return frame(b"SEND", b"destination:" + to, *lines, body=body)


def subscribe(*lines: bytes, to: bytes = b"/queue/$q", id: bytes = b"1") -> bytes:
    """A SUBSCRIBE."""
    return frame(b"SUBSCRIBE", b"id:" + id, b"destination:" + to, *lines)


# -- what is expected -----------------------------------------------------------------------------


class Filled(Matcher):
    """A header that is there and is not empty."""

    def matches(self, value: object, names: Names, sent: object) -> bool:
        """See :meth:`Matcher.matches`."""
        return isinstance(value, str) and value != ""

    def describe(self) -> str:
        """See :meth:`Matcher.describe`."""
        return "some text"


class Beats(Matcher):
    """The header ``heart-beat`` of a server.

    :param place: 0 for what it sends, 1 for what it wants.
    :param promised: whether it does.
    """

    def __init__(self, place: int, *, promised: bool) -> None:
        self.place = place
        self.promised = promised

    def matches(self, value: object, names: Names, sent: object) -> bool:
        """See :meth:`Matcher.matches`."""
        parts = value.split(",") if isinstance(value, str) else ["0", "0"]
        if len(parts) != 2 or not all(part.strip().isdigit() for part in parts):
            return False
        return (int(parts[self.place]) > 0) is self.promised

    def describe(self) -> str:
        """See :meth:`Matcher.describe`."""
        what = "wants" if self.place else "sends"
        return f"{what} heart-beats" if self.promised else f"{what} no heart-beats"


def connected(version: object = "1.2", **fields: object) -> Expect:
    """CONNECTED of this version."""
    return Expect("connected", version=version, **fields)


def receipt(id: str) -> Expect:
    """RECEIPT of this receipt."""
    return Expect("receipt", receipt_id=id)


def message(body: bytes, **fields: object) -> Expect:
    """MESSAGE with this body."""
    return Expect("message", body=body, **fields)


def error(**fields: object) -> Expect:
    """ERROR."""
    return Expect("error", **fields)


def connect(line: str, version: bytes = b"1.2", *lines: bytes) -> list[Open | Say | Hear]:
    """A client that is let in with this version."""
    said = () if version == b"1.0" else (b"accept-version:" + version, b"host:localhost")
    answers = [Answer(connected(version.decode()))]
    if version == b"1.0":
        answers.append(Answer(connected(None)))
    return [
        dial(line),
        say(line, frame(b"CONNECT", *said, *lines)),
        hear(line, *answers),
    ]


def fails(line: str, *expected: Expect, **fields: object) -> Hear:
    """Expect ERROR and the end of the connection; the end alone is not as it should be."""
    return Hear(
        line,
        Answer(*expected, error(**fields), end=End.CLOSED),
        Answer(
            *expected,
            end=End.CLOSED,
            verdict=Verdict.NON_STRICT,
            message="the connection ends without an ERROR that says why",
        ),
        fence=Fence.END,
    )
