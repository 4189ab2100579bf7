"""Messages of goMS inside the server: their form, many of them as one, and what is kept."""

from __future__ import annotations

from json.encoder import encode_basestring
from typing import Final, final

from tmqp_server.doors.bodies import PlainBodies
from tmqp_server.doors.names import channel_of
from tmqp_server.engine.commands import Command, Push, PushRun, RunNotes, RunWire
from tmqp_server.engine.model.message import Message, SubscriptionFilter

__all__ = [
    "DOOR",
    "NUMBER",
    "QUEUE",
    "GomsBodies",
    "GomsMessage",
    "GomsRun",
    "NotMine",
    "text_of",
]

#: The door's name and number, kept with its messages.
DOOR: Final = "goms"
NUMBER: Final = 7
#: The queue of every channel.
QUEUE: Final = 0
#: The family of filters that look only at the sender.
_FAMILY: Final = f"{DOOR}-source"


@final
class GomsMessage:
    """The wire form of a message: its data, its sender and channel, and whether the sender gets it
    back."""

    __slots__ = ("channel", "data", "echoes", "source")

    def __init__(self, source: str, channel: str, data: str, *, echoes: bool) -> None:
        self.source = source
        self.channel = channel
        self.data = data
        self.echoes = echoes


@final
class GomsRun(RunWire):
    """Consecutive messages of one client to one topic.

    :param around: the result of ``bytes_around``, the same for each message.
    """

    __slots__ = ("_contents", "_data", "_first", "_ids", "channel")

    def __init__(
        self,
        ids: list[str],
        source: str,
        channel: str,
        data: list[str],
        around: int,
        *,
        echoes: bool,
    ) -> None:
        self.channel = channel
        self._ids = ids
        self._data = data
        self._first = GomsMessage(source, channel, data[0], echoes=echoes)
        sizes = [around + _size_of(each) for each in data]
        for place, name in enumerate(ids):
            sizes[place] += len(name)
        wires: list[object] = [self._first]
        for each in data[1:]:
            wires.append(GomsMessage(source, channel, each, echoes=echoes))
        self._contents: tuple[list[str], list[int], list[object]] = ids, sizes, wires

    def command(self, session: int, notes: RunNotes, *, singly: bool) -> list[Command]:
        """The commands for the broker: one push of the whole run, or one push per message."""
        if singly or len(self._ids) == 1:
            return [*self._singly(session)]
        _, sizes, _ = self._contents
        count, size, largest = len(sizes), sum(sizes), max(sizes)
        channel = self.channel
        return [PushRun(session, channel, QUEUE, False, False, count, size, largest, self, notes)]

    def _singly(self, session: int) -> list[Push]:
        found: list[Push] = []
        ids, sizes, wires = self._contents
        for name, size, wire in zip(ids, sizes, wires, strict=True):
            found.append(Push(session, name, self.channel, QUEUE, False, False, size, wire))
        return found

    def pushes(self, run: PushRun) -> list[Push]:
        """The run as one push per message, with the same effect."""
        return self._singly(run.session)

    def contents(self) -> tuple[list[str], list[int], list[object]]:
        """The id, the size in bytes and the wire form of each message."""
        return self._contents

    def sample(self, family: object) -> object:
        """The first message, for filters that look at the sender; None for other filters."""
        return self._first if family == _FAMILY else None

    def lines(self, start: int, step: int, stop: int) -> bytes:
        """The data of some of the messages as lines, which sessions share."""
        data = self._data
        if start or step != 1 or stop != len(data):
            data = data[start:stop:step]
        lines = [encode_basestring(each) for each in data]
        return "\n".join(lines).encode("utf-8", "replace") + b"\n"


@final
class NotMine(SubscriptionFilter):
    """Accepts the messages of other clients, and those of the client itself that it wants back.

    :param source: the client's id.
    """

    def __init__(self, source: str) -> None:
        self._source = source

    def accepts(self, message: Message) -> bool:
        """Whether the client gets the message."""
        wire = message.wire
        if isinstance(wire, GomsMessage) and not wire.echoes:
            return wire.source != self._source
        return True

    def identity(self) -> object:
        """The client, with the door's name."""
        return DOOR, self._source

    def family(self) -> object:
        """The family of all filters that look only at the sender."""
        return _FAMILY

    def key_of(self, message: Message) -> object:
        """The sender, if it does not want its message back; else empty."""
        wire = message.wire
        return wire.source if isinstance(wire, GomsMessage) and not wire.echoes else ""

    def is_counted(self) -> bool:
        """No: every client has a filter of its own."""
        return False


def _bytes_of(data: str) -> bytes:
    """Data as they are sent and stored; a lone surrogate becomes a question mark."""
    return data.encode("utf-8", "replace")


def _size_of(data: str) -> int:
    """The number of bytes of data in their stored form."""
    return len(data) if data.isascii() else len(_bytes_of(data))


def text_of(body: bytes) -> str:
    """The data of another protocol's message; a body that is not UTF-8 is read as Latin-1."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("latin-1")


class GomsBodies(PlainBodies):
    """The stored form of the door's messages."""

    name = DOOR
    number = NUMBER

    def body_of(self, wire: object) -> bytes:
        """The data of a message."""
        assert isinstance(wire, GomsMessage), "this door keeps its own messages"
        return _bytes_of(wire.data)

    def channel_of(self, wire: object) -> str:
        """The channel that a message was sent to."""
        assert isinstance(wire, GomsMessage), "this door keeps its own messages"
        return wire.channel

    def wire_of(self, name: str, source: str, place: bytes, body: bytes) -> tuple[object, str]:
        """A message from its stored form; see ``Door.restored``."""
        channel = channel_of(place)
        return GomsMessage(source, channel, text_of(body), echoes=True), channel
