"""Joins consecutive messages, and consecutive answers, into one command, for STOMP and OpenWire.

If a client sends without waiting, a chunk has many frames.  Those for one queue that differ only in
their contents become one push, and consecutive acknowledgements of one subscription become one
answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from tmqp_server.doors.answers import PlainAnswers, RunChoice
from tmqp_server.engine.commands import (
    AcknowledgeRun,
    Command,
    Push,
    PushExtras,
    PushRun,
    RunNotes,
    RunWire,
)

__all__ = ["JmsRun", "RowMaker"]


@final
class JmsRun(RunWire):
    """Consecutive messages: the id, the size and the wire form of each.

    :param extras: those of each message, if they are pushed one by one.
    :param keyless: whether none of them has a group key.
    """

    __slots__ = ("_extras", "_ids", "_keyless", "_sizes", "_wires")

    def __init__(self, row: list[Push], extras: PushExtras | None, *, keyless: bool) -> None:
        self._ids = [push.message_id for push in row]
        self._sizes = [push.size for push in row]
        self._wires: list[object] = [push.wire for push in row]
        self._extras = extras
        self._keyless = keyless

    def size(self) -> int:
        """The size of all messages in bytes."""
        return sum(self._sizes)

    def largest(self) -> int:
        """The size of the largest message in bytes."""
        return max(self._sizes)

    def is_keyless(self) -> bool:
        """Whether none of them has a group key."""
        return self._keyless

    def pushes(self, run: PushRun) -> list[Push]:
        """The run as one push per message, with the same effect."""
        return [
            Push(
                run.session,
                self._ids[place],
                run.channel,
                run.queue_id,
                run.high_priority,
                run.wants_confirm,
                self._sizes[place],
                self._wires[place],
                self._extras,
            )
            for place in range(len(self._ids))
        ]

    def contents(self) -> tuple[list[str], list[int], list[object]]:
        """The id, the size in bytes and the wire form of each message."""
        return self._ids, self._sizes, self._wires


@final
class RowMaker:
    """Joins the commands of the chunks of one session.

    :param is_keyless: tells whether a wire form of the door has no group key.
    """

    __slots__ = ("_is_keyless", "_runs")

    def __init__(self, is_keyless: Callable[[object], bool]) -> None:
        self._runs = RunChoice()
        self._is_keyless = is_keyless

    @property
    def notes(self) -> RunNotes:
        """The broker's notes about the session's runs."""
        return self._runs

    def joined(self, commands: list[Command]) -> list[Command]:
        """The same commands, with consecutive ones joined."""
        if self._runs.begin_chunk() or len(commands) < 2:
            return commands
        found: list[Command] = []
        at = 0
        while at < len(commands):
            command = commands[at]
            end = at + 1
            if isinstance(command, Push):
                row = [command]
                while end < len(commands):
                    other = commands[end]
                    if not isinstance(other, Push) or not _goes_with(command, other):
                        break
                    row.append(other)
                    end += 1
                found.append(command if len(row) == 1 else self._run(command, row))
            elif isinstance(command, AcknowledgeRun):
                while end < len(commands) and _answers_with(command, commands[end]):
                    end += 1
                found.append(self._answers(command, commands[at:end]))
            else:
                found.append(command)
            at = end
        return found

    def _run(self, first: Push, row: list[Push]) -> PushRun:
        is_keyless = self._is_keyless
        keyless = all([is_keyless(push.wire) for push in row])
        run = JmsRun(row, first.extras, keyless=keyless)
        return PushRun(
            first.session,
            first.channel,
            first.queue_id,
            first.high_priority,
            first.wants_confirm,
            len(row),
            run.size(),
            run.largest(),
            run,
            self._runs,
        )

    def _answers(self, first: AcknowledgeRun, row: list[Command]) -> AcknowledgeRun:
        if len(row) == 1:
            return first
        ids: list[str] = []
        for each in row:
            assert isinstance(each, AcknowledgeRun), "they are alike"
            ids += each.message_ids
        return AcknowledgeRun(
            first.session, first.channel, first.queue_id, ids, PlainAnswers(), self._runs
        )


def _goes_with(first: Push, other: Push) -> bool:
    extras = first.extras
    return (
        not (first.wants_confirm and extras is not None and extras.awaits_copies)
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
