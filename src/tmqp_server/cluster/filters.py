"""The filters of both sides: what a slave forwards, and what a master accepts (F133).

A filter in the configuration is a list of patterns ``channel/queue`` and a list of kinds.  Patterns
select among traffic about queues (queue messages, their acknowledgements, decisions); kinds select
among all forwarded traffic.  For anything else, write a :class:`NodeFilter` in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tmqp.constants import MAX_QUEUE_ID
from tmqp.names import EXACT_MARK
from tmqp_server.engine.commands import (
    Acknowledge,
    ApplyDecision,
    Command,
    PassAnswer,
    Publish,
    Push,
    SendDirect,
)
from tmqp_server.engine.model.channel_names import matches

__all__ = [
    "KINDS",
    "NodeFilter",
    "Passing",
    "PatternError",
    "PatternFilter",
    "passing_of",
]

#: What nodes forward: the words of the configuration.  A response is also the acknowledgement of a
#: direct message (F116).
KINDS: Final = ("queue", "router", "direct", "acknowledge", "response", "decision")


class PatternError(Exception):
    """A pattern or a kind cannot be used; the text says which and why."""


class Passing:
    """A message or decision to be forwarded or accepted, as a filter sees it.

    ``kind`` is one of :data:`KINDS`.  ``target`` is a channel, a router, or the recipient of a
    direct message or response; ``queue_id`` is None where there is no queue.  ``command`` is the
    whole command.
    """

    __slots__ = ("command", "kind", "message_id", "queue_id", "target")

    def __init__(
        self, kind: str, target: str, queue_id: int | None, message_id: str, command: Command
    ) -> None:
        self.kind = kind
        self.target = target
        self.queue_id = queue_id
        self.message_id = message_id
        self.command = command


def passing_of(command: Command) -> Passing | None:
    """A command as a filter sees it; None if nodes do not forward such commands."""
    if isinstance(command, Push):
        channel, queue_id = command.channel.removeprefix(EXACT_MARK), command.queue_id
        return Passing("queue", channel, queue_id, command.message_id, command)
    if isinstance(command, Acknowledge):
        channel, queue_id = command.channel.removeprefix(EXACT_MARK), command.queue_id
        return Passing("acknowledge", channel, queue_id, command.message_id, command)
    if isinstance(command, Publish):
        return Passing("router", command.router, None, "", command)
    if isinstance(command, SendDirect):
        return Passing("direct", command.who, None, "", command)
    if isinstance(command, PassAnswer):
        return Passing("response", command.client_id, None, "", command)
    if isinstance(command, ApplyDecision):
        channel, queue_id = command.channel.removeprefix(EXACT_MARK), command.queue_id
        return Passing("decision", channel, queue_id, command.message_id, command)
    return None


class NodeFilter:
    """Decides which traffic is forwarded to other nodes and accepted from them; by default all.

    Subclass it and name the class in the configuration.  Both methods must be fast and without side
    effects, because they are called for every message.  An exception counts as False, and is
    counted.
    """

    def forwards(self, passing: Passing) -> bool:
        """Return whether a client's message is forwarded to the masters."""
        return True

    def accepts(self, passing: Passing) -> bool:
        """Return whether a message or decision from a node is accepted."""
        return True


class PatternFilter:
    """A filter with the patterns and kinds of one side.

    A pattern is ``channel`` or ``channel/queue``; the channel may have wildcards as in F53, the
    queue is a number or ``*``, and is after the last slash.

    :raises PatternError: when a pattern or a kind is not valid.
    """

    def __init__(self, patterns: Sequence[str], kinds: Sequence[str]) -> None:
        self._patterns = tuple([_pattern(text) for text in patterns])
        for kind in kinds:
            if kind not in KINDS:
                raise PatternError(f"{kind!r} is not one of {', '.join(KINDS)}")
        self._kinds = frozenset(kinds)

    def passes(self, passing: Passing) -> bool:
        """Whether this filter lets a message or decision pass."""
        if passing.kind not in self._kinds:
            return False
        queue_id = passing.queue_id
        if queue_id is None:
            return True
        for channel, queue in self._patterns:
            if (queue is None or queue == queue_id) and matches(passing.target, channel):
                return True
        return False


def _pattern(text: str) -> tuple[str, int | None]:
    channel, slash, queue = text.rpartition("/")
    if not slash or not (queue == "*" or (queue.isascii() and queue.isdigit())):
        channel, queue = text, "*"
    if not channel:
        raise PatternError(f"{text!r}: a pattern must be channel or channel/queue")
    if queue == "*":
        return channel, None
    if int(queue) > MAX_QUEUE_ID:
        raise PatternError(f"{text!r}: a queue is a number 0..{MAX_QUEUE_ID} or *")
    return channel, int(queue)
