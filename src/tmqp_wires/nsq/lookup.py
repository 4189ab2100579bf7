"""The TCP protocol of nsqlookupd, with which nsqd registers its topics and channels: both roles
(N136 to N142).

A connection begins with ``MAGIC``; commands are lines, answers are a size and data, without a type.
``LookupDecoder`` is the server's: it returns events, the first error last.  ``AnswerDecoder`` is
the client's.
"""

from __future__ import annotations

import json
from typing import Final, final

from tmqp_wires.nsq.events import Event, Violation
from tmqp_wires.nsq.names import is_name

__all__ = [
    "MAGIC",
    "OK",
    "PING",
    "Announce",
    "AnswerDecoder",
    "LookupDecoder",
    "Ping",
    "Register",
    "Unregister",
    "announce",
    "answer",
    "register",
    "unregister",
]

#: What a client sends first.
MAGIC: Final = b"  V1"
PING: Final = b"PING\n"

_MAX_LINE_BYTES: Final = 16_384
_MAX_IDENTIFY_BYTES: Final = 65_536
#: Largest answer that a client takes.
_MAX_ANSWER_BYTES: Final = 1_048_576
#: Longest text of an IDENTIFY that is kept.
_MAX_TEXT: Final = 256
_MAX_PORT: Final = 65_535
_TEXTS: Final = ("broadcast_address", "hostname", "version", "topology_zone", "topology_region")
_PORTS: Final = ("tcp_port", "http_port")


def answer(data: bytes) -> bytes:
    """Encode an answer of the server."""
    return len(data).to_bytes(4, "big") + data


OK: Final = answer(b"OK")


def announce(announced: Announce) -> bytes:
    """IDENTIFY: who the client is, and where it is reached."""
    told = {name: getattr(announced, name) for name in _TEXTS + _PORTS}
    body = json.dumps(told, separators=(",", ":")).encode()
    return b"IDENTIFY\n" + answer(body)


def register(topic: bytes, channel: bytes = b"") -> bytes:
    """REGISTER: the client has this topic, or this channel and its topic."""
    return b"REGISTER %s %s\n" % (topic, channel) if channel else b"REGISTER %s\n" % topic


def unregister(topic: bytes, channel: bytes = b"") -> bytes:
    """UNREGISTER: the client no longer has this channel, or this topic and all its channels."""
    return b"UNREGISTER %s %s\n" % (topic, channel) if channel else b"UNREGISTER %s\n" % topic


class Announce(Event):
    """IDENTIFY (N138): who the client is, and where it is reached.

    The topology fields are empty where the client has none: released versions do not send them.
    """

    __slots__ = (
        "broadcast_address",
        "hostname",
        "http_port",
        "tcp_port",
        "topology_region",
        "topology_zone",
        "version",
    )

    def __init__(
        self,
        broadcast_address: str,
        hostname: str,
        tcp_port: int,
        http_port: int,
        version: str,
        topology_zone: str = "",
        topology_region: str = "",
    ) -> None:
        self.broadcast_address = broadcast_address
        self.hostname = hostname
        self.tcp_port = tcp_port
        self.http_port = http_port
        self.version = version
        self.topology_zone = topology_zone
        self.topology_region = topology_region

    def __repr__(self) -> str:
        fields = ", ".join([f"{name}={getattr(self, name)!r}" for name in self.__slots__])
        return f"Announce({fields})"


