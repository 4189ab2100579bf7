"""What the admin door can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tmqp.constants import MAX_QUEUE_ID
from tmqp_server.engine.operations.survey import QueueChoice

__all__ = ["ADMIN", "AdminOptions", "read_choice"]

#: The name of the door.
ADMIN: Final = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminOptions:
    """What the admin door can be told."""

    metrics_queues: tuple[str, ...] = ()
    """The queues that have metrics of their own: ``orders`` for all of that channel, ``bills-*/1``
    for the queue 1 of channels whose names begin so; none if nothing is given."""

    max_metrics_queues: int = 1_000
    """How many of these are shown one by one; the others are summed."""

    hosts: tuple[str, ...] = ()
    """The names under which browsers and scripts reach this server, beside ``localhost`` and
    addresses; requests for other hosts are refused."""

    anonymous_metrics: bool = False
    """Whether ``/metrics`` is shown to clients that do not log in."""

    backups: str = ""
    """The directory in which backups are made that operators ask for over HTTP; without it, none
    are."""

    console: bool = True
    """Whether ``/`` is the console."""

    def __post_init__(self) -> None:
        if self.max_metrics_queues < 1:
            raise ValueError(f"max_metrics_queues must be positive, got {self.max_metrics_queues}")


def read_choice(text: str) -> QueueChoice:
    """Read one of ``metrics_queues``: ``CHANNELS`` or ``CHANNELS/QUEUE``.

    :raises ValueError: for a filter that cannot be used.
    """
    pattern, slash, number = text.rpartition("/")
    if not slash or not (number.isascii() and number.isdecimal()):
        pattern, number = text, ""
    if not pattern or "*" in pattern[1:-1]:
        raise ValueError(
            f"metrics_queues: a star is at the beginning, at the end or at both, not as in {text!r}"
        )
    if number and int(number) > MAX_QUEUE_ID:
        raise ValueError(f"metrics_queues: {text!r}: the largest queue id is {MAX_QUEUE_ID}")
    return QueueChoice(pattern, int(number) if number else -1)
