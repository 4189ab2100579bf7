"""Commands of a session that share one check of rights.

The answer about a command also applies to the next one of the same kind: another push into the same
queue, another acknowledgement for the same channel.  Such a *row* is checked once and then carried
out as if rights were not checked.

This is valid as long as nothing in the row can change who decides.  A push into a missing queue may
create its channel, which may have its own authenticator; an acknowledgement goes to a client if
there is no channel of that name (F116).  Such commands are checked one by one.
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

#: The commands that each contain several.
RUNS: Final = (AcknowledgeRun, ClientRun, PushRun)


def row_of(broker: Broker, commands: Sequence[Command], at: int) -> Sequence[Command]:
    """Return the commands from index *at* on to which the same answer applies."""
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
    """Return whether the same answer applies to all messages of a run; True if it is not a run."""
    if isinstance(command, PushRun):
        return not command.is_mixed and broker.has_queue(command.channel, command.queue_id)
    return not isinstance(command, AcknowledgeRun) or not broker.has_client(command.channel)


def singly(commands: Sequence[Command], at: int = 0) -> Sequence[Command]:
    """The commands from index *at* on, with runs divided into single commands."""
    found: list[Command] = []
    for place in range(at, len(commands)):
        command = commands[place]
        if isinstance(command, (AcknowledgeRun, ClientRun, PushRun)):
            found.extend(command.singles())
        else:
            found.append(command)
    return found


def answers_among(commands: Iterable[Command]) -> list[Command]:
    """Return the acknowledgements among the waiting commands of a consumer that leaves.  Its
    messages were delivered, and would be redelivered to another consumer if they were not carried
    out.
    """
    return [each for each in commands if isinstance(each, (Acknowledge, AcknowledgeRun))]
