"""The messages of goMS (go-messaging-service), both roles.

Every message is a JSON object.  A line is one, but an object may also be written over several
lines, as the document shows it.  There are two dialects, distinguished by the key that names the
kind of a message: ``type`` (the document, and programs of its time) and ``messagetype`` (from
2017-06 on, which the published clients speak).  They differ in names and in what a delivery has.

Like the original, the decoder ignores input that is not an object or has no known meaning.

The messages of a client often differ only in their data.  So a decoder remembers the bytes before
and after the data of the last one: if they occur again, only the data are parsed, which halves the
work.
"""

from __future__ import annotations

import json
import re
from enum import Enum
from json.encoder import encode_basestring
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
    "message_lines",
    "quoted",
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
#: Up to where the data of a message begin.
_DATA: Final = re.compile(rb'"data"\s*:\s*(?=")')
_JSON: Final = json.JSONDecoder()
#: Longer messages are not remembered, because remembering one takes as many bytes.
_LONGEST_ALIKE: Final = 65_536

#: A delivery of nothing in the dialect ``type``, in full and as it is written.
_EMPTY_DATA: Final = b'{"type":"message","data":""}\n'
_NO_DATA: Final = b'{"type":"message"}\n'


class Dialect(Enum):
    """The key that names the kind of a message."""

    TYPE = "type"
    MESSAGETYPE = "messagetype"


@final
class Register:
    """The client wants the messages of these topics."""

    __slots__ = ("dialect", "topics")

    def __init__(self, dialect: Dialect, topics: list[str]) -> None:
        self.dialect = dialect
        self.topics = topics

    def __repr__(self) -> str:
        return f"Register({self.dialect.value}, {self.topics})"


@final
class Send:
    """A message to all clients that are registered to one of the topics."""

    __slots__ = ("data", "dialect", "topics")

    def __init__(self, dialect: Dialect, topics: list[str], data: str) -> None:
        self.dialect = dialect
        self.topics = topics
        self.data = data

    def __repr__(self) -> str:
        return f"Send({self.dialect.value}, {self.topics}, {self.data!r})"


@final
class Logout:
    """The client wants no more messages of these topics, or of any topic if ``topics`` is None."""

    __slots__ = ("dialect", "topics")

    def __init__(self, dialect: Dialect, topics: list[str] | None) -> None:
        self.dialect = dialect
        self.topics = topics

    def __repr__(self) -> str:
        return f"Logout({self.dialect.value}, {self.topics})"


