"""Helpers for the answers and ids of messages that several doors share."""

from __future__ import annotations

from typing import Final, final

from tmqp_server.engine.commands import Acknowledge, AcknowledgeRun, RunNotes, RunWire

__all__ = ["CountedIds", "PlainAnswers", "RunChoice"]

_DRAWN_DIGITS: Final = 16
#: The number of chunks without runs after the engine had to divide one, which takes more time.
_SINGLY_CHUNKS: Final = 64
#: The same for runs for several queues or priorities, which a queue that refuses them refuses for a
#: long time.
_UNMIXED_CHUNKS: Final = 1_024


@final
class CountedIds:
    """Makes message ids: a random prefix and a counter.

    :param drawn: random hexadecimal digits; the prefix is the first 16 of them.
    """

    __slots__ = ("_next", "_prefix")

    def __init__(self, drawn: str) -> None:
        self._prefix = drawn[:_DRAWN_DIGITS]
        self._next = 1

    def new(self) -> str:
        """One id."""
        number = self._next
        self._next = number + 1
        return f"{self._prefix}{number:x}"

    def several(self, count: int) -> list[str]:
        """*count* new ids, in order."""
        first = self._next
        self._next += count
        prefix = self._prefix
        return [f"{prefix}{number:x}" for number in range(first, first + count)]


@final
class PlainAnswers(RunWire):
    """Consecutive positive acknowledgements of deliveries, without further details."""

    def acknowledges(self, run: AcknowledgeRun) -> list[Acknowledge]:
        """The run as one acknowledgement per message."""
        return [
            Acknowledge(run.session, name, run.channel, run.queue_id) for name in run.message_ids
        ]


@final
class RunChoice(RunNotes):
    """Decides whether a session joins messages into runs: not for a while after the engine had to
    divide one.  ``singly_for`` and ``unmixed_for`` count the further chunks without runs, or
    without mixed runs.

    It is one object with the engine's notes, because each chunk needs both.
    """

    __slots__ = ("singly_for", "unmixed_for")

    def __init__(self) -> None:
        super().__init__()
        self.singly_for = 0
        self.unmixed_for = 0

    def is_limited(self) -> bool:
        """Whether a run was divided recently."""
        return self.divided or self.unmixed or self.singly_for > 0 or self.unmixed_for > 0

    def begin_chunk(self) -> bool:
        """Count a new chunk.  True if its messages must be passed on one by one."""
        if self.divided:
            self.divided = False
            self.singly_for = _SINGLY_CHUNKS
        elif self.singly_for > 0:
            self.singly_for -= 1
        if self.unmixed:
            self.unmixed = False
            self.unmixed_for = _UNMIXED_CHUNKS
        elif self.unmixed_for > 0:
            self.unmixed_for -= 1
        return self.singly_for > 0
