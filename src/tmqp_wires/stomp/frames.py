"""Frames of STOMP: their parts, and their encoding.

A frame is a command, header lines and a body.  The versions differ in what a header may hold: 1.0
escapes nothing; 1.1 escapes line feeds, colons and backslashes, each by a backslash and a mark;
1.2 carriage returns, too.  CONNECT and CONNECTED are never escaped, so that old peers read them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

__all__ = [
    "DEFAULT_PORT",
    "UNESCAPED",
    "V1_0",
    "V1_1",
    "V1_2",
    "VERSIONS",
    "FrameLimits",
    "StompFrame",
    "Violation",
    "encode_frame",
    "header_lines",
    "is_plain",
    "read_header_lines",
    "unescaped",
]

DEFAULT_PORT: Final = 61_613
V1_0: Final = "1.0"
V1_1: Final = "1.1"
V1_2: Final = "1.2"
#: All versions, the newest first.
VERSIONS: Final = (V1_2, V1_1, V1_0)

#: Frames that carry no escapes.
UNESCAPED: Final = frozenset({"CONNECT", "CONNECTED"})
_MARKS: Final = frozenset("\\\r\n:")
_TO_TEXT: Final[dict[str, str]] = {"r": "\r", "n": "\n", "c": ":", "\\": "\\"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameLimits:
    """What a peer may send.

    :raises ValueError: when a value is not positive.
    """

    max_head_bytes: int = 65_536
    """Bytes of the command and the header lines of one frame."""

    max_headers: int = 1_000
    """Header lines of one frame."""

    max_body_bytes: int = 16_777_216
    """Bytes of the body of one frame."""

    def __post_init__(self) -> None:
        for name in ("max_head_bytes", "max_headers", "max_body_bytes"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)!r}")


@final
class StompFrame:
    """A frame.  ``headers`` are in the order of arrival, and may repeat a name: the first one
    counts.  ``encoded_size`` is about its size on the wire, 0 for a frame that is made here."""

    __slots__ = ("body", "command", "encoded_size", "headers")

    def __init__(
        self,
        command: str,
        headers: list[tuple[str, str]] | None = None,
        body: bytes = b"",
        encoded_size: int = 0,
    ) -> None:
        self.command = command
        self.headers: list[tuple[str, str]] = [] if headers is None else headers
        self.body = body
        self.encoded_size = encoded_size

    def find(self, name: str) -> str | None:
        """The value of a header; None when there is none."""
        for key, value in self.headers:
            if key == name:
                return value
        return None

    def get(self, name: str) -> str:
        """The value of a header; empty when there is none."""
        value = self.find(name)
        return "" if value is None else value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StompFrame):
            return NotImplemented
        mine, others = (self.command, self.headers), (other.command, other.headers)
        return mine == others and self.body == other.body

    def __hash__(self) -> int:
        return hash((self.command, tuple(self.headers), self.body))

    def __repr__(self) -> str:
        return f"StompFrame({self.command!r}, {self.headers!r}, {self.body!r})"


@final
class Violation:
    """The peer has broken the protocol or a limit: the connection is over.

    ``text`` says what happened, ``detail`` has details for people.
    """

    __slots__ = ("detail", "text")

    def __init__(self, text: str, detail: str = "") -> None:
        self.text = text
        self.detail = detail

    def __repr__(self) -> str:
        return f"Violation({self.text!r})"


def is_plain(text: str) -> bool:
    """Whether a name or a value reads the same in every version."""
    return _MARKS.isdisjoint(text)


def _escaped(text: str, version: str, *, is_name: bool) -> str:
    if is_plain(text):
        return text
    if version == V1_0:
        # There are no escapes: characters that would end the line or the name become blanks.
        text = text.replace("\r", " ").replace("\n", " ")
        return text.replace(":", " ") if is_name else text
    text = text.replace("\\", "\\\\").replace("\n", "\\n").replace(":", "\\c")
    # A carriage return has no escape in 1.1, and at the end of a line it would be lost.
    return text.replace("\r", "\\r" if version == V1_2 else " ")


def unescaped(text: str, version: str) -> str:
    """Undo the escapes of a name or a value.

    :raises ValueError: for an escape that the version does not know.
    """
    if version == V1_0 or "\\" not in text:
        return text
    parts = text.split("\\")
    found = [parts[0]]
    at = 1
    while at < len(parts):
        part = parts[at]
        mark = part[:1]
        if not mark:
            # Two backslashes in a row; the part behind the second one is plain.
            if at + 1 == len(parts):
                raise ValueError("a header ends in half an escape")
            found.append("\\" + parts[at + 1])
            at += 2
            continue
        if mark == "r" and version != V1_2:
            raise ValueError("there is no escape \\r before version 1.2")
        to_text = _TO_TEXT.get(mark)
        if to_text is None:
            raise ValueError(f"a backslash before {mark!r} is not an escape")
        found.append(to_text + part[1:])
        at += 1
    return "".join(found)


def header_lines(headers: Iterable[tuple[str, str]], version: str) -> bytes:
    """Encode headers as lines."""
    lines = [
        f"{_escaped(name, version, is_name=True)}:{_escaped(value, version, is_name=False)}\n"
        for name, value in headers
    ]
    return "".join(lines).encode("utf-8", "replace")


def read_header_lines(
    head: str, version: str, *, trims: bool = False, most: int = 0
) -> list[tuple[str, str]]:
    """Read headers from lines that end in a newline, or in a carriage return and a newline.

    :param trims: remove blanks around names and values, as in the examples of 1.0.
    :param most: the largest number of lines, 0 for no limit.
    :raises ValueError: for an invalid header line, or an unknown escape.
    """
    if not head:
        return []
    lines = head.split("\n")
    if not lines[-1]:
        lines.pop()
    if most and len(lines) > most:
        raise ValueError(f"a frame has more than {most} headers")
    found: list[tuple[str, str]] = []
    escapes = "\\" in head
    for line in lines:
        name, colon, value = line.removesuffix("\r").partition(":")
        if not colon:
            raise ValueError(f"a header line has no colon: {line[:64]!r}")
        if trims:
            name, value = name.strip(" "), value.strip(" ")
        if escapes:
            name, value = unescaped(name, version), unescaped(value, version)
        if not name:
            raise ValueError("a header has no name")
        found.append((name, value))
    return found


def encode_frame(
    command: str,
    headers: Iterable[tuple[str, str]] = (),
    body: bytes = b"",
    version: str = V1_2,
) -> bytes:
    """Encode a frame; *headers* need ``content-length`` if the body may have a NUL."""
    lines = header_lines(headers, V1_0 if command in UNESCAPED else version)
    return b"%s\n%s\n%s\0" % (command.encode("ascii"), lines, body)