@final
class Close:
    """The client closes the connection."""

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
    """Decodes bytes into JSON objects, or into the requests of a client.

    :param max_object_bytes: the most bytes of one object, or of a line that is not one.
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
        self._fault: Violation | None = None
        self._alike = _Alike()

    @property
    def held_bytes(self) -> int:
        """Bytes of incomplete input."""
        return self._held + self._lines_bytes

    def receive(self, data: bytes) -> list[Event]:
        """The requests in the bytes; after a violation, nothing more is read."""
        events: list[Event] = []
        for line in self._lines_of(data):
            if len(line) + self._lines_bytes > self._most:
                self._violate()
                break
            event: Event | None = None if self._lines else self._alike.read(line)
            if event is None:
                value = self._take(line)
                event = None if value is None else _event(value)
                if isinstance(event, Send) and line[:1] == b"{":
                    self._alike.note(line, event)
            if event is not None:
                events.append(event)
        self._check_rest()
        if self._fault is not None:
            events.append(self._fault)
            self._fault = None
        return events

    def receive_datagram(self, data: bytes) -> list[Event]:
        """The request in a datagram, if it has one."""
        if len(data) > self._most:
            return [Violation(f"a datagram has more than {self._most} bytes")]
        value = _parsed(data)
        event = None if value is None else _event(value)
        return [] if event is None else [event]

    def objects(self, data: bytes) -> list[dict[str, Any] | Violation]:
        """The objects in the stream, whatever their meaning."""
        found: list[dict[str, Any] | Violation] = []
        for line in self._lines_of(data):
            if len(line) + self._lines_bytes > self._most:
                self._violate()
                break
            value = self._take(line)
            if value is not None:
                found.append(value)
        self._check_rest()
        if self._fault is not None:
            found.append(self._fault)
            self._fault = None
        return found

    def _lines_of(self, data: bytes) -> list[bytes]:
        """The lines that are complete now; the rest is kept."""
        if self._is_over or not data:
            return []
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self._held:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
            self._parts = []
            self._held = 0
        if rest:
            self._parts.append(rest)
            self._held += len(rest)
        return lines

    def _check_rest(self) -> None:
        if self._held + self._lines_bytes > self._most:
            self._violate()

    def _violate(self) -> None:
        """A message is too long."""
        self.forget()
        self._is_over = True
        self._fault = Violation(f"a message has more than {self._most} bytes")

    def forget(self) -> None:
        """Drop incomplete input."""
        self._parts = []
        self._held = 0
        self._drop_lines()

    def _drop_lines(self) -> None:
        self._lines = []
        self._lines_bytes = 0
        self._depth = _Depth()

    def _take(self, line: bytes) -> dict[str, Any] | None:
        """Take a complete line: an object, a part of one, or nothing."""
        if line[:1] == b"{":
            value = _parsed(line)
            if value is not None:
                # A complete object ends an earlier one that was never completed.
                self._drop_lines()
                return value
        elif not self._lines:
            stripped = line.strip()
            value = _parsed(stripped) if stripped[:1] == b"{" else None
            if value is not None or stripped[:1] != b"{":
                return value
        self._lines.append(line)
        self._lines_bytes += len(line)
        self._depth.read(line)
        if not self._depth.is_complete:
            return None
        text = b"\n".join(self._lines)
        self._drop_lines()
        return _parsed(text)


@final
class _Alike:
    """The bytes before and after the data of messages that are alike in everything else."""

    __slots__ = ("_before", "_behind", "_checked", "_dialect", "_topics")

    def __init__(self) -> None:
        self._before = ""
        self._behind = ""
        self._checked = False
        self._dialect = Dialect.TYPE
        self._topics: list[str] = []

    def read(self, line: bytes) -> Send | None:
        """Read a message that differs only in its data; its topics are the same list object.  None
        for any other line."""
        if not self._checked:
            return None
        try:
            text = line.decode("utf-8")
            before = self._before
            if not text.startswith(before):
                return None
            data, end = _JSON.raw_decode(text, len(before))
        except (ValueError, RecursionError):
            return None
        if not isinstance(data, str) or text[end:] != self._behind:
            return None
        return Send(self._dialect, self._topics, data)

    def note(self, line: bytes, event: Send) -> None:
        """Note a message that was parsed normally; if it is like the previous one, the next ones
        may be like it."""
        begun = _DATA.search(line)
        if begun is None or len(line) > _LONGEST_ALIKE:
            return
        try:
            before = line[: begun.end()].decode("utf-8")
            text = line.decode("utf-8")
            _, end = _JSON.raw_decode(text, len(before))
        except ValueError:
            return
        behind = text[end:]
        if before != self._before or behind != self._behind:
            self._before, self._behind, self._checked = before, behind, False
            return
        # The match may be another key, or nested in a value before the topics.
        value = _parsed(f'{before}"x"{behind}'.encode())
        other = None if value is None else _event(value)
        if isinstance(other, Send) and other.data == "x" and other.topics == event.topics:
            self._dialect, self._topics, self._checked = event.dialect, event.topics, True


@final
class _Depth:
    """Counts the open braces outside strings."""

    __slots__ = ("_escaped", "_in_text", "_open")

    def __init__(self) -> None:
        self._open = 0
        self._in_text = False
        self._escaped = False

    @property
    def is_complete(self) -> bool:
        """Whether every open brace is closed."""
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
    """Parse a JSON object; None if the bytes are not one."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _event(value: dict[str, Any]) -> Event | None:
    """The request in an object; None if it has no known meaning."""
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
    """The data of a message; data that are not a string become their JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _line(value: dict[str, object]) -> bytes:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "replace") + b"\n"


def quoted(data: str) -> bytes:
    """Data as a JSON string; a lone surrogate becomes a question mark."""
    return encode_basestring(data).encode("utf-8", "replace")


def message_line(dialect: Dialect, topic: str, data: str) -> bytes:
    """A delivery.  In the dialect ``type``, it has only the data, and not even these if they are
    empty."""
    return message_lines(dialect, topic, quoted(data) + b"\n")


def message_lines(dialect: Dialect, topic: str, lines: bytes) -> bytes:
    """Several deliveries.

    :param lines: the data of each as from :func:`quoted`, with a newline after each.
    """
    if dialect is Dialect.TYPE:
        head = b'{"type":"message","data":'
    else:
        head = b'{"messagetype":"message","topics":[%s],"data":' % quoted(topic)
    found = head + lines[:-1].replace(b"\n", b"}\n" + head) + b"}\n"
    if dialect is Dialect.TYPE and b':""}' in found:
        found = b"".join([_shortened(line) for line in found.splitlines(keepends=True)])
    return found


def _shortened(line: bytes) -> bytes:
    """A delivery without its data, if these are empty."""
    return _NO_DATA if line == _EMPTY_DATA else line


def error_line(dialect: Dialect, code: str, text: str) -> bytes:
    """An error, with only one newline: clients of goMS take an empty line for the end."""
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
