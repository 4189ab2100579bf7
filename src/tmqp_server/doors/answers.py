"""Helpers for the answers and ids of messages that several doors share."""

from __future__ import annotations

from typing import Final, final

from tmqp_server.engine.commands import Acknowledge, AcknowledgeRun, RunNotes, RunWire

__all__ = ["CountedIds", "PlainAnswers", "RowChoice"]

_DRAWN_DIGITS: Final = 16
#: For so many chunks no runs are brought after one had to be divided.
_SINGLY_CHUNKS: Final = 64


@final
class CountedIds:
    """Makes ids of messages: what is drawn once, and a count.

    :param drawn: hexadecimal digits that nobody else has.
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
        """So many ids, in order."""
        first = self._next
        self._next += count
        prefix = self._prefix
        return [f"{prefix}{number:x}" for number in range(first, first + count)]


@final
class PlainAnswers(RunWire):
    """Deliveries that are answered for in a row, of which nothing more is to be said."""

    def acknowledges(self, run: AcknowledgeRun) -> list[Acknowledge]:
        """The same as single answers."""
        return [
            Acknowledge(run.session, name, run.channel, run.queue_id) for name in run.message_ids
        ]


@final
class RowChoice:
    """Whether a session brings what comes in a row as runs: not for a while after one had to be
    divided.  ``notes`` are for its runs."""

    __slots__ = ("_singly", "notes")

    def __init__(self) -> None:
        self.notes = RunNotes()
        self._singly = 0

    def begin_chunk(self) -> bool:
        """Another chunk has come; whether its messages are to be brought singly."""
        notes = self.notes
        if notes.divided:
            notes.divided = False
            self._singly = _SINGLY_CHUNKS
        elif self._singly:
            self._singly -= 1
        return self._singly > 0