class Ping(Event):
    """PING: the client is alive; answer ``OK``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Ping()"


class Register(Event):
    """REGISTER; ``channel`` is empty for the topic alone."""

    __slots__ = ("topic", "channel")

    def __init__(self, topic: bytes, channel: bytes) -> None:
        self.topic = topic
        self.channel = channel

    def __repr__(self) -> str:
        return f"Register({self.topic!r}, {self.channel!r})"


class Unregister(Event):
    """UNREGISTER; ``channel`` is empty for the topic and all its channels."""

    __slots__ = ("topic", "channel")

    def __init__(self, topic: bytes, channel: bytes) -> None:
        self.topic = topic
        self.channel = channel

    def __repr__(self) -> str:
        return f"Unregister({self.topic!r}, {self.channel!r})"


@final
class LookupDecoder:
    """Decodes the commands of one client of a lookupd.

    The server answers each event: :class:`Announce` with JSON about itself, a violation with its
    ``answer`` before it closes, all others with ``OK``.
    """

    __slots__ = ("_greeted", "_known", "_over", "_rest")

    def __init__(self) -> None:
        self._rest = b""
        self._greeted = False
        self._known = False
        self._over = False

    @property
    def held_bytes(self) -> int:
        """Bytes that were received and are not an event yet."""
        return len(self._rest)

    def feed(self, data: bytes) -> list[Event]:
        """The commands in the bytes; nothing after a violation."""
        events: list[Event] = []
        data = self._rest + data
        at = 0
        while not self._over:
            after = self._next(data, at, events)
            if after < 0:
                break
            at = after
        self._rest = b"" if self._over else data[at:]
        return events

    def _next(self, data: bytes, at: int, events: list[Event]) -> int:
        """Read a complete command; returns where it ends, or -1 if none is complete."""
        if not self._greeted:
            if len(data) < len(MAGIC):
                return -1
            if data[: len(MAGIC)] != MAGIC:
                return self._fail(b"E_BAD_PROTOCOL", events)
            self._greeted = True
            return len(MAGIC)
        end = data.find(b"\n", at)
        if (len(data) if end < 0 else end) - at >= _MAX_LINE_BYTES:
            self._over = True
            events.append(Violation(b"", b"a line of more than %d bytes" % _MAX_LINE_BYTES))
            return -1
        if end < 0:
            return -1
        words = data[at:end].strip().split(b" ")
        word = words[0]
        if word == b"PING":
            events.append(Ping())
            return end + 1
        if word == b"IDENTIFY":
            return self._identify(data, end + 1, events)
        if word == b"REGISTER" or word == b"UNREGISTER":
            return self._registration(word, words, end + 1, events)
        return self._fail(b"E_INVALID invalid command " + word, events)

    def _identify(self, data: bytes, head: int, events: list[Event]) -> int:
        if self._known:
            return self._fail(b"E_INVALID cannot IDENTIFY again", events)
        if len(data) - head < 4:
            return -1
        size = int.from_bytes(data[head : head + 4], "big", signed=True)
        if size < 0:
            return self._fail(b"E_BAD_BODY IDENTIFY invalid body size %d" % size, events)
        if size > _MAX_IDENTIFY_BYTES:
            text = b"E_BAD_BODY IDENTIFY body too big %d > %d" % (size, _MAX_IDENTIFY_BYTES)
            return self._fail(text, events)
        after = head + 4 + size
        if len(data) < after:
            return -1
        try:
            given = json.loads(data[head + 4 : after].decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            given = None
        told = _announced(given)
        if told is None:
            return self._fail(b"E_BAD_BODY IDENTIFY failed to decode JSON body", events)
        if not (told.broadcast_address and told.tcp_port and told.http_port and told.version):
            return self._fail(b"E_BAD_BODY IDENTIFY missing fields", events)
        self._known = True
        events.append(told)
        return after

    def _registration(
        self, word: bytes, words: list[bytes], after: int, events: list[Event]
    ) -> int:
        if not self._known:
            return self._fail(b"E_INVALID client must IDENTIFY", events)
        if len(words) < 2:
            return self._fail(b"E_INVALID %s insufficient number of params" % word, events)
        topic = words[1]
        channel = words[2] if len(words) > 2 else b""
        if not is_name(topic):
            text = b"E_BAD_TOPIC %s topic name '%s' is not valid" % (word, topic)
            return self._fail(text, events)
        if channel and not is_name(channel):
            text = b"E_BAD_CHANNEL %s channel name '%s' is not valid" % (word, channel)
            return self._fail(text, events)
        events.append(
            Register(topic, channel) if word == b"REGISTER" else Unregister(topic, channel)
        )
        return after

    def _fail(self, text: bytes, events: list[Event]) -> int:
        self._over = True
        events.append(Violation(answer(text), text))
        return -1


def _announced(given: object) -> Announce | None:
    """Read the JSON of an IDENTIFY; None when it is not an object, or a field has a wrong type."""
    if not isinstance(given, dict):
        return None
    texts = dict.fromkeys(_TEXTS, "")
    ports = dict.fromkeys(_PORTS, 0)
    for key, value in given.items():
        name = key.lower()
        if value is None:
            continue
        if name in texts:
            if not isinstance(value, str) or len(value) > _MAX_TEXT:
                return None
            texts[name] = value
        elif name in ports:
            if type(value) is not int or not 0 <= value <= _MAX_PORT:
                return None
            ports[name] = value
    return Announce(
        texts["broadcast_address"],
        texts["hostname"],
        ports["tcp_port"],
        ports["http_port"],
        texts["version"],
        texts["topology_zone"],
        texts["topology_region"],
    )


@final
class AnswerDecoder:
    """Decodes the answers of a lookupd: the data of each, in order.  Data that begin with ``E_``
    are an error, after which the server closes.

    ``error`` says what is wrong with an invalid answer; empty otherwise.
    """

    __slots__ = ("_rest", "error")

    def __init__(self) -> None:
        self._rest = b""
        self.error = ""

    def feed(self, data: bytes) -> list[bytes]:
        """The complete answers."""
        found: list[bytes] = []
        if self.error:
            return found
        data = self._rest + data
        at = 0
        while len(data) - at >= 4:
            size = int.from_bytes(data[at : at + 4], "big", signed=True)
            if not 0 <= size <= _MAX_ANSWER_BYTES:
                self.error = f"an answer of {size} bytes; 0 to {_MAX_ANSWER_BYTES} are allowed"
                break
            if len(data) - at - 4 < size:
                break
            found.append(data[at + 4 : at + 4 + size])
            at += 4 + size
        self._rest = b"" if self.error else data[at:]
        return found
