"""Messages and answers in a row, as one command each.

A client that sends without waiting has many frames in one chunk.  Those into one queue that differ
in nothing but their contents are one push for the broker, and acknowledges of one subscription in
a row are one answer.
"""

from __future__ import annotations

from typing import final

from tmqp_server.doors.answers import PlainAnswers, RowChoice
from tmqp_server.doors.stomp.message import StompMessage
from tmqp_server.engine.commands import (
    AcknowledgeRun,
    Command,
    Push,
    PushExtras,
    PushRun,
    RunNotes,
    RunWire,
)

__all__ = ["RowMaker", "StompRun"]


@final
class StompRun(RunWire):
    """Messages that came in a row.

    :param extras: of each, where they are pushed one by one.
    """

    __slots__ = ("extras", "wires")

    def __init__(self, wires: list[StompMessage], extras: PushExtras | None) -> None:
        self.wires = wires
        self.extras = extras

    def size(self) -> int:
        """What all of them cost."""
        return sum([wire.size for wire in self.wires])

    def largest(self) -> int:
        """What the largest costs."""
        return max([wire.size for wire in self.wires])

    def pushes(self, run: PushRun) -> list[Push]:
        """The same as single pushes."""
        return [
            Push(
                run.session,
                wire.message_id,
                run.channel,
                run.queue_id,
                run.high_priority,
                run.wants_confirm,
                wire.size,
                wire,
                self.extras,
            )
            for wire in self.wires
        ]

    def contents(self) -> tuple[list[str], list[int], list[object]]:
        """Of each message its id, what it costs, and its form."""
        wires = self.wires
        return [w.message_id for w in wires], [w.size for w in wires], list(wires)


@final
class RowMaker:
    """Joins the commands of the chunks of one session."""

    __slots__ = ("_choice", "_notes")

    def __init__(self) -> None:
        self._choice = RowChoice()
        self._notes = self._choice.notes

    @property
    def notes(self) -> RunNotes:
        """What the broker notes about the session's runs."""
        return self._notes

    def joined(self, commands: list[Command]) -> list[Command]:
        """The same, with rows in the place of single commands."""
        if self._choice.begin_chunk() or len(commands) < 2:
            return commands
        found: list[Command] = []
        at = 0
        while at < len(commands):
            command = commands[at]
            end = at + 1
            if isinstance(command, Push):
                while end < len(commands) and _goes_with(command, commands[end]):
                    end += 1
                row = commands[at:end]
                found.append(command if end == at + 1 else self._run(command, row))
            elif isinstance(command, AcknowledgeRun):
                while end < len(commands) and _answers_with(command, commands[end]):
                    end += 1
                found.append(self._answers(command, commands[at:end]))
            else:
                found.append(command)
            at = end
        return found

    def _run(self, first: Push, row: list[Command]) -> PushRun:
        wires: list[StompMessage] = []
        for each in row:
            assert isinstance(each, Push), "they are alike"
            assert isinstance(each.wire, StompMessage), "it is this door's"
            wires.append(each.wire)
        run = StompRun(wires, first.extras)
        return PushRun(
            first.session,
            first.channel,
            first.queue_id,
            first.high_priority,
            first.wants_confirm,
            len(wires),
            run.size(),
            run.largest(),
            run,
            self._notes,
        )

    def _answers(self, first: AcknowledgeRun, row: list[Command]) -> AcknowledgeRun:
        if len(row) == 1:
            return first
        ids: list[str] = []
        for each in row:
            assert isinstance(each, AcknowledgeRun), "they are alike"
            ids += each.message_ids
        return AcknowledgeRun(
            first.session, first.channel, first.queue_id, ids, PlainAnswers(), self._notes
        )


def _goes_with(first: Push, other: Command) -> bool:
    extras = first.extras
    return (
        isinstance(other, Push)
        and not (first.wants_confirm and extras is not None and extras.awaits_copies)
        and other.extras is first.extras
        and other.channel == first.channel
        and other.high_priority == first.high_priority
        and other.wants_confirm == first.wants_confirm
    )


def _answers_with(first: AcknowledgeRun, other: Command) -> bool:
    return (
        isinstance(other, AcknowledgeRun)
        and other.session == first.session
        and other.channel == first.channel
        and other.queue_id == first.queue_id
    )
