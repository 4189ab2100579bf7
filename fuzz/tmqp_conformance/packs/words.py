"""The words of the packs' scripts, as ``talk`` has those of TMQP.

A script says texts with names in them and expects units::

    pack_case(
        "server.nsq.pub-answers-ok",
        ...,
        dial("a"),
        say("a", b"  V2", sized(b"PUB $t", b"x")),
        hear("a", Expect("response", data=b"OK")),
    )
"""

from __future__ import annotations

from typing import Any, Final

from tmqp.testing.conformance import Case, Level, case
from tmqp.testing.conformance.patterns import Names
from tmqp.testing.conformance.steps import Answer, End, Fence, Hear, Open, Say
from tmqp_conformance.packs.units import Expect

__all__ = [
    "PLACES",
    "Request",
    "Sized",
    "Text",
    "closes",
    "dial",
    "hear",
    "nothing",
    "pack_case",
    "say",
    "sized",
]

#: The further addresses that cases may need, beside the first: words of ``needs`` and of --at.
PLACES: Final = {
    "http": "the HTTP interface",
    "lookup": "the TCP interface of the directory (nsqlookupd)",
    "lookup-http": "the HTTP interface of the directory (nsqlookupd)",
    "dialect-7.3": "the dialect 7.3 (Throttr)",
}
_SHOWN_BYTES: Final = 60


def _shown(data: bytes) -> str:
    text = repr(data[:_SHOWN_BYTES])[1:]
    return text if len(data) <= _SHOWN_BYTES else f"{text}... ({len(data)} bytes)"


class Text:
    """Bytes with names in them."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def encode(self, names: Names, next_id: str, token: str = "") -> bytes:
        """Its bytes."""
        return names.data(self.data)

    def describe(self) -> str:
        """It in one line."""
        return _shown(self.data)


class Sized:
    """A line, then the size of a body as four bytes, then the body.

    :param announced: a size that is not the body's.
    """

    __slots__ = ("announced", "body", "line")

    def __init__(self, line: bytes, body: bytes, announced: int | None = None) -> None:
        self.line = line
        self.body = body
        self.announced = announced

    def encode(self, names: Names, next_id: str, token: str = "") -> bytes:
        """Its bytes."""
        body = names.data(self.body)
        size = len(body) if self.announced is None else self.announced
        return names.data(self.line) + b"\n" + size.to_bytes(4, "big", signed=True) + body

    def describe(self) -> str:
        """It in one line."""
        size = "" if self.announced is None else f" (announced as {self.announced} bytes)"
        return f"{_shown(self.line)} with the body {_shown(self.body)}{size}"


class Request:
    """A request of HTTP/1.1."""

    __slots__ = ("body", "method", "target")

    def __init__(self, method: bytes, target: bytes, body: bytes | None = None) -> None:
        self.method = method
        self.target = target
        self.body = body

    def encode(self, names: Names, next_id: str, token: str = "") -> bytes:
        """Its bytes."""
        lines = [names.data(b"%s %s HTTP/1.1" % (self.method, self.target)), b"Host: localhost"]
        if self.body is not None:
            lines.append(b"Content-Length: %d" % len(self.body))
        return b"\r\n".join([*lines, b"", self.body or b""])

    def describe(self) -> str:
        """It in one line."""
        body = "" if self.body is None else f" with the body {_shown(self.body)}"
        return f"{self.method.decode()} {self.target.decode()}{body}"


def pack_case(
    id: str,
    title: str,
    why: str,
    requires: str,
    *script: Any,
    level: Level = Level.MUST,
) -> Case:
    """Make a case of a pack; it needs the addresses at which it opens lines."""
    made = case(id, title, why, requires, *script, level=level, known=PLACES)
    needs = sorted({step.at for step in made.steps if isinstance(step, Open) and step.at})
    return case(id, title, why, requires, *script, level=level, needs=" ".join(needs), known=PLACES)


def dial(line: str, at: str = "") -> Open:
    """Open a line, at another address of the server if one is named."""
    return Open(line, at=at)


def sized(line: bytes, body: bytes, announced: int | None = None) -> Sized:
    """A command with a body."""
    return Sized(line, body, announced)


def say(line: str, *items: Any, chop: int | None = None) -> Say:
    """Say texts and other items."""
    words = [Text(item) if isinstance(item, bytes) else item for item in items]
    return Say(line, *words, chop=chop)


def hear(
    line: str, *expected: Expect | Answer, within: float | None = None, end: End = End.OPEN
) -> Hear:
    """Expect this and, when it has come, continue: the end of the case shows whether more comes.

    Answers instead are alternatives.
    """
    answers = [each for each in expected if isinstance(each, Answer)]
    units = [each for each in expected if isinstance(each, Expect)]
    fence = Fence.FIRST
    return Hear(line, *(answers or [Answer(*units, end=end)]), fence=fence, within=within)


def closes(line: str, *expected: Expect, within: float | None = None) -> Hear:
    """Expect this, and the end of the connection."""
    return Hear(line, Answer(*expected, end=End.CLOSED), fence=Fence.END, within=within)


def nothing(line: str) -> Hear:
    """Expect a moment of silence."""
    return Hear(line, Answer(), fence=Fence.QUIET)
