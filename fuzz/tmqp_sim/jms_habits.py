"""What some runs have more of STOMP and OpenWire: consumers that are exclusive, those of names with
wildcards, and those of STOMP that acknowledge by being written to; and priorities.

All of it is drawn from a stream of its own, so runs without it have the histories that they had.
"""

from __future__ import annotations

from random import Random
from typing import Final

__all__ = ["JmsHabits"]

#: How many runs of a hundred have any of it.
_ANY: Final = 40
_PRIORITIES: Final = (0, 3, 4, 4, 5, 9)


class JmsHabits:
    """The habits of one protocol's clients in one run.

    Attributes: ``exclusive``, the consumers of the first queue are; ``wild``, a queue that only a
    consumer with wildcards knows gets messages; ``auto``, how many consumers of the first queue
    have the mode ``auto``; ``priorities``, messages have ten; ``done_confirms``, a message of a
    queue is confirmed when its consumer has done with it.
    """

    def __init__(self, seed: int, checker: str, *, has_auto: bool) -> None:
        own = self.random = Random(f"{seed}/{checker} habits")
        has_any = own.randrange(100) < _ANY
        self.exclusive = own.random() < 0.4 and has_any
        self.wild = own.random() < 0.5 and has_any
        self.auto = own.choice((0, 1)) if has_any and has_auto else 0
        self.priorities = own.random() < 0.5 and has_any
        self.done_confirms = Random(f"{seed}/{checker} confirms").random() < 0.6

    def has_wild_place(self) -> bool:
        """Whether the next message goes where only the consumer with wildcards is."""
        return self.wild and self.random.random() < 0.3

    def priority(self) -> int:
        """The priority of the next message; -1 for whatever the protocol has."""
        return self.random.choice(_PRIORITIES) if self.priorities else -1
