"""The messages of goMS (go-messaging-service), both roles.

Every message is a JSON object.  A line is one, but an object may also be written over several
lines, as the document shows it.  There are two dialects, told apart by the key that names the kind
of a message: ``type`` (the document, and programs of its time) and ``messagetype`` (from 2017-06
on, which the published clients speak).  They differ in names and in what a delivery has.

What is not an object, or says nothing known, is ignored, as by the original.
"""

from __future__ import annotations

import json
from enum import Enum
from typing import Any, Final, TypeAlias, final

__all__ = [
    "ALREADY_REGISTERED",
    "DEFAULT_PORT",
    "UNKNOWN_TOPIC",
    "Close",
    "Dialect",
    "Event",
    "Logout",
    "ObjectDecoder",
    "Register",
    "Send",
    "Violation",
    "error_line",
    "message_line",
    "request_line",
]

DEFAULT_PORT: Final = 55_545
#: The codes are texts of six digits.
UNKNOWN_TOPIC: Final = "001001"
ALREADY_REGISTERED: Final = "001002"

_OPEN: Final = ord("{")
_SHUT: Final = ord("}")
_QUOTE: Final = ord('"')
_BACKSLASH: Final = ord("\\")


class Dialect(Enum):
    """The key that names the kind of a message."""

    TYPE = "type"
    MESSAGETYPE = "messagetype"


@final
class Register:
    """I want the messages of these topics."""

    __slots__ = ("dialect", "topics")

    def __init__(self, dialect: Dialect, topics: list[str]) -> None:
        self.dialect = dialect
        self.topics = topics

    def __repr__(self) -> str:
        return f"Register({self.dialect.value}, {self.topics})"


@final
class Send:
    """Send this to all who are registered to one of the topics."""

    __slots__ = ("data", "dialect", "topics")

    def __init__(self, dialect: Dialect, topics: list[str], data: str) -> None:
        self.dialect = dialect
        self.topics = topics
        self.data = data

    def __repr__(self) -> str:
        return f"Send({self.dialect.value}, {self.topics}, {self.data!r})"


@final
class Logout:
    """I want no more messages of these topics; of none where ``topics`` is None."""

    __slots__ = ("dialect", "topics")

    def __init__(self, dialect: Dialect, topics: list[str] | None) -> None:
        self.dialect = dialect
        self.topics = topics

    def __repr__(self) -> str:
        return f"Logout({self.dialect.value}, {self.topics})"


@final
class Close:
    """Close the connection."""

    __slots__ = ("dialect",)

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def __repr__(self) -> str:
        return f"Close({self.dialect.value})"


