"""Which commands of a session may be carried out together once the first of them may be.

Whoever must be asked about a command says the same of the next one that is like it: another push
into the same queue, another acknowledge for the same channel.  Such a *row* is checked once and
carried out as one would be that nobody checks.

That holds as long as nothing in the row can change whom to ask.  A push into a queue that is
missing may create its channel, which may have an authenticator of its own; an acknowledge goes to a
client where there is no channel of that name (F116).  These are each by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    Acknowledge,
    AcknowledgeRun,
    ClientRun,
    Command,
    Push,
    PushRun,
)

__all__ = ["RUNS", "answers_among", "is_row", "row_of", "singly"]

#: The commands that stand for several.
RUNS: Final = (AcknowledgeRun, ClientRun, PushRun)


def row_of(broker: Broker, commands: Sequence[Command], at: int) -> Sequence[Command]:
    """The commands from the place *at* on about which the same is said."""
    command = commands[at]
    count = len(commands)
    end = at + 1
    if isinstance(command, Push):
        channel, queue_id = command.channel, command.queue_id
        if end < count and broker.has_queue(channel, queue_id):
            while end < count:
                push = commands[end]
                if not isinstance(push, Push):
                    break
                if push.channel != channel or push.queue_id != queue_id:
                    break
                end += 1
    elif isinstance(command, Acknowledge):
        channel = command.channel
        if end < count and not broker.has_client(channel):
            while end < count:
                answer = commands[end]
                if not isinstance(answer, Acknowledge) or answer.channel != channel:
                    break
                end += 1
    return commands[at:end]


def is_row(broker: Broker, command: Command) -> bool:
    """Whether the same is said about all of a run; true of what is no run."""
    if isinstance(command, PushRun):
        return not command.is_mixed and broker.has_queue(command.channel, command.queue_id)
    return not isinstance(command, AcknowledgeRun) or not broker.has_client(command.channel)


def singly(commands: Sequence[Command], at: int = 0) -> Sequence[Command]:
    """The commands from the place *at* on, with those of runs each by itself."""
    found: list[Command] = []
    for place in range(at, len(commands)):
        command = commands[place]
        if isinstance(command, (AcknowledgeRun, ClientRun, PushRun)):
            found.extend(command.singles())
        else:
            found.append(command)
    return found


def answers_among(commands: Iterable[Command]) -> list[Command]:
    """The acknowledges among commands that wait while their consumer leaves.

    What they are about was handed over; it would go to another consumer if nobody carried them out.
    """
    return [each for each in commands if isinstance(each, (Acknowledge, AcknowledgeRun))]
