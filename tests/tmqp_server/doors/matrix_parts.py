"""What the matrix of doors needs of a door: an adapter, and the messages that it sends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, TypeAlias

from tests.tmqp_server.doors.hub_stage import StagePeer
from tests.tmqp_server.doors.matrix_stage import MatrixStage
from tests.tmqp_server.toy_door import FIELDS
from tmqp_server.doors.letter import Letter

__all__ = [
    "CHANNEL",
    "EVERYTHING",
    "MOST",
    "Adapter",
    "Case",
    "Consumer",
    "Tables",
    "Wire",
    "one_table",
    "times",
]

#: Tables of ``[[doors]]``.
Tables: TypeAlias = tuple[dict[str, Any], ...]
#: The channel that all use, and its queue.
CHANNEL: Final = "letters"
#: All that a message can say beside its body: attributes of a letter, its ``id`` and ``source``,
#: ``lifetime``, a time to live in the queue, and ``delay``, until when it is not delivered.
EVERYTHING: Final = frozenset(
    {*FIELDS, "headers", "properties", "id", "source", "lifetime", "delay"}
)
#: Messages that a consumer takes at a time, at most.
MOST: Final = 100


def one_table(**values: Any) -> Tables:
    """A table of ``[[doors]]``."""
    return (values,)


class Case:
    """A message.

    :param line: how a protocol of lines shows the body, if not as it is.
    :param text: how a protocol of texts does.
    :param lifetime_ms: how long it lives, 0 for ever.
    :param delay_ms: how long it must not be delivered.
    """

    def __init__(
        self,
        name: str,
        letter: Letter,
        line: bytes | None = None,
        text: bytes | None = None,
        lifetime_ms: int = 0,
        delay_ms: int = 0,
    ) -> None:
        self.name = name
        self.letter = letter
        self.line = letter.body if line is None else line
        self.text = letter.body if text is None else text
        self.lifetime_ms = lifetime_ms
        self.delay_ms = delay_ms
        letter.message_id = f"id-{name}"


def times(case: Case) -> list[tuple[str, str]]:
    """The headers of TMQP that say when a message may be delivered."""
    said = (("Message-Timeout", case.lifetime_ms), ("Delay", case.delay_ms))
    return [(name, str(value)) for name, value in said if value]


class Wire:
    """A connection with a door."""

    def __init__(self, stage: MatrixStage, door: str) -> None:
        self._peer = StagePeer(stage, stage.dial(door))

    def say(self, *parts: bytes) -> None:
        """Send, as one chunk."""
        self._peer.say(*parts)

    def take(self) -> bytes:
        """What has come since the last time."""
        return self._peer.take()

    def hang_up(self) -> None:
        """Close the connection."""
        self._peer.hang_up()


class Consumer:
    """A client that waits for messages."""

    def take(self) -> list[Letter]:
        """What has come since the last time, every message of which is acknowledged."""
        raise NotImplementedError


class Adapter:
    """One door as the matrix sees it.

    Attributes: ``name``; ``tables``, its tables of ``[[doors]]``; ``gives``, what its clients can
    say of a message, ``shows``, what they are told; ``status``, of the queues from which they take;
    ``sends`` and ``receives``, whether they do; ``of_frames``, its messages are those of TMQP, and
    go as they are to clients that read TMQP's.
    """

    name: ClassVar[str]
    tables: ClassVar[Tables] = ()
    gives: ClassVar[frozenset[str]] = frozenset()
    shows: ClassVar[frozenset[str]] = frozenset()
    status: ClassVar[str] = "push"
    sends: ClassVar[bool] = True
    receives: ClassVar[bool] = True
    of_frames: ClassVar[bool] = False

    def can_send(self, case: Case) -> bool:
        """Whether the protocol can say its body."""
        return True

    def body(self, case: Case) -> bytes:
        """Its body as consumers get it."""
        return case.letter.body

    def said(self, case: Case, letter: Letter, unix_ms: int) -> None:
        """Add what the door says of a message that a client of its own sends at this time."""

    def shown(self, letter: Letter, unix_ms: int) -> None:
        """Add what the door tells of a message, delivered at this time, that does not say it."""

    def send(self, stage: MatrixStage, cases: Sequence[Case], *, in_a_row: bool) -> None:
        """Send messages, in one chunk if they are in a row, and see that they are confirmed."""
        raise NotImplementedError

    def consumer(self, stage: MatrixStage) -> Consumer:
        """A new consumer."""
        raise NotImplementedError
