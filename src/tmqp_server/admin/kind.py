"""The protocol of the admin door, and its options.

Whoever starts a server names every protocol; so what the door itself needs, which is much, is
loaded when one is opened (``door.py``).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from tmqp.constants import MAX_QUEUE_ID
from tmqp_server.admin.world import AdminWorld
from tmqp_server.doors.kinds import DoorContext, DoorKind
from tmqp_server.doors.port import Door
from tmqp_server.doors.tables import record_of_options
from tmqp_server.engine.operations.survey import QueueChoice

if TYPE_CHECKING:
    from tmqp_server.admin.api.table import Api

__all__ = ["AdminKind", "AdminOptions", "read_choice"]

#: The door for programs that were written for ActiveMQ, and where their users look for a console.
_ACTIVEMQ: Final = "openwire"
_ACTIVEMQ_PORT: Final = 8161


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


@final
class AdminKind(DoorKind):
    """The protocol of the admin door.

    :param world: the server that it is about.
    """

    name = "admin"
    number = 0
    default_port = 2680
    has_names = False

    def ports(self, beside: Collection[str]) -> tuple[int, ...]:
        """Its own port, and that of ActiveMQ's web console where its programs connect."""
        return (self.default_port, _ACTIVEMQ_PORT) if _ACTIVEMQ in beside else (self.default_port,)

    def __init__(self, world: AdminWorld) -> None:
        self._world = world
        #: What the operations of the door that was opened last work with.
        self.api: Api

    def open(self, context: DoorContext) -> Door:
        """A door of HTTP."""
        from tmqp_server.admin.door import open_door  # noqa: PLC0415 - an extra, and much

        options = record_of_options(AdminOptions(), context.options)
        door, self.api = open_door(self._world, context, options)
        return door