@final
class Violation:
    """A message is too long: what follows cannot be understood.  ``text`` says what happened."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Violation({self.text!r})"


Event: TypeAlias = Register | Send | Logout | Close | Violation


@final
class ObjectDecoder:
    """Bytes into JSON objects, or into what a client has said.

    :param max_object_bytes: bytes of one object, or of a line that is none.
    """

    def __init__(self, max_object_bytes: int) -> None:
        self._most = max_object_bytes
        self._parts: list[bytes] = []
        self._held = 0
        #: Lines of an object that is not complete.
        self._lines: list[bytes] = []
        self._lines_bytes = 0
        self._depth = _Depth()
        self._is_over = False

    @property
    def held_bytes(self) -> int:
        """Bytes of what is not complete."""
        return self._held + self._lines_bytes

    def receive(self, data: bytes) -> list[Event]:
        """What a client has said; after a violation nothing more is read."""
        events: list[Event] = []
        for each in self.objects(data):
            event = _event(each) if isinstance(each, dict) else each
            if event is not None:
                events.append(event)
        return events

    def receive_datagram(self, data: bytes) -> list[Event]:
        """What a datagram says: one object, or nothing."""
        if len(data) > self._most:
            return [Violation(f"a datagram has more than {self._most} bytes")]
        value = _parsed(data)
        event = None if value is None else _event(value)
        return [] if event is None else [event]

    def objects(self, data: bytes) -> list[dict[str, Any] | Violation]:
        """The objects in the stream, whatever they say."""
        if self._is_over or not data:
            return []
        lines = data.split(b"\n")
        rest = lines.pop()
        found: list[dict[str, Any] | Violation] = []
        for line in lines:
            if self._held:
                self._parts.append(line)
                line = b"".join(self._parts)  # noqa: PLW2901 - the whole of it
                self._parts = []
                self._held = 0
            if len(line) + self._lines_bytes > self._most:
                return self._violated(found)
            self._take(line, found)
        if rest:
            self._parts.append(rest)
            self._held += len(rest)
            if self._held + self._lines_bytes > self._most:
                return self._violated(found)
        return found

    def forget(self) -> None:
        """Drop what is not complete."""
        self._parts = []
        self._held = 0
        self._drop_lines()

    def _drop_lines(self) -> None:
        self._lines = []
        self._lines_bytes = 0
        self._depth = _Depth()

    def _violated(
        self, found: list[dict[str, Any] | Violation]
    ) -> list[dict[str, Any] | Violation]:
        self.forget()
        self._is_over = True
        found.append(Violation(f"a message has more than {self._most} bytes"))
        return found

    def _take(self, line: bytes, found: list[dict[str, Any] | Violation]) -> None:
        """A whole line: an object, a part of one, or nothing."""
        if line[:1] == b"{":
            value = _parsed(line)
            if value is not None:
                # A whole object ends one that was begun and never became any.
                self._drop_lines()
                found.append(value)
                return
        elif not self._lines:
            stripped = line.strip()
            value = _parsed(stripped) if stripped[:1] == b"{" else None
            if value is not None:
                found.append(value)
                return
            if stripped[:1] != b"{":
                return
        self._lines.append(line)
        self._lines_bytes += len(line)
        self._depth.read(line)
        if self._depth.is_complete:
            text = b"\n".join(self._lines)
            self._drop_lines()
            value = _parsed(text)
            if value is not None:
                found.append(value)


@final
class _Depth:
    """How many braces are open outside of texts."""

    __slots__ = ("_escaped", "_in_text", "_open")

    def __init__(self) -> None:
        self._open = 0
        self._in_text = False
        self._escaped = False

    @property
    def is_complete(self) -> bool:
        """Every brace that was opened is shut."""
        return self._open <= 0

    def read(self, line: bytes) -> None:
        """Count the braces of a line."""
        for byte in line:
            if self._escaped:
                self._escaped = False
            elif self._in_text:
                if byte == _BACKSLASH:
                    self._escaped = True
                elif byte == _QUOTE:
                    self._in_text = False
            elif byte == _QUOTE:
                self._in_text = True
            elif byte == _OPEN:
                self._open += 1
            elif byte == _SHUT:
                self._open -= 1
        self._escaped = False


def _parsed(data: bytes) -> dict[str, Any] | None:
    """The object that these bytes are; None if they are none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _event(value: dict[str, Any]) -> Event | None:
    """What an object of a client says; None for nothing."""
    dialect = Dialect.TYPE if "type" in value else Dialect.MESSAGETYPE
    kind = value.get(dialect.value)
    if kind == "register":
        return Register(dialect, _topics(value))
    if kind == "send":
        return Send(dialect, _topics(value), _data(value.get("data", "")))
    if kind == "logout":
        return Logout(dialect, _topics(value) if "topics" in value else None)
    if kind == "close":
        return Close(dialect)
    return None


def _topics(value: dict[str, Any]) -> list[str]:
    """The topics of a request, each once, in lower case as the document says."""
    topics = value.get("topics")
    if not isinstance(topics, list):
        return []
    return list(dict.fromkeys([each.lower() for each in topics if isinstance(each, str)]))


def _data(value: object) -> str:
    """The data of a message; what is not a text is passed on as its JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _line(value: dict[str, object]) -> bytes:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "replace") + b"\n"


def message_line(dialect: Dialect, topic: str, data: str) -> bytes:
    """A delivery: in the dialect ``type`` only its data, and not even these if they are empty."""
    if dialect is Dialect.TYPE:
        return _line({"type": "message", "data": data} if data else {"type": "message"})
    return _line({"messagetype": "message", "topics": [topic], "data": data})


def error_line(dialect: Dialect, code: str, text: str) -> bytes:
    """An error, with one newline: a client of goMS takes an empty line for the end."""
    if dialect is Dialect.TYPE:
        return _line({"type": "error", "error-code": code, "error": text})
    return _line({"messagetype": "error", "errorcode": code, "error": text})


def request_line(
    dialect: Dialect, kind: str, topics: list[str] | None = None, data: str | None = None
) -> bytes:
    """A request of a client: ``register``, ``send``, ``logout`` or ``close``."""
    value: dict[str, object] = {dialect.value: kind}
    if topics is not None:
        value["topics"] = topics
    if data is not None:
        value["data"] = data
    return _line(value)
